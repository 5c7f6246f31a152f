// fault_plan.hpp - which requests to an engine go wrong on purpose, and how.
//
// A request asks for a fault itself with the header X-Emulator-Fault, or finds one that an admin call armed.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/generation_request.hpp"
#include "net/http.hpp"

namespace balanceroute::emulator {

enum class FaultKind { refuse, reset, stall, slow, garbage, die_mid_stream, status, kv_loss };

inline constexpr std::array<std::string_view, 8> kFaultNames{"refuse",  "reset",          "stall",  "slow",
                                                             "garbage", "die_mid_stream", "status", "kv_loss"};

// A kind and its number, as in "status:503": the status; of slow the milliseconds; of stall, die_mid_stream
// and kv_loss the events that are sent before.
struct Fault {
  FaultKind kind = FaultKind::refuse;
  std::optional<std::int64_t> number;
};

[[nodiscard]] inline bool asks_for(const std::optional<Fault>& fault, FaultKind kind) {
  return fault && fault->kind == kind;
}

[[nodiscard]] std::expected<Fault, std::string> parse_fault(std::string_view text);

// FaultPlan deals faults out to requests.
class FaultPlan {
 public:
  // The next `count` requests for `path`, or for any generating path when it is empty, meet the fault.
  void arm(const Fault& fault, std::int64_t count, std::string path);
  void clear() { armed_.clear(); }

  // What this request meets; the error says what is wrong with its header.
  [[nodiscard]] std::expected<std::optional<Fault>, std::string> take(const net::HttpRequest& request);

  // Faults met so far, by kind.
  [[nodiscard]] const std::array<std::int64_t, kFaultNames.size()>& met() const { return met_; }

 private:
  struct Armed {
    Fault fault;
    std::int64_t left = 0;
    std::string path;
  };

  void count(const Fault& fault) { ++met_[static_cast<std::size_t>(fault.kind)]; }

  std::vector<Armed> armed_;  // in the order of arming
  std::array<std::int64_t, kFaultNames.size()> met_{};
};

// Of the routes that generate, which faults are about unless they name another.
[[nodiscard]] std::optional<Api> api_of(std::string_view path);

}  // namespace balanceroute::emulator
