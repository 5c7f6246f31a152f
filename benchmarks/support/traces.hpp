// traces.hpp - the recorded requests that benchmarks run on.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "trace/reader.hpp"
#include "trace/trace.hpp"

namespace balanceroute {

// The Azure 2023 conversation trace, read once.
inline const std::filesystem::path kAzure2023 = BALANCEROUTE_TRACES "/azure2023_conv.csv.gz";

inline const trace::Trace& azure_2023() {
  static const trace::Trace trace = [] {
    auto read = trace::read_trace(kAzure2023);
    if (!read) {
      std::fprintf(stderr, "%s\n", read.error().c_str());
      std::exit(1);
    }
    return *std::move(read);
  }();
  return trace;
}

}  // namespace balanceroute
