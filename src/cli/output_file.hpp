// output_file.hpp - a result written to a file, whole or not at all.
#pragma once

#include <expected>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>

#include "cli/command.hpp"

namespace balanceroute::cli {

// A path that means standard output.
inline constexpr std::string_view kStandardOutput = "-";

// Whether write_output could write to each of a command's files, asked before the work whose result they are. At most
// one may be standard output.
std::expected<void, Failure> check_outputs(std::initializer_list<std::string_view> paths);

// An empty path writes nothing. The text is written beside the file first and moved into its place, so that a reader
// never finds half of it.
std::expected<void, Failure> write_output(const std::string& path, const std::string& text);

// Where the command's own words go: standard output, or standard error if one of its files is that.
std::ostream& words_beside(std::initializer_list<std::string_view> paths);

}  // namespace balanceroute::cli
