#include "emulator/emulator_params.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace balanceroute::emulator {
namespace {

// In the order of DialectKind.
constexpr std::array<std::string_view, 6> kDialects{"aggregated",    "vllm_nixl",        "ascend_mooncake",
                                                    "vllm_mooncake", "ascend_layerwise", "sglang"};
constexpr std::array<std::string_view, 2> kFailurePolicies{"fail", "recompute"};

std::string stated(std::string_view name, std::int64_t value) {
  return std::string{name} + " = " + std::to_string(value) + ": ";
}

void visit_prefill(EmulatorParams& params, ParamVisitor& visitor) {
  constexpr std::int64_t kMostKvTokens = std::int64_t{1} << 40;
  visitor.choice({"dialect", "How prefill and decode engines hand over KV and what they ask of the router."},
                 params.dialect, kDialects);
  visitor.integer({"prefill_instances", "Prefill engines, each on a port; none with dialect aggregated."},
                  params.prefill_instances, {0, 1024});
  visitor.integer({"prefill_ranks", "Data-parallel ranks of a prefill engine, behind its one port."},
                  params.prefill_ranks, {1, 1024});
  visitor.real({"prefill_fixed_ms", "Part of a prompt's prefill that does not depend on its length."},
               params.prefill_time.fixed_ms, {0, 60'000});
  visitor.real({"prefill_per_token_ms", "Time that prefill takes for each token of a prompt."},
               params.prefill_time.per_token_ms, {0, 1'000});
  visitor.integer_or_auto({"prefill_kv_tokens", "Tokens of KV that a prefill rank holds; auto is never too few."},
                          params.prefill_kv_tokens, EmulatorParams::kUnlimited, {1, kMostKvTokens});
  visitor.real({"transfer_fixed_ms", "Part of a KV transfer that does not depend on its length."},
               params.transfer_time.fixed_ms, {0, 60'000});
  visitor.real({"transfer_per_token_ms", "Time that a KV transfer takes for each token of the prompt."},
               params.transfer_time.per_token_ms, {0, 1'000});
  visitor.real({"lease_seconds", "How long a prefilled prompt's KV is held for a decode engine that does not come."},
               params.lease_seconds, {0.001, 86'400});
  visitor.choice({"kv_load_failure_policy",
                  "What becomes of a request whose KV cannot be had: fail, and relays are checked to the byte; or "
                  "recompute, silently, with the checks of real engines only."},
                 params.kv_load_failure_policy, kFailurePolicies);
  visitor.flag({"recompute_stop",
                "Whether a decode rank whose KV is full ends its youngest answer with stop_reason \"recomputed\", as "
                "vllm-ascend does, instead of preempting it."},
               params.recompute_stop);
}

void visit_answers(EmulatorParams& params, ParamVisitor& visitor) {
  visitor.integer({"stream_interval", "Tokens of an event after the first, which comes at once."},
                  params.stream_interval, {1, 65'536});
  visitor.flag({"numbered_tokens", "Whether a token's text is its number in the answer, as in \" t17\"."},
               params.numbered_tokens);
  visitor.integer({"step_log", "Steps of each group whose loads GET /emulator/steps tells."}, params.step_log,
                  {1, 1'000'000});
  visitor.text({"model", "Model name that is served."}, params.model);
  visitor.integer({"max_model_len", "Most tokens that a prompt and its answer have together."}, params.max_model_len,
                  {2, std::int64_t{1} << 31});
  visitor.real({"mean_output_tokens", "Mean answer length of requests that do not say theirs."},
               params.mean_output_tokens, {1, 1e6});
  visitor.integer({"seed", "Seed of the answer lengths that are drawn."}, params.seed,
                  {0, std::numeric_limits<std::int64_t>::max()});
}

}  // namespace

void EmulatorParams::visit_params(ParamVisitor& visitor) {
  visitor.integer({"groups", "Groups of ranks; each has a barrier of its own."}, groups, {1, 1024});
  visitor.integer({"ranks", "Decode ranks of a group, which step together."}, ranks, {1, 1024});
  visitor.integer({"ranks_per_port",
                   "Ranks behind one port, chosen by the header X-data-parallel-rank: 1 is a port for each rank, the "
                   "number of ranks one port for a group, something between one port for each node of a group."},
                  ranks_per_port, {1, 1024});
  visitor.integer({"start_rank", "Number of a group's first rank in the label `engine`."}, start_rank, {0, 65'536});
  visitor.integer({"slots", "Sequences that one rank runs at a time."}, slots, {1, 65'536});
  visitor.integer_or_auto({"kv_capacity_tokens", "Tokens of KV that a decode rank holds; auto is never too few."},
                          kv_capacity_tokens, kUnlimited, {1, std::int64_t{1} << 40});
  visitor.integer({"block_size", "Tokens of a KV block."}, block_size, {1, 4096});
  visitor.text({"host", "IP address to listen on."}, host);
  visitor.integer({"base_port",
                   "First port: groups, then prefill engines, then their bootstrap servers; 0 takes free "
                   "ports."},
                  base_port, {0, 65'535});
  step_time.visit_params(visitor);
  visit_prefill(*this, visitor);
  visit_answers(*this, visitor);
}

std::optional<std::string> EmulatorParams::contradiction() const {
  if (ranks % ranks_per_port != 0) {
    return stated("ranks_per_port", ranks_per_port) + "expected a divisor of ranks = " + std::to_string(ranks);
  }
  if (dialect_kind() == DialectKind::aggregated && prefill_instances > 0) {
    return stated("prefill_instances", prefill_instances) +
           "expected 0 with dialect aggregated, whose ranks prefill by themselves";
  }
  if (dialect_kind() != DialectKind::aggregated && prefill_instances == 0) {
    return stated("prefill_instances", prefill_instances) + "expected at least 1 with dialect " + dialect;
  }
  return std::nullopt;
}

DialectKind EmulatorParams::dialect_kind() const {
  return static_cast<DialectKind>(std::ranges::find(kDialects, dialect) - kDialects.begin());
}

Tokens EmulatorParams::kv_capacity() const {
  return Tokens{kv_capacity_tokens == kUnlimited ? slots * max_model_len : kv_capacity_tokens};
}

Tokens EmulatorParams::prefill_kv_capacity() const {
  return Tokens{prefill_kv_tokens == kUnlimited ? slots * max_model_len : prefill_kv_tokens};
}

}  // namespace balanceroute::emulator
