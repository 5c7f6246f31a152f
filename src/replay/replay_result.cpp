#include "replay/replay_result.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::replay {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"p50", summary.p50}, {"p95", summary.p95}, {"p99", summary.p99}};
}

}  // namespace

std::string to_json(const ReplayResult& result) {
  return Json{{"requests", result.requests},
              {"completed", result.completed},
              {"errors", result.errors},
              {"unfinished", result.unfinished},
              {"retries", result.retries},
              {"tokens", result.tokens},
              {"throughput_tokens_per_s", result.throughput_tokens_per_s},
              {"ttft_ms", summary_json(result.ttft_ms)},
              {"tpot_ms", summary_json(result.tpot_ms)},
              {"e2e_ms", summary_json(result.e2e_ms)}}
      .dump();
}

}  // namespace balanceroute::replay
