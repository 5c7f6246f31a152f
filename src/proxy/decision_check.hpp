// decision_check.hpp - takes the decisions of a decision log again, on a fresh router, and compares.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace balanceroute::proxy {

struct DecisionReport {
  std::string fleet;
  std::string policy;  // where it was changed, one after the other
  std::int64_t events = 0;
  std::int64_t requests = 0;
  std::int64_t rounds = 0;
  std::int64_t admissions = 0;
  std::string end;                        // why the log ends: "stop", "limit", "cut" (in the middle of a run)
  std::optional<std::string> difference;  // the first, in words
};

// An error when the file is no decision log, or one that this program cannot read.
[[nodiscard]] std::expected<DecisionReport, std::string> check_decisions(const std::string& path);

}  // namespace balanceroute::proxy
