// json_lines.hpp - log lines as JSON: one object a line, for collectors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class formatter;
}

namespace balanceroute::telemetry {

// The text of a line, "words key=value key="quoted value"" as log_value() writes it, as members of a JSON object
// without the braces: `"message":"words","key":"value"`. A value is a number where its key says that it counts or
// measures something (it ends in _ms, _tokens and the like, or is one of a few known ones), else a string, whatever it
// looks like; a time of -1.0, one that never came, is null. What is not of that form stays in the message as it is.
std::string to_json_members(std::string_view line);

// Writes {"time":"2026-01-02T03:04:05.678Z","level":"info","logger":"serve",...} with those members.
std::unique_ptr<spdlog::formatter> make_json_formatter();

}  // namespace balanceroute::telemetry
