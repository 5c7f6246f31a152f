// steady_group.hpp - one group in saturation, kept so: a router, an engine, and a pool of one depth.
//
// Full slots drawn from the stationary law of a trace; after each round as many requests arrive as were admitted.
// Rounds see what they would at a load above 1 once that many requests wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "engine/group.hpp"
#include "policy/router.hpp"
#include "support/thread_time.hpp"
#include "trace/arrivals.hpp"
#include "trace/stationary_law.hpp"
#include "trace/trace.hpp"

namespace balanceroute {

class SteadyGroup {
 public:
  struct Shape {
    std::size_t workers = 8;
    std::int32_t slots = 72;
    std::size_t waiting = 256;
  };
  // One step: what the round found, and CPU time of it and of all that the router was told of the step.
  struct Step {
    std::int64_t free_slots = 0;
    std::int64_t round_ns = 0;
    std::int64_t news_ns = 0;
  };

  SteadyGroup(std::span<const trace::TraceRequest> trace, const Shape& shape, std::unique_ptr<Policy> policy)
      : trace_{trace},
        shape_{shape},
        engine_{shape.workers, shape.slots},
        router_{"benchmark", std::move(policy), 1},
        group_{router_.add_group("group")},
        draws_{1} {
    for (std::size_t i = 0; i < shape.workers; ++i) {
      router_.add_worker(group_, "worker", static_cast<std::int32_t>(i), shape.slots).value();
    }
    fill_slots();
  }

  Step step() {
    Step step;
    tell_departures(step);
    refill_pool();
    for (const std::int32_t free : router_.ledger().view(group_).free_slots) step.free_slots += free;
    decide(step);
    for (const engine::SequenceMove& entered : engine_.enter()) running_[entered.handle.index()].lease.started();
    engine_.advance();
    return step;
  }

 private:
  struct Running {
    Lease lease;
    Tokens output;
  };

  void fill_slots() {
    const trace::StationaryLaw law{trace_};
    const auto sequences = shape_.workers * static_cast<std::size_t>(shape_.slots);
    for (std::size_t i = 0; i < sequences; ++i) {
      const auto [index, age] = law.draw(draws_);
      const RequestId id{next_++};
      const std::size_t worker = i % shape_.workers;
      auto lease = router_.adopt(router_.ledger().view(group_).workers[worker],
                                 {.id = id, .prompt = trace_[index].prompt, .generated = age});
      bind(worker, {.id = id, .prompt = trace_[index].prompt, .output = trace_[index].output, .age = age},
           *std::move(lease));
    }
    engine_.enter();
    engine_.advance();
  }

  void bind(std::size_t worker, const engine::Sequence& sequence, Lease lease) {
    const std::size_t index = engine_.bind(worker, sequence).index();
    if (index >= running_.size()) running_.resize(index + 1);
    running_[index] = {std::move(lease), sequence.output};
  }

  void tell_departures(Step& step) {
    const auto departures = engine_.leave();
    const std::int64_t start = thread_time_ns();
    router_.advance(group_, Steps{1});
    for (const engine::SequenceMove& left : departures) {
      Running& running = running_[left.handle.index()];
      running.lease.finish(running.output);
    }
    step.news_ns = thread_time_ns() - start;
  }

  void refill_pool() {
    while (router_.waiting() < shape_.waiting) {
      if (place_ == order_.size()) {
        order_ = trace::permutation(trace_.size(), draws_);
        place_ = 0;
      }
      const std::uint32_t index = order_[place_++];
      waiting_[next_] = index;
      (void)router_.submit({.id = RequestId{next_++}, .prompt = trace_[index].prompt});
    }
  }

  void decide(Step& step) {
    const std::int64_t start = thread_time_ns();
    const std::span<Admission> admissions = router_.round(group_);
    step.round_ns = thread_time_ns() - start;
    for (Admission& admission : admissions) {
      const auto found = waiting_.extract(admission.request.id.value());
      bind(*router_.ledger().position(admission.worker),
           {.id = admission.request.id, .prompt = admission.request.prompt, .output = trace_[found.mapped()].output},
           std::move(admission.lease));
    }
  }

  std::span<const trace::TraceRequest> trace_;
  Shape shape_;
  engine::Group engine_;
  Router router_;
  GroupId group_;
  Random draws_;
  std::vector<Running> running_;  // by handle index
  std::unordered_map<std::uint64_t, std::uint32_t> waiting_;
  std::vector<std::uint32_t> order_;
  std::size_t place_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace balanceroute
