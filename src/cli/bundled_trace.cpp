#include "cli/bundled_trace.hpp"

// The assembler copies the file in as it is (GCC 12 has no #embed).
__asm__(
    ".section .rodata\n"
    ".global balanceroute_bundled_trace\n"
    ".global balanceroute_bundled_trace_end\n"
    "balanceroute_bundled_trace:\n"
    ".incbin \"" BALANCEROUTE_BUNDLED_TRACE
    "\"\n"
    "balanceroute_bundled_trace_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char balanceroute_bundled_trace[];
extern const char balanceroute_bundled_trace_end[];
}

namespace balanceroute::cli {

std::string_view bundled_trace() {
  return {balanceroute_bundled_trace, balanceroute_bundled_trace_end};
}

}  // namespace balanceroute::cli
