// trace.hpp - a stream of requests as a trace file records it: when each came, how long it was, how long its answer.
//
// Plain data; no prompt or answer text. Readers are in reader.hpp, generators and edits in arrivals.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "core/units.hpp"

namespace balanceroute::trace {

// TraceRequest is one recorded request.
//   Units       arrival is time since the first request of the trace; zero when the file has no times.
//   Invariants  prompt and output are in [1, 2^31].
struct TraceRequest {
  std::chrono::nanoseconds arrival{0};
  Tokens prompt;
  Tokens output;
  std::vector<std::int64_t> prefix_blocks;  // equal ids at equal positions are a shared prefix; empty when not recorded

  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

// Equal for requests whose prompts have the same blocks, as Request::prompt_key means it; 0 where none are recorded.
[[nodiscard]] constexpr std::uint64_t prompt_key(const TraceRequest& request) {
  std::uint64_t key = 0;
  for (const std::int64_t block : request.prefix_blocks) key = mix_bits(key + static_cast<std::uint64_t>(block) + 1);
  return key;
}

enum class TraceKind { azure_csv, burstgpt_csv, mooncake_jsonl, lengths_csv, history };

[[nodiscard]] constexpr std::string_view to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::azure_csv:
      return "azure_csv";
    case TraceKind::burstgpt_csv:
      return "burstgpt_csv";
    case TraceKind::mooncake_jsonl:
      return "mooncake_jsonl";
    case TraceKind::lengths_csv:
      return "lengths_csv";
    case TraceKind::history:
      return "history";
  }
  return "unknown";
}

// Trace is the usable rows of one file, in file order.
//   Invariants  requests is not empty and sorted by arrival; the first arrives at zero.
struct Trace {
  std::string name;  // the file's name without folder
  TraceKind kind = TraceKind::azure_csv;
  std::vector<TraceRequest> requests;
  std::int64_t skipped_rows = 0;  // bad rows left out on request

  [[nodiscard]] bool has_arrivals() const { return kind != TraceKind::lengths_csv; }
};

}  // namespace balanceroute::trace
