// growth_watch.hpp - keeps the sum of a load model's weights over running sequences exact from step to step, without
// looking at each of them.
//
// Whoever keeps the sum adds a growth to it in each step, and is told when a sequence's growth changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/load_model.hpp"
#include "core/step_calendar.hpp"
#include "core/units.hpp"

namespace balanceroute {

// GrowthWatch knows when the weight of a growing sequence does not go on as before.
//   Members  small numbers of the owner's; each grows by one token a step of its clock.
//   Cost     begin and end O(1); step O(1 + members whose growth changes in it). A steady model has no such members.
//   Threads  not synchronised.
class GrowthWatch {
 public:
  // A sequence's weight is now `jump` more than its growth brought, and grows by `bend` more a step.
  struct Turn {
    Tokens jump;
    std::int64_t bend;
  };

  explicit GrowthWatch(const LoadModel& model) : model_{model} {}

  [[nodiscard]] const LoadModel& model() const { return model_; }

  // The member of that size begins to grow, or ends. Returns what it adds in a step.
  std::int64_t begin(StepCalendar::Index member, Tokens size, Steps now, std::size_t clock = 0) {
    const Growth growth = model_.growth_from(size);
    if (growth.changes()) changes_.schedule(member, now + growth.lasts, clock);
    return growth.per_step;
  }
  std::int64_t end(StepCalendar::Index member, Tokens size) {
    const Growth growth = model_.growth_from(size);
    if (growth.changes()) changes_.cancel(member);
    return growth.per_step;
  }

  // Once the step `now` has brought its growth: calls turned(member, Turn) where that was not all. size_of(member) is
  // the size it has now.
  template <class SizeOf, class Turned>
  void step(Steps now, const SizeOf& size_of, const Turned& turned, std::size_t clock = 0) {
    if (model_.steady()) return;
    due_.clear();
    changes_.take_due(now, due_, clock);
    for (const auto member : due_) {
      const Tokens size = size_of(member);
      const Tokens before = size - Tokens{1};
      const std::int64_t brought = model_.growth_from(before).per_step;
      const Tokens jump = model_.weight_of(size) - model_.weight_of(before) - Tokens{brought};
      turned(member, Turn{jump, begin(member, size, now, clock) - brought});
    }
  }

 private:
  LoadModel model_;
  StepCalendar changes_;
  std::vector<StepCalendar::Index> due_;  // scratch
};

}  // namespace balanceroute
