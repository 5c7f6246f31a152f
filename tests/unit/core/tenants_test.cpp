#include "core/tenants.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute {
namespace {

std::string fault(const std::vector<TenantParams>& tenants) {
  return fault_of(tenants).value_or("");
}

// Law: a message names the entry, the setting, its value and what was expected.
TEST(Tenants, RefuseWhatCannotBe) {
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b", .weight = 1024, .max_sequences = 1, .priority = -1000}}), "");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b"}, {.name = "a"}}),
            "tenants[2].name = a: expected a name that no other tenant has");
  EXPECT_EQ(fault({{.name = ""}}), "tenants[0].name = \"\": expected a text");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b", .weight = 0}}), "tenants[1].weight = 0: expected 1..1024");
  EXPECT_EQ(fault({{.name = "a", .max_sequences = -1}}),
            "tenants[0].max_sequences = -1: expected 1..1000000000 or auto");
  EXPECT_EQ(fault({{.name = "a", .priority = 1001}}), "tenants[0].priority = 1001: expected -1000..1000");
}

// Law: a request of a named sender has its tenant and class, any other is the default tenant's; quota and weight are
// those of the settings.
TEST(Tenants, MarkRequestsByTheirSender) {
  Eligibility eligibility;
  const std::vector<TenantParams> settings{{.name = "batch", .max_sequences = 2, .priority = -1},
                                           {.name = "chat", .weight = 3, .priority = 5}};
  Tenants tenants;
  tenants.follow(settings, eligibility);
  const auto request = [&](std::uint64_t id, std::string_view sender, std::int32_t sequences) {
    Request made{.id = RequestId{id}, .prompt = Tokens{10}, .sequences = sequences};
    tenants.mark(made, sender);
    return made;
  };
  const Request batch = request(1, "batch", 3);
  const Request chat = request(2, "chat", 3);
  const Request other = request(3, "nobody", 3);
  EXPECT_EQ(batch.priority, -1);
  EXPECT_EQ(chat.priority, 5);
  EXPECT_EQ(other.priority, 0);
  EXPECT_EQ(other.tenant, kDefaultTenant);
  EXPECT_EQ(eligibility.obstacle(batch), SubmitError::ExceedsQuota);
  EXPECT_EQ(eligibility.obstacle(chat), std::nullopt);
  EXPECT_EQ(settings[1].terms().weight, 3);
  EXPECT_EQ(settings[1].terms().quota, TenantTerms::kNoQuota);
}

// Law: other settings change terms and classes under the same ids; a tenant that is named no more keeps both, since its
// requests may still be there.
TEST(Tenants, KeepTheirIdsUnderOtherSettings) {
  Eligibility eligibility;
  Tenants tenants;
  tenants.follow(std::vector<TenantParams>{{.name = "a", .max_sequences = 2}, {.name = "b", .weight = 2}}, eligibility);
  const TenantId a = tenants.known().at("a").id;
  const TenantId b = tenants.known().at("b").id;
  tenants.follow(std::vector<TenantParams>{{.name = "c"}, {.name = "b", .weight = 5, .priority = 7}}, eligibility);
  EXPECT_EQ(tenants.known().at("a").id, a);
  EXPECT_EQ(tenants.known().at("b").id, b);
  EXPECT_NE(tenants.known().at("c").id, a);
  EXPECT_EQ(eligibility.standing(a).terms, (TenantTerms{.quota = 2}));
  EXPECT_EQ(eligibility.standing(b).terms, (TenantTerms{.weight = 5}));
  Request request{.id = RequestId{1}, .prompt = Tokens{10}};
  tenants.mark(request, "b");
  EXPECT_EQ(request.tenant, b);
  EXPECT_EQ(request.priority, 7);
}

}  // namespace
}  // namespace balanceroute
