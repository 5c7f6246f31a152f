// explanation_report.hpp - a decision in words for a person, and as JSON for a program.
#pragma once

#include <string>

#include "explain/explanation.hpp"

namespace balanceroute::explain {

// The workers, each waiting request with its best workers, and what the round decides.
[[nodiscard]] std::string explanation_text(const Explanation& explanation);
// Everything: every score of every worker.
[[nodiscard]] std::string explanation_json(const Explanation& explanation);

}  // namespace balanceroute::explain
