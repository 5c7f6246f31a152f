// fault.hpp - what can be wrong with a history file, by what can be done about it.
#pragma once

#include <cstdint>
#include <string>

namespace balanceroute::history {

enum class FaultKind : std::uint8_t {
  busy,     // another process holds it: try again
  full,     // no room, on the disk or within the file's bound
  io,       // it cannot be opened, read or written now
  corrupt,  // it is no database, or a broken one
  foreign,  // a database, but not ours, or of a later schema: hands off
  other
};

// Fault is one failed operation, in words.
struct Fault {
  FaultKind kind = FaultKind::other;
  std::string message;
};

}  // namespace balanceroute::history
