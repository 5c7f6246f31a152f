// command_line.hpp - reading the command line: help and version on every level, one clear message for a mistake.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "cli/command.hpp"

namespace balanceroute::cli {

// Declares `command` as the program, reads the arguments and runs it. What --help or --version ask for is printed
// instead.
[[nodiscard]] std::expected<void, Failure> run_command_line(Command& command, int argc, const char* const* argv);

}  // namespace balanceroute::cli
