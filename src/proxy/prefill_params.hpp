// prefill_params.hpp - the settings of a fleet's prefill side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/params.hpp"

namespace balanceroute::proxy {

// How prefill and decode are arranged, in the order of the setting `dialect`.
enum class DialectKind : std::uint8_t { Aggregated, VllmNixl, AscendMooncake, VllmMooncake, AscendLayerwise, Sglang };

// One prefill engine server.
struct PrefillInstanceParams {
  std::string url;
  std::int64_t ranks = 1;
  std::int64_t bootstrap_port = 8998;

  void visit_params(ParamVisitor& visitor);
};

struct PrefillParams {
  static constexpr std::int64_t kUnlimited = 0;  // "auto"

  std::vector<PrefillInstanceParams> instances;
  std::int64_t kv_high_water_tokens = kUnlimited;
  std::string on_prefill_loss = "decode_only";
  std::int64_t retries = 2;
  double lease_ms = 30'000;
  double hold_limit_ms = 20'000;
  std::int64_t overcommit = 2;
  std::int64_t max_transfers_in_flight = 8;
  std::string abandon = "drain";
  std::string callback_url;

  bool drains_abandoned() const { return abandon == "drain"; }
  bool decodes_alone_on_loss() const { return on_prefill_loss == "decode_only"; }
  void visit_params(ParamVisitor& visitor);
};

}  // namespace balanceroute::proxy
