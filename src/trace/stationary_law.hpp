// stationary_law.hpp - what a slot holds when one looks at a fleet that has long been running: for a warm start.
//
// A busy slot seen at a random moment holds a request with probability proportional to its output length
// (length-biased), at an age uniform over its life. That both are exact for an always full fleet is the
// inspection paradox of renewal theory; see Feller, An Introduction to Probability Theory, vol. 2, XI.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "trace/trace.hpp"

namespace balanceroute::trace {

// StationaryLaw draws running requests of a trace.
//   Invariants  a drawn age is in [0, output): at least one token is still to come.
//   Cost        construction O(n), a draw O(log n) and one random number.
class StationaryLaw {
 public:
  explicit StationaryLaw(std::span<const TraceRequest> requests);  // not empty

  struct Running {
    std::size_t index = 0;  // of the request in the trace
    Tokens age;             // tokens it has generated
  };
  [[nodiscard]] Running draw(Random& random) const;

 private:
  std::vector<std::uint64_t> ends_;  // running sum of outputs: request i owns the token-steps [ends_[i-1], ends_[i])
};

}  // namespace balanceroute::trace
