// true_lengths.hpp - what a simulation knows and a router cannot: how long each answer will be.
#pragma once

#include <cassert>
#include <cstdint>

#include "core/id_map.hpp"
#include "predict/predictor.hpp"

namespace balanceroute::sim {

// TrueLengths answers for the requests that wait or run.
//   Cost     each call O(1); memory in what is known.
//   Threads  not synchronised; one a simulation.
class TrueLengths final : public LengthOracle {
 public:
  void know(RequestId request, Tokens output) { outputs_.assign(request, static_cast<std::uint32_t>(output.count())); }
  void forget(RequestId request) { outputs_.erase(request); }

  // Of one that is known.
  [[nodiscard]] Tokens output_of(RequestId request) const override {
    const auto output = outputs_.find(request);
    assert(output);
    return Tokens{*output};
  }

 private:
  IdMap outputs_;  // a length is at most 2^31
};

}  // namespace balanceroute::sim
