// tune_report.hpp - the outcome of a search as text, JSON and a page.
//
// The same outcome gives the same bytes.
#pragma once

#include <string>

#include "sim/tuning.hpp"

namespace balanceroute::sim {

// The map of the settings, the best one against the default and least_tokens, lines to paste.
[[nodiscard]] std::string tune_table(const Tuned& tuned);
[[nodiscard]] std::string tune_json(const Tuned& tuned);
[[nodiscard]] std::string tune_html(const Tuned& tuned);

// In words: how the best setting compares, and how sure that is.
[[nodiscard]] std::string verdict(const Tuned& tuned);

}  // namespace balanceroute::sim
