#include "proxy/prefill_params.hpp"

#include <array>
#include <string_view>

namespace balanceroute::proxy {

namespace {

constexpr std::array<std::string_view, 2> kLossChoices{"decode_only", "503"};
constexpr std::array<std::string_view, 2> kAbandonChoices{"drain", "lease"};
constexpr double kHourMs = 3'600'000;

}  // namespace

void PrefillInstanceParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"url", "Address of the engine server, as http://host:port or https://host:port.", true}, url);
  visitor.integer({"ranks", "Data-parallel ranks behind it."}, ranks, {1, 4096});
  visitor.integer({"bootstrap_port", "Where decode engines meet it (dialects vllm_mooncake and sglang)."},
                  bootstrap_port, {1, 65'535});
}

void PrefillParams::visit_params(ParamVisitor& visitor) {
  visitor.nested_list({"instances", "Prefill engine servers; none with dialect aggregated."}, instances);
  visitor.integer_or_auto({"kv_high_water_tokens",
                           "Prompt tokens that a prefill instance may compute and hold at once; above it gets no more "
                           "requests. auto is no limit."},
                          kv_high_water_tokens, kUnlimited, {1, std::int64_t{1} << 40});
  visitor.choice(
      {"on_prefill_loss",
       "What becomes of a request that no prefill instance can take: decode_only sends it to a decode worker "
       "alone, 503 refuses it."},
      on_prefill_loss, kLossChoices);
  visitor.integer({"retries", "How often a failed prefill is tried again, on another instance if there is one."},
                  retries, {0, 16});
  visitor.real({"lease_ms", "How long a prefill instance keeps KV that nobody fetches: the engine's lease or timeout."},
               lease_ms, {1, kHourMs});
  visitor.real(
      {"hold_limit_ms",
       "How long a prefilled request may wait for a decode worker's slot; less than lease_ms. Then it goes to the "
       "least loaded worker beyond its slots."},
      hold_limit_ms, {1, kHourMs});
  visitor.integer({"overcommit", "Such requests that a worker takes at once; what finds no room is prefilled again."},
                  overcommit, {0, 1024});
  visitor.integer({"max_transfers_in_flight",
                   "Streamed requests whose KV a decode worker fetches at once; more keep their slots and wait."},
                  max_transfers_in_flight, {1, 65'536});
  visitor.choice({"abandon",
                  "What becomes of KV whose client left before a decode worker had it: drain fetches it with a request "
                  "for one token that nobody reads, lease leaves it to the engine's lease."},
                 abandon, kAbandonChoices);
  visitor.text({"callback_url",
                "Where decode engines reach this router, as http://host:port (dialect ascend_layerwise); empty means "
                "`listen`."},
               callback_url);
}

}  // namespace balanceroute::proxy
