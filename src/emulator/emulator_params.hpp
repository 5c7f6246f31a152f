// emulator_params.hpp - the settings of an emulated fleet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/params.hpp"
#include "core/units.hpp"
#include "engine/step_time_params.hpp"
#include "stats/step_time.hpp"

namespace balanceroute::emulator {

// How prefill and decode engines hand KV over; docs/emulator.md says what each checks.
enum class DialectKind { aggregated, vllm_nixl, ascend_mooncake, vllm_mooncake, ascend_layerwise, sglang };

struct EmulatorParams {
  static constexpr std::int64_t kUnlimited = 0;  // of KV capacities: every slot has room for the whole context

  std::int64_t groups = 1;
  std::int64_t ranks = 8;
  std::int64_t ranks_per_port = 1;
  std::int64_t start_rank = 0;
  std::int64_t slots = 72;
  std::int64_t kv_capacity_tokens = kUnlimited;
  std::int64_t block_size = 16;
  std::string host = "127.0.0.1";
  std::int64_t base_port = 0;
  engine::StepTimeParams step_time;

  std::string dialect = "aggregated";
  std::int64_t prefill_instances = 0;
  std::int64_t prefill_ranks = 1;
  StepTime prefill_time;  // of a prompt
  std::int64_t prefill_kv_tokens = kUnlimited;
  StepTime transfer_time;  // of a prompt's KV
  double lease_seconds = 30;
  std::string kv_load_failure_policy = "fail";
  bool recompute_stop = false;

  std::int64_t stream_interval = 1;
  bool numbered_tokens = true;
  std::int64_t step_log = 1024;
  std::string model = "emulated";
  std::int64_t max_model_len = std::int64_t{1} << 20;
  double mean_output_tokens = 256;
  std::int64_t seed = 1;

  void visit_params(ParamVisitor& visitor);

  // What settings say that no fleet can be; the message names them.
  [[nodiscard]] std::optional<std::string> contradiction() const;

  [[nodiscard]] DialectKind dialect_kind() const;
  [[nodiscard]] bool recomputes_lost_kv() const { return kv_load_failure_policy == "recompute"; }
  [[nodiscard]] std::int64_t ports_per_group() const { return ranks / ranks_per_port; }
  // Of one decode rank, and of one prefill rank.
  [[nodiscard]] Tokens kv_capacity() const;
  [[nodiscard]] Tokens prefill_kv_capacity() const;
};

}  // namespace balanceroute::emulator
