#include "sim/simulate_params.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "policy/registry.hpp"
#include "predict/registry.hpp"
#include "sim/without.hpp"

namespace balanceroute::sim {
namespace {

// A slot costs about 200 bytes a run.
constexpr std::int64_t kMostSlots = std::int64_t{1} << 24;

}  // namespace

void SimulateParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"trace", "File of recorded requests: CSV or JSON lines, gzip or plain."}, trace);
  history.visit_params(visitor);
  visitor.choices({"policy", "Routing policies to compare."}, policies, policy_names());
  visitor.choices({"predictor", "What policies that look ahead know of the length of answers; oracle is the truth."},
                  predictors, predictor_names());
  visitor.integers({"workers", "Decode workers of a group."}, workers, {1, 65'536});
  visitor.reals({"load", "Rate of arrivals over what perfectly balanced, always full workers finish."}, loads,
                {0.001, 100});
  visitor.integers({"seed", "Seeds of all that is drawn; policies share what one draws."}, seeds,
                   {0, std::numeric_limits<std::int64_t>::max()});
  visit_settings(visitor);
  visitor.flag({"details", "Tell distributions of times, and times by length of prompt and output, in the table too."},
               details);
  visitor.flag({"timings", "Report how long runs took; output then differs from call to call."}, timings);
  visitor.text(
      {"json", "File to write the results to as JSON; - is standard output, and the table goes to standard error."},
      json);
  visitor.text({"html", "File to write a page to: tables, loads over time, curves."}, html);
}

void SimulateParams::visit_settings(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kArrivals{"poisson", "trace"};
  visitor.integer({"groups", "Groups of workers; each steps on its own."}, groups, {1, 4'096});
  visitor.integer({"slots", "Sequences that a worker runs at once."}, slots, {1, 65'536});
  visitor.integer(
      {"slots_ahead", "Sequences that may wait inside a worker besides, so that transfers overlap decoding."},
      slots_ahead, {0, 65'536});
  visitor.integer({"repeat", "Times the trace is played; if more than once, each time in another drawn order."}, repeat,
                  {1, 1'000'000});
  visitor.flag({"warm_start", "Begin with the running requests of a fleet that has long been at work."}, warm_start);
  visitor.choice({"arrivals", "When requests come: a Poisson process, or the trace's own times scaled to the load."},
                 arrivals, kArrivals);
  visitor.integer({"min_output", "Leave out requests with fewer output tokens."}, min_output, {1, kMaxTokens.count()});
  visitor.integer_or_auto({"limit", "Read no more good rows than this; auto is all."}, limit, kAll,
                          {1, std::numeric_limits<std::int64_t>::max()});
  visitor.flag({"skip_bad_rows", "Leave out and count bad rows of the trace instead of refusing it."}, skip_bad_rows);
  step_time.visit_params(visitor);
  visitor.real({"tokens_per_step",
                "Tokens that a running sequence generates in a step, on average: more than 1 with speculative "
                "decoding. Policies then look ahead by tokens instead of steps."},
               tokens_per_step, {1, engine::TokenPace::kMost});
  visitor.text({"step_time_table",
                "CSV file of measured step times (tokens,ms) that replace the line of fixed_ms and per_token_ms."},
               step_time_table);
  visit_model(visitor);
  Without others{visitor, {"predictor"}};
  policy_settings.visit_settings(others);
}

void SimulateParams::visit_model(ParamVisitor& visitor) {
  const ParamRange<std::int64_t> some_tokens{1, kMaxTokens.count() * 1024};
  kv.visit_params(visitor);
  visitor.nested({"load_model", "What sequences make their worker read, and what the router counts."}, load_model);
  visitor.real({"recompute_per_token_ms",
                "Time that a worker takes, in the first step of a sequence that goes on after it was preempted, to "
                "compute its KV anew, for each token."},
               recompute_per_token_ms, {0, 1'000});
  visitor.real({"admission_delay_ms", "Time from the choice of a worker to its queue."}, admission_delay_ms,
               {0, 60'000});
  visitor.real({"transfer_per_token_ms", "The same, for each token of the prompt."}, transfer_per_token_ms, {0, 1'000});
  visitor.integer({"prefill_instances", "Instances that compute prompts, one at a time each; 0: it takes no time."},
                  prefill_instances, {0, 4'096});
  visitor.real({"prefill_ms", "Part of a prefill that does not depend on the prompt."}, prefill_ms, {0, 60'000});
  visitor.real({"prefill_per_token_ms", "Time of a prefill for each token of the prompt."}, prefill_per_token_ms,
               {0, 1'000});
  visitor.integer_or_auto(
      {"prefill_kv_tokens", "KV space of a prefill instance, held until a worker has the prompt. auto is no limit."},
      prefill_kv_tokens, kAll, some_tokens);
}

Fleet SimulateParams::fleet(std::size_t workers_of_group) const {
  const auto space = [](std::int64_t tokens) { return tokens == kAll ? engine::Group::kUnlimited : Tokens{tokens}; };
  Fleet fleet{.groups = static_cast<std::size_t>(groups),
              .workers = workers_of_group,
              .slots = static_cast<std::int32_t>(slots),
              .slots_ahead = static_cast<std::int32_t>(slots_ahead),
              .step_time = step_time.line(),
              .tokens_per_step = tokens_per_step,
              .kv = kv.space(),
              .kv_block = Tokens{kv.block_size},
              .load_model = load_model.model(),
              .admission_delay = {.fixed_ms = admission_delay_ms, .per_token_ms = transfer_per_token_ms},
              .recompute_per_token_ms = recompute_per_token_ms};
  if (prefill_instances > 0) {
    fleet.prefill = engine::PrefillSettings{.instances = static_cast<std::size_t>(prefill_instances),
                                            .time = {.fixed_ms = prefill_ms, .per_token_ms = prefill_per_token_ms},
                                            .kv_capacity = space(prefill_kv_tokens)};
  }
  return fleet;
}

std::expected<void, std::string> validate(const SimulateParams& params) {
  const std::int64_t most = std::ranges::max(params.workers);
  if (most * params.groups * params.slots > kMostSlots) {
    return std::unexpected("--workers " + std::to_string(most) + " * --groups " + std::to_string(params.groups) +
                           " * --slots " + std::to_string(params.slots) + ": expected at most " +
                           std::to_string(kMostSlots) + " slots in all");
  }
  if (const StepTime line = params.step_time.line(); line.fixed_ms == 0 && line.per_token_ms == 0) {
    return std::unexpected("--fixed-ms = 0 and --per-token-ms = 0: expected a step to take some time");
  }
  if (const KvSpace space = params.kv.space(); space.reserve >= space.capacity) {
    return std::unexpected("--kv-reserve-tokens = " + std::to_string(params.kv.reserve_tokens) +
                           ": expected less than --kv-capacity-tokens");
  }
  return {};
}

}  // namespace balanceroute::sim
