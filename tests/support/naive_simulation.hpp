// naive_simulation.hpp - the simulator written the slow obvious way, to be compared with the fast one.
//
// Everything is counted anew whenever it is asked for, by going through all requests; no ledger, no router, no
// calendar, no engine. Only the policy itself is shared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/group_view.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "policy/policy.hpp"
#include "sim/fleet.hpp"
#include "sim/request_stream.hpp"

namespace balanceroute {

class NaiveSimulation {
 public:
  struct Step {
    std::size_t group = 0;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::vector<std::int64_t> loads;
    std::int64_t active = 0;
    bool measured = false;

    friend bool operator==(const Step&, const Step&) = default;
  };

  NaiveSimulation(const sim::Fleet& fleet, std::unique_ptr<Policy> policy, std::vector<sim::Arrival> arrivals,
                  std::uint64_t seed)
      : fleet_{fleet},
        policy_{std::move(policy)},
        random_{seed},
        arrivals_{std::move(arrivals)},
        groups_(fleet.groups) {
    for (const sim::Arrival& arrival : arrivals_) requests_.push_back({.arrival = arrival});
  }

  // Before run(): a request that runs already.
  void start_with(std::size_t group, std::size_t worker, Tokens prompt, Tokens output, Tokens age) {
    requests_.push_back({.arrival = {.prompt = prompt, .output = output},
                         .state = State::running,
                         .group = group,
                         .worker = worker,
                         .generated = age.count(),
                         .timed = false});
    groups_[group].wake_ns = 0;
    tell_admitted(requests_.size() - 1);
    policy_->aged(RequestId{requests_.size() - 1}, age);
  }

  // Every step, in order.
  std::vector<Step> run() {
    while (arrived_ < arrivals_.size()) act();
    return steps_;
  }

  // Of the measured window, in milliseconds.
  std::vector<double> waits;
  std::vector<double> ttfts;
  std::vector<double> tpots;

 private:
  enum class State : std::uint8_t { coming, waiting, running, gone };

  struct Request {
    sim::Arrival arrival;
    State state = State::coming;
    std::size_t group = 0;   // while running, or bound
    std::size_t worker = 0;  // position in the group
    bool bound = false;      // waits in its worker's own queue
    std::int32_t passes = 0;
    std::int64_t generated = 0;
    std::int64_t first_token_ns = 0;
    bool timed = true;
  };

  struct Group {
    std::optional<std::int64_t> wake_ns;  // none: sleeps until a request arrives
    bool stepping = false;
    bool measured = false;
  };

  [[nodiscard]] bool measuring() const { return arrived_ > arrivals_.size() / 10; }

  [[nodiscard]] std::int64_t load(std::size_t group, std::size_t worker) const {
    std::int64_t sum = 0;
    for (const Request& request : requests_) {
      if (request.state == State::running && request.group == group && request.worker == worker) {
        sum += request.arrival.prompt.count() + request.generated;
      }
    }
    return sum;
  }
  [[nodiscard]] std::int64_t active(std::size_t group, std::size_t worker) const {
    return std::ranges::count_if(requests_, [&](const Request& request) {
      return request.state == State::running && request.group == group && request.worker == worker;
    });
  }
  [[nodiscard]] std::int64_t load(std::size_t group) const {
    std::int64_t sum = 0;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) sum += load(group, worker);
    return sum;
  }

  // --- the policy's eyes ---

  struct Arrays {
    std::vector<WorkerId> workers;
    std::vector<Tokens> loads;
    std::vector<std::int32_t> slots, free_slots, sequences;
    std::vector<std::uint8_t> eligible;
  };

