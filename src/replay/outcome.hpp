// outcome.hpp - what became of one request of a replay.
#pragma once

#include <cstdint>
#include <optional>

#include "core/units.hpp"
#include "net/clock.hpp"
#include "replay/fault.hpp"

namespace balanceroute::replay {

struct Outcome {
  std::optional<Fault> fault = Fault{FaultKind::cancelled, "cancelled"};  // none: answered in full
  bool left = false;                                                      // its client left before it ended
  std::int64_t retries = 0;
  std::optional<net::TimePoint> sent;         // when its first attempt was
  std::optional<net::TimePoint> first_token;  // of a stream
  net::TimePoint last_token{};
  net::TimePoint end{};
  Tokens tokens{0};
  std::optional<Tokens> prompt;  // as the server counted it
};

}  // namespace balanceroute::replay
