// record.hpp - what the history keeps of one request that is over: times, counts and where it was; never what it said.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/units.hpp"

namespace balanceroute::history {

using UnixTime = std::chrono::sys_time<std::chrono::milliseconds>;
using Microseconds = std::chrono::microseconds;

// Record is one finished request.
//   Units       times are wall clock, durations count from its arrival unless they say otherwise.
//   Tokens      output of all its answers, prompt of one.
//   Keys        keyed hashes (keyed_hash.hpp), equal for equal prompts of one installation, and for equal openings:
//   what
//               of a prompt comes before anything a user says, its template; 0: not known.
struct Record {
  UnixTime arrived{};
  Microseconds total{0};
  std::optional<Microseconds> first_token{};
  std::optional<Microseconds> prefill{};    // how long it took
  std::optional<Microseconds> pool_wait{};  // how long it waited for a worker
  std::string fleet;
  std::string group;   // empty, as worker and policy: it never had a worker
  std::string worker;  // address
  std::int32_t rank = -1;
  std::string policy;
  std::string outcome;
  bool complete = false;  // every answer came to its end
  std::int32_t status = 0;
  std::int32_t tries = 1;
  std::int32_t sequences = 1;
  Tokens prompt{0};
  Tokens output{0};
  std::optional<Tokens> output_limit{};  // of one answer
  std::optional<Tokens> cached{};        // of the prompt, where the engine says it
  std::uint64_t prompt_key = 0;
  std::uint64_t opening_key = 0;

  [[nodiscard]] UnixTime ended() const {
    return arrived + std::chrono::duration_cast<std::chrono::milliseconds>(total);
  }
  // Of one answer.
  [[nodiscard]] Tokens output_each() const { return Tokens{(output.count() + sequences - 1) / sequences}; }

  friend bool operator==(const Record&, const Record&) = default;
};

}  // namespace balanceroute::history
