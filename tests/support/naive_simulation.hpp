// naive_simulation.hpp - the simulator written the slow obvious way, to be compared with the fast one.
//
// Everything is counted anew whenever it is asked for, by going through all requests; no ledger, no router, no
// calendar, no engine group. Only the policy itself is shared, and the prefill stage, which is slow and obvious
// already.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/group_view.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "engine/prefill_stage.hpp"
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
    if (fleet.prefill) prefill_.emplace(*fleet.prefill);
    for (const sim::Arrival& arrival : arrivals_) requests_.push_back({.arrival = arrival});
  }

  // Before run(): a request that runs already, if its worker has KV space for it.
  void start_with(std::size_t group, std::size_t worker, const trace::TraceRequest& request, Tokens age) {
    const bool fits = in_blocks(request.prompt.count() + age.count()) <= kv_free(group, worker);
    requests_.push_back({.arrival = {.at = {},
                                     .prompt = request.prompt,
                                     .output = request.output,
                                     .prompt_key = trace::prompt_key(request)},
                         .state = fits ? State::queued : State::gone,
                         .group = group,
                         .worker = worker,
                         .generated = age.count(),
                         .booked = age.count(),
                         .growing = fits,
                         .place = static_cast<std::int64_t>(requests_.size()),
                         .timed = false});
    if (!fits) return;
    groups_[group].wake_ns = 0;
    tell_admitted(requests_.size() - 1);
    policy_->aged(RequestId{requests_.size() - 1}, age);
  }

  // Every step, in order.
  std::vector<Step> run() {
    while (arrived_ < arrivals_.size()) act();
    return steps_;
  }

  // Of the measured window; times in milliseconds.
  std::vector<double> waits;
  std::vector<double> ttfts;
  std::vector<double> tpots;
  std::int64_t preemptions = 0;

 private:
  // prefilling: arrived, not yet with the router. waiting: the router has no slot for it. handover: it has a slot and
  // is not there. queued: it is there, not running.
  enum class State : std::uint8_t { coming, prefilling, waiting, handover, queued, running, gone };

  struct Request {
    sim::Arrival arrival;
    State state = State::coming;
    std::size_t group = 0;   // once it has, or is bound to, a worker
    std::size_t worker = 0;  // position in the group
    bool bound = false;      // to its worker, on arrival
    bool late = false;       // has waited for too long
    std::int32_t passes = 0;
    std::int64_t serial = 0;     // order of reaching the router
    std::int64_t generated = 0;  // truly
    std::int64_t booked = 0;     // as the router counts
    bool growing = false;        // the router counts on
    std::int64_t prefilled_ns = 0;
    std::size_t prefiller = 0;
    std::int64_t due_ns = 0;          // end of the handover
    std::int64_t place = 0;           // in its worker's queue
    std::int64_t entry = 0;           // order of getting slots
    std::int64_t first_token_ns = 0;  // 0: it has had no slot
    bool preempted = false;           // and not running again
    bool timed = true;
  };

  struct Group {
    std::optional<std::int64_t> wake_ns;  // none: sleeps until a request comes
    bool stepping = false;
    bool measured = false;
    std::int64_t steps = 0;  // done
  };

  [[nodiscard]] bool measuring() const { return arrived_ > arrivals_.size() / 10; }

  [[nodiscard]] static bool is_at(const Request& request, std::size_t group, std::size_t worker) {
    return request.group == group && request.worker == worker;
  }
  [[nodiscard]] static bool holds_slot(const Request& request) {
    return request.state == State::handover || request.state == State::queued || request.state == State::running;
  }

  // Requests in that state on that worker.
  [[nodiscard]] std::vector<std::size_t> in_state(State state, std::size_t group, std::size_t worker) const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].state == state && is_at(requests_[i], group, worker)) all.push_back(i);
    }
    return all;
  }
  [[nodiscard]] std::vector<std::size_t> running(std::size_t group, std::size_t worker) const {
    return in_state(State::running, group, worker);
  }
  [[nodiscard]] std::int64_t tokens_of(std::size_t index) const {
    return requests_[index].arrival.prompt.count() + requests_[index].generated;
  }
  [[nodiscard]] std::int64_t weight(std::int64_t tokens) const {
    return fleet_.load_model.weight_of(Tokens{tokens}).count();
  }
  [[nodiscard]] std::int64_t load(std::size_t group, std::size_t worker) const {
    std::int64_t sum = 0;
    for (const std::size_t i : running(group, worker)) sum += weight(tokens_of(i));
    return sum;
  }
  // KV space of those in that state, each with the most that it may be about to generate.
  [[nodiscard]] std::int64_t space_of(std::size_t group, std::size_t worker, State state) const {
    std::int64_t sum = 0;
    for (const std::size_t i : in_state(state, group, worker)) sum += in_blocks(tokens_of(i) + most_growth());
    return sum;
  }
  [[nodiscard]] std::int64_t most_growth() const { return std::llround(std::ceil(fleet_.tokens_per_step)); }
  // Tokens of a sequence in so many steps.
  [[nodiscard]] std::int64_t tokens_in(std::int64_t steps) const {
    return static_cast<std::int64_t>(std::floor(fleet_.tokens_per_step * static_cast<double>(steps)));
  }
  [[nodiscard]] std::int64_t in_blocks(std::int64_t tokens) const {
    const std::int64_t block = fleet_.kv_block.count();
    return (tokens + block - 1) / block * block;
  }

  // --- the router's books, as the policy sees them ---

  [[nodiscard]] std::int64_t booked_load(std::size_t group, std::size_t worker) const {
    std::int64_t sum = 0;
    for (const Request& request : requests_) {
      if (holds_slot(request) && is_at(request, group, worker)) {
        sum += weight(request.arrival.prompt.count() + request.booked);
      }
    }
    return sum;
  }
  [[nodiscard]] std::int64_t booked_load(std::size_t group) const {
    std::int64_t sum = 0;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) sum += booked_load(group, worker);
    return sum;
  }
  [[nodiscard]] std::int32_t slots_held(std::size_t group, std::size_t worker) const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        requests_, [&](const Request& request) { return holds_slot(request) && is_at(request, group, worker); }));
  }

  // Less than the space of an idle worker by what is booked on it.
  [[nodiscard]] std::int64_t kv_space() const {
    const bool limited = fleet_.kv.capacity != kUnlimitedKv;
    return limited ? (fleet_.kv.capacity - fleet_.kv.reserve).count() : kUnlimitedKv.count();
  }
  [[nodiscard]] std::int64_t kv_free(std::size_t group, std::size_t worker) const {
    std::int64_t left = kv_space();
    if (fleet_.kv.capacity == kUnlimitedKv) return left;
    for (const Request& request : requests_) {
      if (!holds_slot(request) || !is_at(request, group, worker)) continue;
      left -= in_blocks(request.arrival.prompt.count() + request.booked);
    }
    return left;
  }
  [[nodiscard]] bool has_room(std::size_t index, std::size_t group, std::size_t worker) const {
    return slots_held(group, worker) < fleet_.slots &&
           in_blocks(requests_[index].arrival.prompt.count()) <= kv_free(group, worker);
  }

  struct Arrays {
    std::vector<WorkerId> workers;
    std::vector<Tokens> loads;
    std::vector<std::int32_t> slots, free_slots, sequences;
    std::vector<Tokens> kv_free, kv_space;
    std::vector<std::uint8_t> eligible;
  };

  [[nodiscard]] Arrays arrays(std::size_t group) const {
    Arrays all;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      const std::int32_t held = slots_held(group, worker);
      all.workers.emplace_back(static_cast<std::uint32_t>(group * fleet_.workers + worker));
      all.loads.emplace_back(booked_load(group, worker));
      all.slots.push_back(fleet_.slots);
      all.free_slots.push_back(fleet_.slots - held);
      all.sequences.push_back(held);
      all.kv_free.emplace_back(kv_free(group, worker));
      all.kv_space.emplace_back(kv_space());
      all.eligible.push_back(1);
    }
    return all;
  }
  [[nodiscard]] std::vector<Arrays> all_arrays() const {
    std::vector<Arrays> all;
    for (std::size_t group = 0; group < fleet_.groups; ++group) all.push_back(arrays(group));
    return all;
  }
  [[nodiscard]] static std::vector<GroupView> views_of(const std::vector<Arrays>& all) {
    std::vector<GroupView> views;
    for (std::size_t group = 0; group < all.size(); ++group) {
      views.push_back({.group = GroupId{static_cast<std::uint32_t>(group)},
                       .workers = all[group].workers,
                       .loads = all[group].loads,
                       .slots = all[group].slots,
                       .free_slots = all[group].free_slots,
                       .sequences = all[group].sequences,
                       .kv_free = all[group].kv_free,
                       .kv_space = all[group].kv_space,
                       .eligible = all[group].eligible});
    }
    return views;
  }
  [[nodiscard]] Candidate candidate(std::size_t index) const {
    const Request& request = requests_[index];
    return {
        .request = {.id = RequestId{index}, .prompt = request.arrival.prompt, .prompt_key = request.arrival.prompt_key},
        .weight = Tokens{weight(request.arrival.prompt.count())},
        .kv = Tokens{in_blocks(request.arrival.prompt.count())},
        .serial = static_cast<std::uint64_t>(request.serial),
        .passes = request.passes,
        .late = request.late,
        .since = std::chrono::nanoseconds{request.prefilled_ns}};
  }
  // Those that wait, in the order in which they reached the router.
  [[nodiscard]] std::vector<std::size_t> waiting() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].state == State::waiting) all.push_back(i);
    }
    std::ranges::sort(all, {}, [this](std::size_t i) { return requests_[i].serial; });
    return all;
  }

  // --- what happens ---

  void act() {
    const std::optional<std::size_t> group = next_group();
    const bool asleep = std::ranges::any_of(groups_, [](const Group& each) { return !each.stepping; });
    if (!group || (asleep && next_event_ns() < *groups_[*group].wake_ns)) {
      take_requests(next_event_ns());
    } else {
      wake(*group, *groups_[*group].wake_ns);
    }
  }

  [[nodiscard]] std::optional<std::size_t> next_group() const {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].wake_ns) continue;
      if (!next ||
          std::pair{*groups_[i].wake_ns, booked_load(i)} < std::pair{*groups_[*next].wake_ns, booked_load(*next)}) {
        next = i;
      }
    }
    return next;
  }

  [[nodiscard]] std::int64_t next_event_ns() const {
    const std::int64_t arrival = arrivals_[arrived_].at.count();
    const auto prompt = prefill_ ? prefill_->next() : std::nullopt;
    return prompt ? std::min(arrival, prompt->count()) : arrival;
  }

  // All that has come by now.
  void take_requests(std::int64_t now_ns) {
    const std::int64_t before = serials_;
    while (arrived_ < arrivals_.size() && next_event_ns() <= now_ns) {
      const auto prompt = prefill_ ? prefill_->next() : std::nullopt;
      if (prompt && prompt->count() <= arrivals_[arrived_].at.count()) {
        const auto ready = prefill_->pop();
        requests_[ready.id.value()].prefiller = ready.instance;
        reach_router(ready.id.value(), ready.at.count());
      } else {
        arrive(arrived_++);
      }
    }
    for (Group& group : groups_) {
      if (serials_ > before && !group.stepping) group.wake_ns = now_ns;
    }
  }

  void arrive(std::size_t index) {
    const sim::Arrival& arrival = arrivals_[index];
    if (!prefill_) return reach_router(index, arrival.at.count());
    requests_[index].state = State::prefilling;
    prefill_->submit(RequestId{index}, arrival.prompt, arrival.at);
  }

  void reach_router(std::size_t index, std::int64_t now_ns) {
    Request& request = requests_[index];
    request.state = State::waiting;
    request.prefilled_ns = now_ns;
    request.serial = serials_++;
    policy_->arrived(candidate(index));
    if (policy_->binding() == Binding::immediate) bind(index);
  }

  void bind(std::size_t index) {
    const std::vector<Arrays> all = all_arrays();
    const std::vector<GroupView> views = views_of(all);
    std::vector<Queued> queued(fleet_.all_workers());
    for (const Request& request : requests_) {
      if (request.state != State::waiting || !request.bound) continue;
      Queued& at = queued[request.group * fleet_.workers + request.worker];
      at.load += Tokens{weight(request.arrival.prompt.count())};
      at.kv += Tokens{in_blocks(request.arrival.prompt.count())};
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
    groups_[group].stepping = true;  // it is up: requests do not wake it once more
    take_requests(now_ns);
    if (arrived_ == arrivals_.size()) return;
    find_late(now_ns);
    if (policy_->binding() == Binding::immediate) {
      serve_queues(group, now_ns);
    } else {
      serve_pool(group, now_ns);
    }
    end_handovers(group, now_ns);
    start_step(group, now_ns);
  }

  void tell_admitted(std::size_t index) {
    const Request& request = requests_[index];
    policy_->admitted({.id = RequestId{index},
                       .prompt = request.arrival.prompt,
                       .generated = Tokens{request.booked},
                       .prompt_key = request.arrival.prompt_key},
                      GroupId{static_cast<std::uint32_t>(request.group)},
                      WorkerId{static_cast<std::uint32_t>(request.group * fleet_.workers + request.worker)});
  }

  void finish_step(std::size_t group, std::int64_t now_ns) {
    const std::int64_t grown = tokens_in(groups_[group].steps + 1) - tokens_in(groups_[group].steps);
    ++groups_[group].steps;
    for (Request& request : requests_) {
      if (request.group != group || !holds_slot(request)) continue;
      if (request.state == State::running) request.generated += grown;
      if (request.growing) request.booked += grown;
    }
    policy_->stepped(GroupId{static_cast<std::uint32_t>(group)}, Steps{grown});
    std::vector<std::size_t> ended;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Request& request = requests_[i];
      const bool runs = request.state == State::running && request.group == group;
      if (runs && request.generated >= request.arrival.output.count()) ended.push_back(i);
    }
    std::ranges::sort(ended, {}, [this](std::size_t i) {
      return std::pair{requests_[i].arrival.output.count() - requests_[i].generated, requests_[i].entry};
    });
    for (const std::size_t i : ended) finish(i, groups_[group].measured, now_ns);
  }

  void finish(std::size_t index, bool measured, std::int64_t now_ns) {
    Request& request = requests_[index];
    request.state = State::gone;
    policy_->left(RequestId{index}, request.arrival.output, LeaseEnd::finished);
    const std::int64_t after_first = request.arrival.output.count() - 1;
    if (!request.timed || !measured || after_first == 0) return;
    tpots.push_back(static_cast<double>(now_ns - request.first_token_ns) / 1e6 / static_cast<double>(after_first));
  }

  void serve_queues(std::size_t group, std::int64_t now_ns) {
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      for (const std::size_t i : waiting()) {
        if (!is_at(requests_[i], group, worker)) continue;
        if (!has_room(i, group, worker)) break;
        admit(i, group, worker, requests_[i].prefilled_ns, now_ns);
      }
    }
  }

  // How long a request may wait now: what Patience says, from the list of all admissions.
  [[nodiscard]] std::int64_t patience_ns(std::int64_t now_ns) const {
    if (fleet_.max_wait) return fleet_.max_wait->count();
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t first_second = now_ns / kSecond - 15;
    const std::int64_t count =
        std::ranges::count_if(admitted_ns_, [&](std::int64_t admitted) { return admitted / kSecond >= first_second; });
    if (count == 0) return 10 * kSecond;
    const std::int64_t watched = now_ns - std::max(*first_round_ns_, first_second * kSecond);
    return std::max(10 * kSecond, 4 * std::ssize(waiting()) * watched / count);
  }

  void find_late(std::int64_t now_ns) {
    if (!first_round_ns_) first_round_ns_ = now_ns;
    const std::int64_t limit = patience_ns(now_ns);
    for (const std::size_t i : waiting()) {
      if (now_ns - requests_[i].prefilled_ns > limit) requests_[i].late = true;
    }
  }

  // Late ones in order, each to the least loaded worker with room; the worker that is kept for one that finds none.
  std::optional<std::size_t> serve_late(std::size_t group, std::int64_t now_ns) {
    for (const std::size_t i : waiting()) {
      if (!requests_[i].late) return std::nullopt;
      std::optional<std::size_t> taker;
      for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
        if (!has_room(i, group, worker)) continue;
        if (!taker || booked_load(group, worker) < booked_load(group, *taker)) taker = worker;
      }
      if (!taker) return keep_for(i, group);
      admit(i, group, *taker, now_ns, now_ns);
    }
    return std::nullopt;
  }

  std::size_t keep_for(std::size_t index, std::size_t group) {
    constexpr auto kNone = static_cast<std::size_t>(-1);
    auto& [request, kept] = kept_.try_emplace(group, kNone, 0).first->second;
    if (request == index) return kept;
    request = index;
    kept = 0;
    const auto rank = [&](std::size_t worker) {
      return std::tuple{-slots_held(group, worker), kv_free(group, worker), -booked_load(group, worker)};
    };
    for (std::size_t worker = 1; worker < fleet_.workers; ++worker) {
      if (rank(worker) > rank(kept)) kept = worker;
    }
    return kept;
  }

  void serve_pool(std::size_t group, std::int64_t now_ns) {
    const std::optional<std::size_t> kept = serve_late(group, now_ns);
    std::vector<Candidate> pool;
    for (const std::size_t i : waiting()) pool.push_back(candidate(i));
    if (pool.empty()) return;
    const std::vector<Arrays> all = all_arrays();
    const std::vector<GroupView> views = views_of(all);
    GroupView usable = views[group];
    std::vector<std::uint8_t> eligible = all[group].eligible;
    if (kept) eligible[*kept] = 0;
    usable.eligible = eligible;
    std::vector<Choice> choices;
    dynamic_cast<PooledPolicy&>(*policy_).decide({.group = usable, .pool = pool, .groups = views}, random_, choices);
    for (const Choice& choice : choices) {
      const std::size_t admitted = pool[choice.candidate].request.id.value();
      if (!has_room(admitted, group, choice.worker)) continue;
      admit(admitted, group, choice.worker, now_ns, now_ns);
      for (const std::size_t still : waiting()) {
        if (requests_[still].serial < requests_[admitted].serial) requests_[still].passes += 1;
      }
    }
  }

  void admit(std::size_t index, std::size_t group, std::size_t worker, std::int64_t handover_ns, std::int64_t now_ns) {
    Request& request = requests_[index];
    admitted_ns_.push_back(now_ns);
    request.state = State::handover;
    request.group = group;
    request.worker = worker;
    // One that was bound long ago is there by now.
    request.due_ns = std::max(now_ns, handover_ns + fleet_.admission_delay.duration(request.arrival.prompt).count());
    tell_admitted(index);
    if (measuring()) waits.push_back(static_cast<double>(now_ns - request.prefilled_ns) / 1e6);
  }

  void end_handovers(std::size_t group, std::int64_t now_ns) {
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Request& request = requests_[i];
      if (request.state == State::handover && request.group == group && request.due_ns <= now_ns) done.push_back(i);
    }
    std::ranges::sort(done, {}, [this](std::size_t i) { return std::pair{requests_[i].due_ns, i}; });
    for (const std::size_t i : done) {
      requests_[i].state = State::queued;
      requests_[i].place = last_place_++;
      if (!prefill_) continue;
      prefill_->pulled(requests_[i].prefiller, requests_[i].arrival.prompt, std::chrono::nanoseconds{now_ns});
    }
  }

  void start_step(std::size_t group, std::int64_t now_ns) {
    std::vector<std::size_t> entered;
    Step step{.group = group, .start_ns = now_ns, .duration_ns = 0, .loads = {}, .measured = measuring()};
    std::int64_t preempted = 0;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      preempted += preempt(group, worker);
      fill_slots(group, worker, entered);
      step.loads.push_back(load(group, worker));
      step.active += std::ssize(running(group, worker));
    }
    Group& its = groups_[group];
    its.measured = step.measured;
    its.stepping = step.active > 0;
    if (!its.stepping) return fall_asleep(group, now_ns);
    step.duration_ns = duration_ns(group, step.loads, entered);
    its.wake_ns = now_ns + step.duration_ns;
    if (step.measured) preemptions += preempted;
    for (const std::size_t i : entered) note_entry(i, *its.wake_ns, step.measured);
    steps_.push_back(std::move(step));
  }

  // Of the worker that needs longest, what it computes anew included.
  [[nodiscard]] std::int64_t duration_ns(std::size_t group, const std::vector<std::int64_t>& loads,
                                         const std::vector<std::size_t>& entered) {
    double longest = 0;
    for (std::size_t worker = 0; worker < fleet_.workers; ++worker) {
      std::int64_t anew = 0;
      for (const std::size_t i : entered) {
        if (is_at(requests_[i], group, worker) && requests_[i].preempted) anew += tokens_of(i);
      }
      const double reading = fleet_.step_ms(static_cast<double>(loads[worker]));
      longest = std::max(longest, reading + fleet_.recompute_per_token_ms * static_cast<double>(anew));
    }
    for (const std::size_t i : entered) requests_[i].preempted = false;
    return std::llround(longest * 1e6);
  }

  std::int64_t preempt(std::size_t group, std::size_t worker) {
    std::int64_t count = 0;
    while (running(group, worker).size() > 1 && space_of(group, worker, State::running) > fleet_.kv.capacity.count()) {
      const auto youngest =
          std::ranges::max(running(group, worker), {}, [this](std::size_t i) { return requests_[i].entry; });
      requests_[youngest].state = State::queued;
      requests_[youngest].preempted = true;
      requests_[youngest].place = first_place_--;
      ++count;
    }
    return count;
  }

  void fill_slots(std::size_t group, std::size_t worker, std::vector<std::size_t>& entered) {
    while (std::ssize(running(group, worker)) < fleet_.slots) {
      const auto queue = in_state(State::queued, group, worker);
      if (queue.empty()) return;
      const auto first = std::ranges::min(queue, {}, [this](std::size_t i) { return requests_[i].place; });
      const std::int64_t space = space_of(group, worker, State::running) + in_blocks(tokens_of(first) + most_growth());
      if (!running(group, worker).empty() && space > fleet_.kv.capacity.count()) return;
      requests_[first].state = State::running;
      requests_[first].entry = ++entries_;
      entered.push_back(first);
    }
  }

  void note_entry(std::size_t index, std::int64_t token_ns, bool measured) {
    Request& request = requests_[index];
    if (request.first_token_ns != 0) {  // preempted before: its first report corrects the books
      request.booked = request.generated;
      policy_->aged(RequestId{index}, Tokens{request.generated});
      return;
    }
    request.first_token_ns = token_ns;
    if (!request.timed) return;
    request.growing = true;
    policy_->aged(RequestId{index}, Tokens{0});
    if (measured) ttfts.push_back(static_cast<double>(token_ns - request.arrival.at.count()) / 1e6);
  }

  // Until a request comes, a handover ends, or an empty step has passed with requests that the policy left waiting.
  void fall_asleep(std::size_t group, std::int64_t now_ns) {
    std::optional<std::int64_t> wake_ns;
    const auto wake_by = [&wake_ns](std::int64_t at_ns) { wake_ns = wake_ns ? std::min(*wake_ns, at_ns) : at_ns; };
    for (const Request& request : requests_) {
      if (request.state == State::handover && request.group == group) wake_by(request.due_ns);
    }
    const std::int64_t empty_step = fleet_.empty_step().count();
    if (policy_->binding() == Binding::pooled && !waiting().empty() && empty_step > 0) wake_by(now_ns + empty_step);
    groups_[group].wake_ns = wake_ns;
  }

  sim::Fleet fleet_;
  std::unique_ptr<Policy> policy_;
  Random random_;
  std::vector<sim::Arrival> arrivals_;
  std::optional<engine::PrefillStage> prefill_;
  std::size_t arrived_ = 0;
  std::vector<Request> requests_;  // those that arrive, by arrival, then those that ran from the start
  std::vector<Group> groups_;
  std::vector<Step> steps_;
  std::vector<std::int64_t> admitted_ns_;
  std::optional<std::int64_t> first_round_ns_;
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> kept_;  // by group: request and worker
  std::int64_t serials_ = 0;
  std::int64_t entries_ = 0;
  std::int64_t first_place_ = -1;
  std::int64_t last_place_ = std::int64_t{1} << 32;  // behind those that ran from the start
};

}  // namespace balanceroute
