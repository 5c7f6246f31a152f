// seeds.hpp - one seed a run, and from it one for each purpose, so that no two draws share random numbers.
#pragma once

#include <cstdint>

#include "core/random.hpp"

namespace balanceroute::sim {

enum class Purpose : std::uint8_t { lengths = 1, gaps, warm_start, policy };

[[nodiscard]] constexpr std::uint64_t seed_for(Purpose purpose, std::uint64_t seed) {
  return mix_bits(mix_bits(seed) + static_cast<std::uint64_t>(purpose));
}

}  // namespace balanceroute::sim
