// progress_line.hpp - how far a long command is, told on a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace balanceroute::cli {

// ProgressLine is one line on a terminal that is gone at the end; nothing elsewhere.
class ProgressLine {
 public:
  // `things` is what is counted, such as "runs".
  explicit ProgressLine(std::string things);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void operator()(std::size_t finished, std::size_t all);

 private:
  std::string things_;
  bool terminal_;
  bool told_ = false;
};

}  // namespace balanceroute::cli
