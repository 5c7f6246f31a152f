// What holds of shadows whatever the policies and the traffic: they change nothing, and their figures are exact.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/envelope.hpp"
#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "policy/shadow/step_shadow.hpp"
#include "policy/shadow/world_shadow.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

constexpr std::array kPolicies{"random",       "round_robin", "power_of_two", "join_shortest_queue",
                               "least_tokens", "br_0_bypass", "br_0",         "br_h",
                               "br_fit"};
constexpr std::uint32_t kWorkers = 3;

std::string any_policy(Random& draw) {
  return kPolicies[draw.below(kPolicies.size())];
}

std::unique_ptr<Policy> policy(const std::string& name) {
  return make_policy({.name = name}).value();
}

// One group whose requests all begin with the step after their admission and end at lengths that are known beforehand.
class Traffic {
 public:
  Traffic(const std::string& name, std::uint64_t seed, RouterListener* listener = nullptr)
      : router{"fleet", policy(name), seed, {.listener = listener}} {
    router.add_group("group");
  }
  // Apart from the rest, so that a shadow may join before.
  void add_workers() {
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      router.add_worker(GroupId{0}, "http://host", static_cast<std::int32_t>(rank), 3).value();
    }
  }

  void act(std::uint64_t word) {
    Random draw{word};
    switch (draw.below(8)) {
      case 0:
      case 1:
      case 2:
        submit(draw);
        break;
      case 3:
      case 4:
        round();
        break;
      case 5:
        withdraw(draw);
        break;
      case 6:
        give_up(draw);
        break;
      default:
        step(draw.below(4) == 0 ? Steps{3} : Steps{1});
    }
  }

  // Every admission so far: request, worker, rule and score.
  std::vector<std::tuple<std::uint64_t, std::uint32_t, Stage, double>> history;
  Router router;

 private:
  struct Running {
    Lease lease;
    Tokens length;
    Tokens age;
  };

  void submit(Random& draw) {
    const Request request{.id = RequestId{next_++}, .prompt = Tokens{static_cast<std::int64_t>(draw.below(4000))}};
    require(router.submit(request).has_value());
    lengths_[request.id] = Tokens{static_cast<std::int64_t>(1 + draw.below(12))};
  }
  void round() {
    for (Admission& admission : router.round_all()) {
      const RequestId id = admission.request.id;
      history.emplace_back(id.value(), admission.worker.value(), admission.stage, admission.score);
      running_[id] = {.lease = std::move(admission.lease), .length = lengths_.at(id), .age = Tokens{-1}};
    }
  }
  void withdraw(Random& draw) {
    if (next_ > 0) router.withdraw(RequestId{draw.below(next_)});
  }
  void give_up(Random& draw) {
    if (!running_.empty()) running_.erase(std::next(running_.begin(), static_cast<int>(draw.below(running_.size()))));
  }
  void step(Steps steps) {
    router.advance(GroupId{0}, steps);
    for (auto& [id, one] : running_) {
      if (one.age < Tokens{0}) {
        one.lease.started();
        one.age = Tokens{0};
      } else {
        one.age += Tokens{steps.count()};
      }
    }
    for (auto& [id, one] : running_) {
      if (one.age >= one.length) one.lease.finish(one.length);
    }
    std::erase_if(running_, [](const auto& entry) { return !entry.second.lease.live(); });
  }

  std::uint64_t next_ = 0;
  std::map<RequestId, Tokens> lengths_;
  std::map<RequestId, Running> running_;
};

// Law: with a shadow of either kind, the same requests go to the same workers by the same rules and scores as without.
TEST(Shadows, ChangeNoDecision) {
  check_property(300, [](std::uint64_t seed, std::vector<std::uint64_t> words) {
    Random draw{seed};
    const std::string decides = any_policy(draw);
    const std::string asked = any_policy(draw);
    Traffic alone{decides, seed};
    Traffic beside_step{decides, seed};
    beside_step.router.set_shadow(std::make_unique<StepShadow>(policy(asked), seed));
    WorldShadow world{"fleet", policy(asked), seed, {}};
    Traffic beside_world{decides, seed, &world};
    world.watch(beside_world.router);
    for (Traffic* traffic : {&alone, &beside_step, &beside_world}) {
      traffic->add_workers();
      for (const std::uint64_t word : words) traffic->act(word);
    }
    RC_ASSERT(alone.history == beside_step.history);
    RC_ASSERT(alone.history == beside_world.history);
    RC_ASSERT(world.guard().is_on() && beside_step.router.shadow()->guard().is_on());
  });
}

