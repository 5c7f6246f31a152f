// bundled_trace.hpp - examples/traces/azure2023_conv_segment.csv inside the program, so that `demo` needs no file.
#pragma once

#include <string_view>

namespace balanceroute::cli {

inline constexpr std::string_view kBundledTraceName = "azure2023_conv_segment.csv";

std::string_view bundled_trace();

}  // namespace balanceroute::cli
