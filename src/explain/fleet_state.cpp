#include "explain/fleet_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "policy/registry.hpp"

namespace balanceroute::explain {

namespace {

using std::chrono::nanoseconds;

RunningState running_of(const LeaseRecord& lease) {
  return {.request = static_cast<std::int64_t>(lease.request.id.value()),
          .prompt = lease.request.prompt.count(),
          .generated = lease.generated.count(),
          .sequences = lease.request.sequences,
          .output_limit = lease.request.output_limit.count(),
          .started = lease.state == LeaseState::running};
}

WaitingState waiting_of(const Candidate& candidate, nanoseconds now) {
  const std::chrono::duration<double, std::milli> waited = now - candidate.since;
  return {.request = static_cast<std::int64_t>(candidate.request.id.value()),
          .prompt = candidate.request.prompt.count(),
          .sequences = candidate.request.sequences,
          .output_limit = candidate.request.output_limit.count(),
          .priority = candidate.request.priority,
          .waited_ms = waited.count()};
}

// Within the ranges that are declared.
std::int32_t small(std::int64_t number) {
  return static_cast<std::int32_t>(number);
}

nanoseconds waited(const WaitingState& one) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double, std::milli>{one.waited_ms});
}

std::string_view reason(SubmitError error) {
  switch (error) {
    case SubmitError::NoWorkerReady:
      return "no worker takes requests";
    case SubmitError::TooManySequences:
      return "it has more sequences than any worker has slots";
    case SubmitError::ExceedsKvSpace:
      return "it needs more KV space than any worker has";
    default:
      return "its sizes cannot be";
  }
}

// Fills a FleetModel.
class Maker {
 public:
  explicit Maker(const FleetState& state) : state_{state} {}

  std::expected<FleetModel, std::string> make() {
    auto policy = make_policy(policy_params(), {.load_model = state_.load_model.model()});
    if (!policy) return std::unexpected(policy.error());
    model_.router = std::make_unique<Router>(
        state_.fleet, *std::move(policy), 0,
        RouterSettings{.books = {.load_model = state_.load_model.model(), .kv_block = Tokens{state_.kv_block}},
                       .max_wait = state_.policy.max_wait()});
    for (const GroupSnapshot& group : state_.groups) {
      if (auto added = add(group); !added) return std::unexpected(added.error());
    }
    submit();
    return std::move(model_);
  }

 private:
  [[nodiscard]] PolicyParams policy_params() const {
    return chosen_for(state_.policy, std::ranges::all_of(state_.groups, [this](const GroupSnapshot& group) {
                        return state_.barrier && group.workers.size() > 1;
                      }));
  }

  std::expected<void, std::string> add(const GroupSnapshot& group) {
    const GroupId id = model_.router->add_group(group.name, state_.barrier);
    for (const WorkerSnapshot& worker : group.workers) {
      const bool limited = worker.kv_space != WorkerSnapshot::kUnlimited;
      const KvSpace kv{.capacity = limited ? Tokens{worker.kv_space} : kUnlimitedKv};
      const auto added = model_.router->add_worker(id, worker.url, small(worker.rank),
                                                   {small(worker.slots), small(worker.slots_ahead)}, kv);
      if (!added) {
        return std::unexpected(
            fmt::format("group {}: worker {} rank {} is there twice", group.name, worker.url, worker.rank));
      }
      if (auto held = run(worker, *added); !held) return held;
      if (!worker.takes_requests) (void)model_.router->drain(*added);
    }
    return {};
  }

  std::expected<void, std::string> run(const WorkerSnapshot& worker, WorkerId id) {
    for (const RunningState& one : worker.running) {
      auto lease = model_.router->adopt(id, {.id = next_id(one.request),
                                             .prompt = Tokens{one.prompt},
                                             .generated = Tokens{one.generated},
                                             .sequences = small(one.sequences),
                                             .output_limit = Tokens{one.output_limit}});
      if (!lease && lease.error() == AdmitError::AlreadyAdmitted) {
        return std::unexpected(fmt::format("request {} runs twice", one.request));
      }
      if (!lease) {
        return std::unexpected(
            fmt::format("worker {} rank {}: its {} slots and its KV space do not hold all that runs "
                        "there",
                        worker.url, worker.rank, worker.slots));
      }
      if (one.started) lease->started();
      model_.leases.push_back(*std::move(lease));
    }
    return {};
  }

  // In the order of their arrival, so that each has waited as long as it says.
  void submit() {
    std::vector<std::size_t> order(state_.waiting.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return state_.waiting[i].waited_ms; });
    nanoseconds now{0};
    if (!order.empty()) now = waited(state_.waiting[order.front()]);
    model_.waiting.resize(order.size());
    model_.refused.resize(order.size());
    for (const std::size_t i : order) {
      const WaitingState& one = state_.waiting[i];
      model_.router->set_now(now - waited(one));
      model_.waiting[i] = next_id(one.request);
      const auto submitted = model_.router->submit({.id = model_.waiting[i],
                                                    .prompt = Tokens{one.prompt},
                                                    .sequences = small(one.sequences),
                                                    .output_limit = Tokens{one.output_limit},
                                                    .priority = small(one.priority)});
      if (!submitted) model_.refused[i] = reason(submitted.error());
    }
    model_.router->set_now(now);
  }

  // Its own number, or one that nothing else has.
  RequestId next_id(std::int64_t given) {
    return given != RunningState::kUnnamed ? RequestId{static_cast<std::uint64_t>(given)} : RequestId{unnamed_++};
  }

  const FleetState& state_;
  FleetModel model_;
  std::uint64_t unnamed_ = std::uint64_t{1} << 62;
};

}  // namespace

FleetState state_of(const Router& router, nanoseconds now, FleetState fleet) {
  const Ledger& ledger = router.ledger();
  std::unordered_map<WorkerId, WorkerSnapshot*> workers;
  fleet.groups.resize(ledger.groups().size());
  for (const GroupView& view : ledger.groups()) {
    GroupSnapshot& group = fleet.groups[view.group.value()];
    group.name = ledger.group_name(view.group);
    group.workers.resize(view.size());
    for (std::size_t w = 0; w < view.size(); ++w) {
      const WorkerRecord record = ledger.worker(view.workers[w]);
      group.workers[w] = {
          .url = record.key.url,
          .rank = record.key.rank,
          .slots = record.slots.decoding,
          .slots_ahead = record.slots.ahead,
          .kv_space = view.kv_space[w] == kUnlimitedKv ? WorkerSnapshot::kUnlimited : view.kv_space[w].count(),
          .takes_requests = view.eligible[w] != 0,
          .running = {}};
      workers[view.workers[w]] = &group.workers[w];
    }
  }
  for (const LeaseRecord& lease : ledger.leases()) {
    if (const auto worker = workers.find(lease.worker); worker != workers.end()) {
      worker->second->running.push_back(running_of(lease));
    }
  }
  for (const Candidate& candidate : router.pooled()) fleet.waiting.push_back(waiting_of(candidate, now));
  for (std::uint32_t w = 0; w < ledger.worker_count(); ++w) {
    for (const Candidate& candidate : router.queued_at(WorkerId{w})) {
      fleet.waiting.push_back(waiting_of(candidate, now));
    }
  }
  std::ranges::stable_sort(fleet.waiting, std::ranges::greater{}, &WaitingState::waited_ms);
  return fleet;
}

std::expected<FleetModel, std::string> make_fleet(const FleetState& state) {
  return Maker{state}.make();
}

}  // namespace balanceroute::explain
