// Who is placed, and when, on random traffic of several tenants and classes under every policy.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

constexpr std::int32_t kSlots = 3;
constexpr std::int64_t kLongestRun = 6;  // turns
constexpr std::chrono::nanoseconds kTurn = std::chrono::seconds{1};

// What a case is made of.
struct Scene {
  std::string policy;
  std::chrono::nanoseconds max_wait;
  bool wide;     // requests of several sequences
  bool limited;  // KV space
};

// A fleet of one group in overload; in each turn some requests come, some end, and a round is run.
class Overload {
 public:
  Overload(const Scene& scene, std::uint64_t seed)
      : scene_{scene},
        draw_{seed},
        router_{"fleet", make_policy({.name = scene.policy}).value(), seed, {.books = {}, .max_wait = scene.max_wait}},
        group_{router_.add_group("group")} {
    const KvSpace kv = scene.limited ? KvSpace{Tokens{4000}, Tokens{100}} : KvSpace{};
    for (std::int32_t rank = 0; rank < 3; ++rank) router_.add_worker(group_, "http://host", rank, kSlots, kv).value();
    tenants_.push_back({TenantTerms{}});
    for (int i = 0; i < 2; ++i) {
      const TenantTerms terms{.weight = static_cast<std::int64_t>(1 + draw_.below(5)),
                              .quota = static_cast<std::int64_t>(kSlots + draw_.below(6))};
      router_.add_tenant(terms);
      tenants_.push_back({terms});
    }
  }

  void turn(bool more) {
    now_ += kTurn;
    ++turns_;
    router_.set_now(now_);
    if (more) come();
    end();
    if (draw_.below(6) == 0) withdraw();
    round();
    check_quotas();
  }

  [[nodiscard]] bool empty() const { return waiting_.empty() && running_.empty(); }
  [[nodiscard]] std::int64_t turns() const { return turns_; }

 private:
  struct Tenant {
    TenantTerms terms;
  };
  struct Running {
    Request request;
    Lease lease;
    std::int64_t until;
  };

  void come() {
    for (std::uint64_t count = draw_.below(4); count > 0; --count) {
      const Request request{.id = RequestId{next_++},
                            .prompt = Tokens{static_cast<std::int64_t>(draw_.below(1200))},
                            .sequences = scene_.wide ? static_cast<std::int32_t>(1 + draw_.below(kSlots)) : 1,
                            .tenant = TenantId{static_cast<std::uint32_t>(draw_.below(3))},
                            .priority = static_cast<std::int32_t>(draw_.below(3))};
      require(router_.submit(request).has_value());
      waiting_[request.id] = request;
    }
  }

  void end() {
    std::erase_if(running_, [this](Running& each) {
      if (each.until > turns_) {
        if (each.request.sequences > 1 && draw_.below(4) == 0) {
          each.lease.finish_one(Tokens{3});
          --each.request.sequences;
        }
        return false;
      }
      each.lease.finish(Tokens{5});
      return true;
    });
  }

  void withdraw() {
    const RequestId request{draw_.below(next_ + 1)};
    require(router_.withdraw(request) == (waiting_.erase(request) == 1));
  }

  void round() {
    std::vector<std::uint64_t> admitted;
    for (Admission& admission : router_.round(group_)) {
      require(waiting_.erase(admission.request.id) == 1);  // it waited, and is admitted once
      admitted.push_back(admission.request.id.value());
      admission.lease.started();
      running_.push_back({admission.request, std::move(admission.lease),
                          turns_ + static_cast<std::int64_t>(1 + draw_.below(kLongestRun))});
    }
    require(router_.refused_choices() == 0);
    for (const Tokens free : router_.ledger().view(group_).kv_free) require(free >= Tokens{0});
    if (router_.policy().binding() == Binding::pooled) check_late(admitted);
  }

  // The first late request waits no longer than requests run, and without wide ones nobody who came later is placed.
  void check_late(const std::vector<std::uint64_t>& admitted) {
    const Candidate* first = nullptr;
    for (const Candidate& candidate : router_.pooled()) {
      if (candidate.late && (first == nullptr || candidate.serial < first->serial)) first = &candidate;
    }
    if (first == nullptr) return;
    require(first == router_.pooled().data());
    if (!scene_.wide && !scene_.limited) {
      for (const std::uint64_t id : admitted) require(entered_before(id, *first));
    }
    rounds_as_first_ = first->serial == first_ ? rounds_as_first_ + 1 : 1;
    first_ = first->serial;
    require(rounds_as_first_ <= kLongestRun + 1);
  }

  // Whether the request was there before that one; if nobody has seen it wait, it came in this turn.
  [[nodiscard]] bool entered_before(std::uint64_t id, const Candidate& other) const {
    return serial_of_.contains(id) && serial_of_.at(id) < other.serial;
  }

  // Entered sequences of each tenant are at most its quota; a parked request has no room, or one of its tenant before
  // it.
  void check_quotas() {
    std::vector<std::int64_t> active(tenants_.size());
    std::size_t entered = 0;
    const auto count = [&](const Request& request) { active[request.tenant.value()] += request.sequences; };
    const auto look_at = [&](std::span<const Candidate> row) {
      require(std::ranges::is_sorted(row, goes_before));
      for (const Candidate& candidate : row) {
        count(candidate.request);
        serial_of_[candidate.request.id.value()] = candidate.serial;
        ++entered;
      }
    };
    look_at(router_.pooled());
    for (std::uint32_t worker = 0; worker < 3; ++worker) look_at(router_.queued_at(WorkerId{worker}));
    for (const Running& each : running_) count(each.request);
    for (std::size_t i = 0; i < tenants_.size(); ++i) require(active[i] <= tenants_[i].terms.quota);
    require(router_.waiting() == waiting_.size());
    require(router_.parked() == waiting_.size() - entered);
  }

  Scene scene_;
  Random draw_;
  Router router_;
  GroupId group_;
  std::vector<Tenant> tenants_;
  std::map<RequestId, Request> waiting_;
  std::vector<Running> running_;
  std::map<std::uint64_t, std::uint64_t> serial_of_;
  std::chrono::nanoseconds now_{0};
  std::int64_t turns_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t first_ = 0;
  std::int64_t rounds_as_first_ = 0;
};

Scene some_scene(Random& draw) {
  const auto names = policy_names();
  return {.policy = std::string{names[draw.below(names.size())]},
          .max_wait = kTurn * static_cast<std::int64_t>(draw.below(12)),
          .wide = draw.below(2) == 0,
          .limited = draw.below(2) == 0};
}

// Law: under every policy no quota and no capacity is exceeded, each request is admitted once, the one that is late and
// first waits no longer than requests run, and nobody starves.
TEST(EligibilityProperty, NobodyIsForgottenAndNobodyTakesTooMuch) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    Overload overload{some_scene(draw), seed};
    for (int i = 0; i < 16; ++i) overload.turn(true);
    while (!overload.empty()) {
      overload.turn(false);
      require(overload.turns() < 2000);
    }
  });
}

}  // namespace
}  // namespace balanceroute
