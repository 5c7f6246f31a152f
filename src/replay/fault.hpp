// fault.hpp - what went wrong with one request of a replay: a kind to count, words for a person.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace balanceroute::replay {

enum class FaultKind : std::uint8_t {
  connect,          // no connection
  timeout,          // no answer, or no end of it, in time
  status_4xx,       // any other status than 200, not of the 5xx
  status_5xx,       //
  broken,           // the connection broke, or was closed within an answer
  error_in_answer,  // the answer says that it failed
  bad_answer,       // not what the API promises: no stream, no JSON, no end mark, lost or doubled tokens
  cancelled         // ended by the replay
};

inline constexpr std::array<std::string_view, 8> kFaultNames{"connect", "timeout",         "status_4xx", "status_5xx",
                                                             "broken",  "error_in_answer", "bad_answer", "cancelled"};
inline constexpr std::size_t kFaultKinds = kFaultNames.size();

struct Fault {
  FaultKind kind = FaultKind::bad_answer;
  std::string text{};
};

}  // namespace balanceroute::replay
