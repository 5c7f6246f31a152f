// log.hpp - log lines: one line an event, `key=value` after the message, to standard error, as text or as JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace balanceroute::telemetry {

enum class LogFormat { text, json };

// A logger that may be used from any thread. `level` is one of debug, info, warn, error, off.
std::shared_ptr<spdlog::logger> make_logger(const std::string& name, std::string_view level,
                                            LogFormat format = LogFormat::text);

// A value as it may stand in a line: quoted and escaped when it has blanks, quotes or control characters.
std::string log_value(std::string_view value);

}  // namespace balanceroute::telemetry
