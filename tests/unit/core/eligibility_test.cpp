#include "core/eligibility.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

Request request(std::uint64_t id, TenantId tenant = kDefaultTenant, std::int32_t sequences = 1) {
  return {.id = RequestId{id}, .prompt = Tokens{10}, .sequences = sequences, .tenant = tenant};
}

// Law: what is beyond the quota is parked, in order, and enters as the tenant's own sequences leave.
TEST(Eligibility, ParksWhatIsBeyondTheQuota) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 3});
  EXPECT_TRUE(eligibility.enters(request(1, tenant, 2)));
  EXPECT_FALSE(eligibility.enters(request(2, tenant, 2)));
  EXPECT_FALSE(eligibility.enters(request(3, tenant)));  // it would fit, but its turn is behind
  EXPECT_TRUE(eligibility.enters(request(4)));           // nobody else waits for it
  EXPECT_EQ(eligibility.parked(), 2U);
  EXPECT_FALSE(eligibility.release_parked());
  eligibility.left(request(1, tenant, 2));
  EXPECT_EQ(eligibility.release_parked()->id, RequestId{2});
  EXPECT_EQ(eligibility.release_parked()->id, RequestId{3});
  EXPECT_FALSE(eligibility.release_parked());
}

// Law: of a request whose sequences end one by one each makes room for others of its tenant.
TEST(Eligibility, SequencesThatEndMakeRoom) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 3});
  EXPECT_TRUE(eligibility.enters(request(1, tenant, 3)));
  EXPECT_FALSE(eligibility.enters(request(2, tenant, 2)));
  eligibility.narrowed(request(1, tenant, 2));
  EXPECT_FALSE(eligibility.release_parked());
  eligibility.narrowed(request(1, tenant, 1));
  EXPECT_EQ(eligibility.release_parked()->id, RequestId{2});
  eligibility.left(request(1, tenant, 1));
  EXPECT_TRUE(eligibility.enters(request(3, tenant)));
  EXPECT_FALSE(eligibility.enters(request(4, tenant)));
}

TEST(Eligibility, RefusesWhatCanNeverEnter) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 3});
  EXPECT_EQ(eligibility.obstacle(request(1, tenant, 4)), SubmitError::ExceedsQuota);
  EXPECT_EQ(eligibility.obstacle(request(1, tenant, 3)), std::nullopt);
  EXPECT_EQ(eligibility.obstacle(request(1, TenantId{2})), SubmitError::UnknownTenant);
}

// Law: a parked request that is taken back frees nothing but its place.
TEST(Eligibility, WithdrawsFromTheParked) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 1});
  EXPECT_TRUE(eligibility.enters(request(1, tenant)));
  EXPECT_FALSE(eligibility.enters(request(2, tenant)));
  EXPECT_FALSE(eligibility.enters(request(3, tenant)));
  EXPECT_TRUE(eligibility.withdraw_parked(RequestId{2}));
  EXPECT_FALSE(eligibility.withdraw_parked(RequestId{2}));
  EXPECT_FALSE(eligibility.release_parked());
  eligibility.left(request(1, tenant));
  EXPECT_EQ(eligibility.release_parked()->id, RequestId{3});
}

Candidate with_turn(Eligibility& eligibility, const Request& request) {
  Candidate candidate{.request = request, .weight = Tokens{10}};
  eligibility.give_turn(candidate);
  return candidate;
}

