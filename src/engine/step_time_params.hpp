// step_time_params.hpp - the settings of a step's length.
//
// Decode reads the weights once a step (fixed) and the KV cache of its sequences (per token). `published` is the line
// of the BalanceRoute simulations; `slow` is a slower accelerator of the same literature.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/params.hpp"
#include "stats/step_time.hpp"

namespace balanceroute::engine {

// StepTimeParams names a line and may set either part of it; what is `auto` is the named line's.
struct StepTimeParams {
  static constexpr double kAuto = -1;

  std::string step_time = "published";
  double fixed_ms = kAuto;
  double per_token_ms = kAuto;

  [[nodiscard]] StepTime line() const {
    const StepTime named = std::ranges::find(kLines, step_time, &Named::name)->line;
    return {.fixed_ms = fixed_ms == kAuto ? named.fixed_ms : fixed_ms,
            .per_token_ms = per_token_ms == kAuto ? named.per_token_ms : per_token_ms};
  }
  // With the numbers that `auto` stands for.
  [[nodiscard]] StepTimeParams resolved() const {
    const StepTime its = line();
    return {.step_time = step_time, .fixed_ms = its.fixed_ms, .per_token_ms = its.per_token_ms};
  }

  void visit_params(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kNames{kLines[0].name, kLines[1].name};
    visitor.choice({"step_time",
                    "What auto stands for in fixed_ms and per_token_ms: published is 9.775 and 1.00525e-4, slow 60 and "
                    "4e-5."},
                   step_time, kNames);
    visitor.real_or_auto({"fixed_ms", "Part of a decode step that does not depend on load."}, fixed_ms, kAuto,
                         {0, 60'000});
    visitor.real_or_auto({"per_token_ms", "Time a decode step takes for each token its most loaded worker reads."},
                         per_token_ms, kAuto, {0, 1'000});
  }

 private:
  struct Named {
    std::string_view name;
    StepTime line;
  };
  static constexpr std::array kLines{
      Named{"published", {.fixed_ms = 9.775, .per_token_ms = 1.00525e-4}},
      Named{"slow", {.fixed_ms = 60, .per_token_ms = 4e-5}},
  };
};

}  // namespace balanceroute::engine
