// kv_params.hpp - the settings of a worker's KV space.
#pragma once

#include <cstdint>

#include "core/ledger.hpp"
#include "core/params.hpp"

namespace balanceroute {

struct KvParams {
  static constexpr std::int64_t kUnlimited = 0;  // "auto"
  static constexpr std::int64_t kAuto = -1;

  std::int64_t capacity_tokens = kUnlimited;
  std::int64_t reserve_tokens = kAuto;
  std::int64_t block_size = 16;

  [[nodiscard]] KvSpace space() const {
    if (capacity_tokens == kUnlimited) return {};
    // An estimate: running sequences outgrow what departures free by a few mean answers, and a 32nd of some hundred
    // thousand tokens holds that many.
    const std::int64_t reserve = reserve_tokens == kAuto ? capacity_tokens / 32 : reserve_tokens;
    return {.capacity = Tokens{capacity_tokens}, .reserve = Tokens{reserve}};
  }

  void visit_params(ParamVisitor& visitor) {
    const ParamRange<std::int64_t> some_tokens{1, std::int64_t{1} << 40};
    visitor.integer_or_auto(
        {"kv_capacity_tokens", "KV space of a worker: requests wait where it is taken. auto is no limit."},
        capacity_tokens, kUnlimited, some_tokens);
    visitor.integer_or_auto({"kv_reserve_tokens",
                             "Of the KV space, what no new request takes, so that running ones can grow. auto is a "
                             "32nd."},
                            reserve_tokens, kAuto, {0, some_tokens.high});
    visitor.integer({"block_size", "Tokens of a KV block; a sequence holds whole ones."}, block_size, {1, 65'536});
  }
};

}  // namespace balanceroute
