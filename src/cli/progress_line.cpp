#include "cli/progress_line.hpp"

#include <unistd.h>

#include <iostream>
#include <utility>

namespace balanceroute::cli {

ProgressLine::ProgressLine(std::string things) : things_{std::move(things)}, terminal_{::isatty(STDERR_FILENO) == 1} {}

ProgressLine::~ProgressLine() {
  if (told_) std::cerr << "\r\x1b[K" << std::flush;
}

void ProgressLine::operator()(std::size_t finished, std::size_t all) {
  if (!terminal_) return;
  told_ = true;
  std::cerr << "\r" << finished << " of " << all << " " << things_ << std::flush;
}

}  // namespace balanceroute::cli
