// random.hpp - the one source of random numbers, the same on every platform for one seed.
//
// The distributions of <random> differ between standard libraries, so bounded numbers, fractions and waiting times are
// made here. Source: xoshiro256** and splitmix64 by D. Blackman and S. Vigna (public domain); bounded numbers by
// D. Lemire, "Fast random integer generation in an interval" (2019).
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>

namespace balanceroute {

// A mixing function: different inputs give well-spread outputs.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Random is a generator of 64 random bits at a time, and of the few laws the product draws from.
//   Threads  not synchronised; each owner has its own, seeded by its own number.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = mix_bits(seed += 0x9e3779b97f4a7c15ULL);
  }

  constexpr std::uint64_t bits() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform over 0 .. bound-1, without bias; bound >= 1.
  constexpr std::uint64_t below(std::uint64_t bound) {
    assert(bound >= 1);
    Wide product = Wide{bits()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound
      while (static_cast<std::uint64_t>(product) < rejected) product = Wide{bits()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // Uniform over [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  // Exponential with the given mean: the time between two events of a Poisson process.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  __extension__ using Wide = unsigned __int128;
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace balanceroute
