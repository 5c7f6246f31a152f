// step_table_file.hpp - reads measured step times.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

#include "stats/step_table.hpp"

namespace balanceroute::sim {

// A CSV file with the header `tokens,ms`: loads of the most loaded worker, rising, and how long its step lasts, never
// falling. At least two rows. The message of a failure names file, line, value and what was expected.
[[nodiscard]] std::expected<StepTable, std::string> read_step_table(const std::filesystem::path& path);

}  // namespace balanceroute::sim