// Law: a smaller quota cuts nothing that runs and lets nothing more in; a parked request that by itself is beyond it
// enters once its tenant has nothing else, so that nobody waits behind it forever.
TEST(Eligibility, ASmallerQuotaHoldsForWhatComes) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 4});
  EXPECT_TRUE(eligibility.enters(request(1, tenant, 2)));
  EXPECT_TRUE(eligibility.enters(request(2, tenant, 2)));
  EXPECT_FALSE(eligibility.enters(request(3, tenant, 3)));
  eligibility.set_terms(tenant, {.weight = 1, .quota = 2});
  EXPECT_EQ(eligibility.standing(tenant).active, 4);
  EXPECT_EQ(eligibility.standing(tenant).parked, 1u);
  EXPECT_EQ(eligibility.obstacle(request(4, tenant, 3)), SubmitError::ExceedsQuota);
  EXPECT_FALSE(eligibility.enters(request(5, tenant)));
  eligibility.left(request(1, tenant, 2));
  EXPECT_FALSE(eligibility.release_parked());
  eligibility.left(request(2, tenant, 2));
  const auto first = eligibility.release_parked();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, RequestId{3});
  EXPECT_FALSE(eligibility.release_parked());
}

// Law: another weight is that of turns from then on.
TEST(Eligibility, AnotherWeightTakesEffect) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({});
  const Candidate first = with_turn(eligibility, request(1, tenant));
  const Candidate second = with_turn(eligibility, request(2, tenant));
  eligibility.set_terms(tenant, {.weight = 10});
  const Candidate third = with_turn(eligibility, request(3, tenant));
  const Candidate fourth = with_turn(eligibility, request(4, tenant));
  EXPECT_EQ(third.start - second.start, second.start - first.start);
  EXPECT_EQ((fourth.start - third.start) * 10, second.start - first.start);
}

// Law: one that is withdrawn after it entered makes room in the quota, and its tenant's next one has its turn.
TEST(Eligibility, AWithdrawnRequestCostsItsTenantNothing) {
  Eligibility eligibility;
  const TenantId tenant = eligibility.add_tenant({.quota = 3});
  EXPECT_TRUE(eligibility.enters(request(1, tenant, 3)));
  const Candidate first = with_turn(eligibility, request(1, tenant, 3));
  EXPECT_FALSE(eligibility.enters(request(2, tenant, 2)));
  eligibility.withdrawn(first);
  EXPECT_EQ(eligibility.release_parked()->id, RequestId{2});
  EXPECT_EQ(with_turn(eligibility, request(2, tenant, 2)).start, first.start);
}

// Law: a tenant that comes when others have been served begins there: it is not owed what it did not ask for.
TEST(Eligibility, ATenantIsOwedNothingForTheTimeBefore) {
  Eligibility eligibility;
  const TenantId late = eligibility.add_tenant({});
  Candidate last;
  for (std::uint64_t id = 0; id < 3; ++id) {
    last = with_turn(eligibility, request(id));
    eligibility.served(last);
  }
  EXPECT_GT(last.start, 0);
  EXPECT_EQ(with_turn(eligibility, request(9, late)).start, last.start);
}

// Law: a higher class goes first; within a class tenants take turns by weight; a late one goes before all.
TEST(Eligibility, TurnsGoByClassThenShare) {
  Eligibility eligibility;
  const TenantId heavy = eligibility.add_tenant({.weight = 2});
  Pool pool;
  std::uint64_t serial = 0;
  const auto add = [&](TenantId tenant, std::int32_t priority, bool late) {
    Candidate candidate{.request = request(serial, tenant), .weight = Tokens{10}, .serial = serial, .late = late};
    candidate.request.priority = priority;
    ++serial;
    eligibility.give_turn(candidate);
    pool.insert(candidate);
  };
  for (int i = 0; i < 3; ++i) add(kDefaultTenant, 0, false);  // 0, 1, 2 start at 0, 10, 20
  for (int i = 0; i < 4; ++i) add(heavy, 0, false);           // 3, 4, 5, 6 at 0, 5, 10, 15
  add(heavy, 1, false);
  add(kDefaultTenant, -1, true);
  std::vector<std::uint64_t> order;
  for (const Candidate& candidate : pool.candidates()) order.push_back(candidate.serial);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{8, 7, 0, 3, 4, 1, 5, 6, 2}));
}

}  // namespace
}  // namespace balanceroute
