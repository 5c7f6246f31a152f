// A router that was written down as a state and made again decides what it would have decided.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "explain/explanation.hpp"
#include "explain/fleet_state.hpp"
#include "explain/fleet_state_json.hpp"
#include "policy/registry.hpp"
#include "support/property.hpp"

namespace balanceroute::explain {
namespace {

using std::chrono::milliseconds;

// A fleet in the middle of its life, with requests that have waited since a moment ago and no round since.
class Fleet {
 public:
  Fleet(Random& draw, const std::string& preset) : draw_{draw} {
    head_.policy.name = "br_0";  // it learns nothing
    head_.policy.preset = preset;
    head_.kv_block = draw.below(2) == 0 ? 1 : 16;
    router_ = std::make_unique<Router>("default", make_policy(head_.policy).value(), draw.below(1000),
                                       RouterSettings{.books = {.kv_block = Tokens{head_.kv_block}}});
    for (std::uint64_t groups = 1 + draw.below(2); groups > 0; --groups) add_group();
    for (std::uint64_t steps = draw.below(20); steps > 0; --steps) live();
    wait_for_workers();
  }

  [[nodiscard]] FleetState state() const { return state_of(*router_, now_, head_); }
  Router& router() { return *router_; }

 private:
  void add_group() {
    const GroupId group = router_->add_group("g" + std::to_string(groups_++));
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(2 + draw_.below(6)); ++rank) {
      const std::int32_t slots = static_cast<std::int32_t>(1 + draw_.below(6));
      const KvSpace kv{.capacity = draw_.below(2) == 0 ? kUnlimitedKv : Tokens{20'000}};
      workers_.push_back(router_->add_worker(group, "http://g" + std::to_string(groups_), rank, slots, kv).value());
    }
    if (draw_.below(3) == 0) router_->drain(workers_.back()).value();
  }

  void submit() {
    (void)router_->submit({.id = RequestId{next_++},
                           .prompt = Tokens{static_cast<std::int64_t>(draw_.below(4000))},
                           .sequences = static_cast<std::int32_t>(1 + draw_.below(8) / 7),
                           .output_limit = Tokens{static_cast<std::int64_t>(1 + draw_.below(3000))},
                           .priority = static_cast<std::int32_t>(draw_.below(5) / 4)});
  }

  // Some come, a round is held, they step.
  void live() {
    now_ += milliseconds{1};
    router_->set_now(now_);
    for (std::uint64_t count = draw_.below(3); count > 0; --count) submit();
    for (Admission& admission : router_->round_all()) {
      if (draw_.below(4) != 0) admission.lease.started();
      leases_.push_back(std::move(admission.lease));
    }
    for (const GroupView& group : router_->ledger().groups()) router_->advance(group.group, Steps{1});
  }

  // Whoever waits from before has been passed over, which a state leaves out.
  void wait_for_workers() {
    while (!router_->pooled().empty()) router_->withdraw(router_->pooled().front().request.id);
    for (std::uint64_t count = draw_.below(8); count > 0; --count) {
      now_ += milliseconds{draw_.below(3)};
      router_->set_now(now_);
      submit();
    }
    if (!leases_.empty() && draw_.below(2) == 0) leases_.erase(leases_.begin());
  }

  Random& draw_;
  FleetState head_;
  std::unique_ptr<Router> router_;
  std::chrono::nanoseconds now_{0};
  std::vector<WorkerId> workers_;
  std::vector<Lease> leases_;
  int groups_ = 0;
  std::uint64_t next_ = 0;
};

// Law: through the document the same requests go to the same workers for the same reasons.
TEST(FleetStateProperty, DecidesAsTheRouterDoes) {
  check_property(1'000, [](std::uint64_t seed) {
    for (const char* preset : {"default", "paper"}) {
      Random draw{seed};
      Fleet fleet{draw, preset};
      const auto read = read_fleet_state(to_json(fleet.state()), "snapshot");
      require(read.has_value());
      const auto explanation = explain(*read);
      require(explanation.has_value());
      const auto admissions = fleet.router().round_all(true);
      require(explanation->admissions.size() == admissions.size());
      for (std::size_t i = 0; i < admissions.size(); ++i) {
        const ExplainedAdmission& again = explanation->admissions[i];
        const WorkerKey& key = fleet.router().ledger().worker(admissions[i].worker).key;
        require(explanation->workers[again.worker].url == key.url &&
                explanation->workers[again.worker].rank == key.rank);
        require(explanation->requests[again.request].request ==
                static_cast<std::int64_t>(admissions[i].request.id.value()));
        require(again.stage == admissions[i].stage && again.set_size == admissions[i].set_size);
        require(again.score == admissions[i].score && again.margin == admissions[i].margin);
      }
    }
  });
}

}  // namespace
}  // namespace balanceroute::explain