// Law: a policy that draws nothing has no regret beside itself.
TEST(Shadows, PolicyBesideItselfHasNoRegret) {
  check_property(200, [](std::uint64_t seed, std::vector<std::uint64_t> words) {
    for (const std::string name : {"br_0", "br_h", "br_fit"}) {
      Traffic traffic{name, seed};
      traffic.router.set_shadow(std::make_unique<StepShadow>(policy(name), seed));
      traffic.add_workers();
      for (const std::uint64_t word : words) traffic.act(word);
      RC_ASSERT(traffic.router.shadow()->regret().regret == Tokens{0});
      RC_ASSERT(traffic.router.shadow()->regret().worse == 0U);
    }
  });
}

// A group in some state, and what waits for it.
struct Moment {
  std::vector<Request> running;
  std::vector<WorkerId> at;
  std::vector<Request> waiting;
};

Moment any_moment(Random& draw, std::size_t waiting) {
  Moment moment;
  std::uint64_t next = 0;
  const auto request = [&] {
    return Request{.id = RequestId{next++}, .prompt = Tokens{static_cast<std::int64_t>(draw.below(4000))}};
  };
  for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
    for (std::uint64_t i = draw.below(3); i > 0; --i) {
      moment.running.push_back(request());
      moment.at.emplace_back(worker);
    }
  }
  for (std::size_t i = 0; i < waiting; ++i) moment.waiting.push_back(request());
  return moment;
}

// The regret of the first beside the second in one round from that moment.
Tokens regret_of(const std::string& decides, const std::string& asked, const Moment& moment) {
  Router router{"fleet", policy(decides), 1};
  router.set_shadow(std::make_unique<StepShadow>(policy(asked), 1));
  const GroupId group = router.add_group("group");
  for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
    router.add_worker(group, "http://host", static_cast<std::int32_t>(rank), 3).value();
  }
  std::vector<Lease> held;
  for (std::size_t i = 0; i < moment.running.size(); ++i) {
    held.push_back(router.adopt(moment.at[i], moment.running[i]).value());
  }
  for (const Request& request : moment.waiting) require(router.submit(request).has_value());
  for (Admission& admission : router.round_all()) held.push_back(std::move(admission.lease));
  return router.shadow()->regret().regret;
}

// Law: from one state, what one policy loses to another is what the other wins over it.
TEST(StepRegrets, AreOppositeFromTheOtherSide) {
  check_property(500, [](std::uint64_t seed) {
    Random draw{seed};
    constexpr std::array names{"br_0", "br_h", "br_fit"};
    const std::string one = names[draw.below(3)];
    const std::string other = names[draw.below(3)];
    const Moment moment = any_moment(draw, 1 + draw.below(8));
    RC_ASSERT(regret_of(one, other, moment) == -1 * regret_of(other, one, moment));
  });
}

// Law: of a request alone, br_0 finds the worker that leaves the least imbalance: no policy that places it loses less
// than nothing to it.
TEST(StepRegrets, AreNotNegativeBesideTheBestChoice) {
  check_property(500, [](std::uint64_t seed) {
    Random draw{seed};
    const Moment moment = any_moment(draw, 1);
    const std::string decides = kPolicies[draw.below(6)];  // those that hold nothing back
    RC_ASSERT(regret_of(decides, "br_0", moment) >= Tokens{0});
  });
}

// Law: a world under the same policy, which draws nothing, is the same world: loads, waiting requests and idle shares.
TEST(WorldShadows, AreTheLiveWorldUnderTheSamePolicy) {
  check_property(300, [](std::uint64_t seed, std::vector<std::uint64_t> words) {
    for (const std::string name : {"least_tokens", "br_0", "br_h", "br_fit"}) {
      WorldShadow world{"fleet", policy(name), seed, {}};
      Traffic traffic{name, seed, &world};
      world.watch(traffic.router);
      traffic.add_workers();
      for (const std::uint64_t word : words) {
        traffic.act(word);
        const auto here = traffic.router.ledger().view(GroupId{0}).loads;
        const auto there = world.router().ledger().view(GroupId{0}).loads;
        require(std::ranges::equal(here, there));
        require(world.router().waiting() == traffic.router.waiting());
      }
      RC_ASSERT(world.here()[0].envelope == world.there()[0].envelope);
      RC_ASSERT(world.here()[0].mean_load == world.there()[0].mean_load);
    }
  });
}

}  // namespace
}  // namespace balanceroute
