// reader.hpp - reads a trace file of any known format, plain or gzip.
//
// Formats (row_format.hpp) are told by the header or the first line: Azure 2023 and 2024 CSV and files derived from
// them, BurstGPT CSV, Mooncake JSON lines, and CSV of lengths without times as Vidur has them.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace balanceroute::trace {

struct ReadOptions {
  bool skip_bad_rows = false;  // leave bad rows out and count them instead of refusing the file
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();  // stop after that many good rows
};

// Reads one trace. A bad row (a field that is no such value, a number out of range, a time before the row above it)
// refuses the file, unless it is to be skipped. What breaks the file as a whole is always an error: missing, empty, a
// directory, an unknown header, a cut gzip stream, a line above 1 MiB, no good row at all.
//   Errors   one line that names file, line, value and what was expected.
//   Cost     memory in good rows; the file itself is streamed.
[[nodiscard]] std::expected<Trace, std::string> read_trace(const std::filesystem::path& path,
                                                           const ReadOptions& options = {});

// The same for text in memory; `name` stands for the file's name in the trace and in messages.
[[nodiscard]] std::expected<Trace, std::string> parse_trace(std::string_view text, const std::string& name,
                                                            const ReadOptions& options = {});

}  // namespace balanceroute::trace
