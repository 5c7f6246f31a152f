// log_lines.hpp - a log that a test reads.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute::testing_support {

// LogLines keeps the text of every message. Threads: any.
class LogLines final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> lines() {
    const std::scoped_lock lock{mutex_};
    return lines_;
  }
  bool has(std::string_view part) {
    const std::scoped_lock lock{mutex_};
    return std::ranges::any_of(lines_, [part](const std::string& line) { return line.contains(part); });
  }
  // All of them, one after the other.
  std::string text() {
    const std::scoped_lock lock{mutex_};
    std::string all;
    for (const std::string& line : lines_) all.append(line).append("\n");
    return all;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    lines_.emplace_back(message.payload.data(), message.payload.size());
  }
  void flush_() override {}

  std::vector<std::string> lines_;
};

}  // namespace balanceroute::testing_support