  [[nodiscard]] Arrays arrays(std::size_t group) const {
    Arrays all;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      const auto running = static_cast<std::int32_t>(active(group, worker));
      all.workers.emplace_back(static_cast<std::uint32_t>(group * fleet_.workers + worker));
      all.loads.emplace_back(load(group, worker));
      all.slots.push_back(fleet_.slots);
      all.free_slots.push_back(fleet_.slots - running);
      all.sequences.push_back(running);
      all.eligible.push_back(1);
    }
    return all;
  }
  [[nodiscard]] static GroupView view(std::size_t group, const Arrays& arrays) {
    return {.group = GroupId{static_cast<std::uint32_t>(group)},
            .workers = arrays.workers,
            .loads = arrays.loads,
            .slots = arrays.slots,
            .free_slots = arrays.free_slots,
            .sequences = arrays.sequences,
            .eligible = arrays.eligible};
  }
  [[nodiscard]] Candidate candidate(std::size_t index) const {
    const Request& request = requests_[index];
    return {.request = {.id = RequestId{index}, .prompt = request.arrival.prompt},
            .weight = request.arrival.prompt,
            .serial = index,
            .passes = request.passes};
  }

  // --- what happens ---

  void act() {
    const std::optional<std::size_t> group = next_group();
    const std::int64_t next_arrival = arrivals_[arrived_].at.count();
    const bool asleep = std::ranges::any_of(groups_, [](const Group& each) { return !each.wake_ns; });
    if (!group || (asleep && next_arrival < *groups_[*group].wake_ns)) {
      arrive(next_arrival);
    } else {
      wake(*group, *groups_[*group].wake_ns);
    }
  }

  [[nodiscard]] std::optional<std::size_t> next_group() const {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].wake_ns) continue;
      if (!next || std::pair{*groups_[i].wake_ns, load(i)} < std::pair{*groups_[*next].wake_ns, load(*next)}) next = i;
    }
    return next;
  }

  // All that has come by now.
  void arrive(std::int64_t now_ns) {
    if (arrivals_[arrived_].at.count() > now_ns) return;
    for (; arrived_ < arrivals_.size() && arrivals_[arrived_].at.count() <= now_ns; ++arrived_) {
      requests_[arrived_].state = State::waiting;
      policy_->arrived(candidate(arrived_));
      if (policy_->binding() == Binding::immediate) bind(arrived_);
    }
    for (Group& group : groups_) {
      if (!group.wake_ns) group.wake_ns = now_ns;
    }
  }

  void bind(std::size_t index) {
    std::vector<Arrays> all;
    for (std::size_t group = 0; group < fleet_.groups; ++group) all.push_back(arrays(group));
    std::vector<GroupView> views;
    for (std::size_t group = 0; group < fleet_.groups; ++group) views.push_back(view(group, all[group]));
    std::vector<Queued> queued(fleet_.all_workers());
    for (const Request& request : requests_) {
      if (request.state != State::waiting || !request.bound) continue;
      Queued& at = queued[request.group * fleet_.workers + request.worker];
      at.load += request.arrival.prompt;
      at.sequences += 1;
    }
    auto& policy = dynamic_cast<ImmediatePolicy&>(*policy_);
    const auto worker = policy.bind({.groups = views, .queued = queued}, candidate(index), random_);
    requests_[index].bound = true;
    requests_[index].group = worker->value() / fleet_.workers;
    requests_[index].worker = worker->value() % fleet_.workers;
  }

  void wake(std::size_t group, std::int64_t now_ns) {
    if (groups_[group].stepping) finish_step(group, now_ns);
    arrive(now_ns);
    if (arrived_ == arrivals_.size()) return;
    if (policy_->binding() == Binding::immediate) {
      serve_queues(group, now_ns);
    } else {
      serve_pool(group, now_ns);
    }
    start_step(group, now_ns);
  }

  void tell_admitted(std::size_t index) {
    const Request& request = requests_[index];
    policy_->admitted(
        {.id = RequestId{index}, .prompt = request.arrival.prompt, .generated = Tokens{request.generated}},
        GroupId{static_cast<std::uint32_t>(request.group)},
        WorkerId{static_cast<std::uint32_t>(request.group * fleet_.workers + request.worker)});
  }

  void finish_step(std::size_t group, std::int64_t now_ns) {
    policy_->stepped(GroupId{static_cast<std::uint32_t>(group)}, Steps{1});
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      Request& request = requests_[i];
      if (request.state != State::running || request.group != group) continue;
      if (++request.generated < request.arrival.output.count()) continue;
      request.state = State::gone;
      policy_->left(RequestId{i}, Tokens{request.generated}, LeaseEnd::finished);
      const std::int64_t after_first = request.arrival.output.count() - 1;
      if (!request.timed || !groups_[group].measured || after_first == 0) continue;
      tpots.push_back(static_cast<double>(now_ns - request.first_token_ns) / 1e6 / static_cast<double>(after_first));
    }
  }

  void serve_queues(std::size_t group, std::int64_t now_ns) {
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      for (std::size_t i = 0; i < requests_.size() && active(group, worker) < fleet_.slots; ++i) {
        const Request& request = requests_[i];
        const bool here = request.bound && request.group == group && request.worker == worker;
        if (request.state == State::waiting && here) start(i, group, worker, now_ns);
      }
    }
  }

  void serve_pool(std::size_t group, std::int64_t now_ns) {
    std::vector<Candidate> pool;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].state == State::waiting) pool.push_back(candidate(i));
    }
    if (pool.empty()) return;
    std::vector<Arrays> all;
    for (std::size_t each = 0; each < fleet_.groups; ++each) all.push_back(arrays(each));
    std::vector<GroupView> views;
    for (std::size_t each = 0; each < fleet_.groups; ++each) views.push_back(view(each, all[each]));
    std::vector<Choice> choices;
    dynamic_cast<PooledPolicy&>(*policy_).decide({.group = views[group], .pool = pool, .groups = views}, random_,
                                                 choices);
    for (const Choice& choice : choices) {
      const std::size_t admitted = pool[choice.candidate].request.id.value();
      start(admitted, group, choice.worker, now_ns);
      for (std::size_t older = 0; older < admitted; ++older) {
        // Those that stay behind; the ones admitted in this round lose nothing by it.
        requests_[older].passes += 1;
      }
    }
  }

  void start(std::size_t index, std::size_t group, std::size_t worker, std::int64_t now_ns) {
    Request& request = requests_[index];
    request.state = State::running;
    request.group = group;
    request.worker = worker;
    request.first_token_ns = -1;
    tell_admitted(index);
    if (measuring()) waits.push_back(static_cast<double>(now_ns - request.arrival.at.count()) / 1e6);
  }

  void start_step(std::size_t group, std::int64_t now_ns) {
    Step step{.group = group, .start_ns = now_ns, .measured = measuring()};
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      step.loads.push_back(load(group, worker));
      step.active += active(group, worker);
    }
    const std::int64_t duration = fleet_.step_time.duration(Tokens{std::ranges::max(step.loads)}).count();
    Group& its = groups_[group];
    its.stepping = step.active > 0;
    its.measured = step.measured;
    if (!its.stepping) {
      its.wake_ns.reset();
      return;
    }
    its.wake_ns = now_ns + duration;
    step.duration_ns = duration;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      Request& request = requests_[i];
      if (request.state != State::running || request.group != group || request.first_token_ns != -1) continue;
      request.first_token_ns = *its.wake_ns;
      policy_->aged(RequestId{i}, Tokens{0});
      if (step.measured) ttfts.push_back(static_cast<double>(*its.wake_ns - request.arrival.at.count()) / 1e6);
    }
    steps_.push_back(std::move(step));
  }

  sim::Fleet fleet_;
  std::unique_ptr<Policy> policy_;
  Random random_;
  std::vector<sim::Arrival> arrivals_;
  std::size_t arrived_ = 0;
  std::vector<Request> requests_;  // those that arrive, by arrival, then those that ran from the start
  std::vector<Group> groups_;
  std::vector<Step> steps_;
};

}  // namespace balanceroute
