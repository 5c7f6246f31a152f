#include "telemetry/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "telemetry/json_lines.hpp"

namespace balanceroute::telemetry {

std::shared_ptr<spdlog::logger> make_logger(const std::string& name, std::string_view level, LogFormat format) {
  auto logger = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  if (format == LogFormat::json) {
    logger->set_formatter(make_json_formatter());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %n: %v", spdlog::pattern_time_type::utc);
  }
  logger->set_level(spdlog::level::from_str(std::string{level}));
  logger->flush_on(spdlog::level::warn);
  return logger;
}

std::string log_value(std::string_view value) {
  const auto plain = [](char c) { return c > ' ' && c != '"' && c != '\\' && c != '=' && c != 0x7f; };
  if (!value.empty() && std::ranges::all_of(value, plain)) return std::string{value};
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      out.append(fmt::format("\\x{:02x}", static_cast<unsigned char>(c)));
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

}  // namespace balanceroute::telemetry
