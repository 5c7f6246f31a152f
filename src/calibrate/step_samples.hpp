// step_samples.hpp - measured decode steps: how long each took and what its workers held.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

namespace balanceroute::calibrate {

// StepSamples has one entry a step in each column; a column that is not known is empty.
struct StepSamples {
  std::string source;                // where they are from, for people
  std::vector<double> step_ms;       // > 0
  std::vector<double> max_tokens;    // load of the group's most loaded worker, >= 0
  std::vector<double> sequences;     // that this worker decoded, >= 0
  std::vector<double> total_tokens;  // load of all the group's workers, >= 0

  [[nodiscard]] std::size_t size() const { return step_ms.size(); }
};

// Reads a CSV file, plain or gzip, whose first line names its columns: step_ms and max_tokens, and if they are known
// sequences and total_tokens; others are passed over. The message of a failure names file, line, column and value.
[[nodiscard]] std::expected<StepSamples, std::string> read_step_samples(const std::filesystem::path& path);

}  // namespace balanceroute::calibrate
