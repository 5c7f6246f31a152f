// emulator_params.hpp - the settings of an emulated fleet.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/params.hpp"
#include "engine/step_time_params.hpp"

namespace balanceroute::emulator {

struct EmulatorParams {
  std::int64_t groups = 1;
  std::int64_t ranks = 8;
  std::int64_t slots = 72;
  std::string host = "127.0.0.1";
  std::int64_t base_port = 0;
  engine::StepTimeParams step_time;
  std::string model = "emulated";
  std::int64_t max_model_len = std::int64_t{1} << 20;
  double mean_output_tokens = 256;
  std::int64_t seed = 1;

  void visit_params(ParamVisitor& visitor) {
    visitor.integer({"groups", "Groups of ranks; each has a barrier of its own."}, groups, {1, 1024});
    visitor.integer({"ranks", "Ranks of a group that step together, each on a port of its own."}, ranks, {1, 1024});
    visitor.integer({"slots", "Sequences that one rank runs at a time."}, slots, {1, 65'536});
    visitor.text({"host", "IP address to listen on."}, host);
    visitor.integer({"base_port", "Port of the first rank, the others follow; 0 takes free ports."}, base_port,
                    {0, 65'535});
    step_time.visit_params(visitor);
    visitor.text({"model", "Model name that is served."}, model);
    visitor.integer({"max_model_len", "Most tokens that a prompt and its answer have together."}, max_model_len,
                    {2, std::int64_t{1} << 31});
    visitor.real({"mean_output_tokens", "Mean answer length of requests that do not say theirs."}, mean_output_tokens,
                 {1, 1e6});
    visitor.integer({"seed", "Seed of the answer lengths that are drawn."}, seed,
                    {0, std::numeric_limits<std::int64_t>::max()});
  }
};

}  // namespace balanceroute::emulator
