// output_file.hpp - a result written to a file, whole or not at all.
#pragma once

#include <expected>
#include <string>

#include "cli/command.hpp"

namespace balanceroute::cli {

// Whether write_output could write there, asked before the work whose result it is.
std::expected<void, Failure> check_output(const std::string& path);

// An empty path writes nothing. The text is written beside the file first and moved into its place, so that a reader
// never finds half of it.
std::expected<void, Failure> write_output(const std::string& path, const std::string& text);

}  // namespace balanceroute::cli
