// engine_identity.hpp - who an emulated rank is to others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace balanceroute::emulator {

enum class Role { aggregated, prefill, decode };

// EngineIdentity names one rank of an engine. `engine_id` is another one after a restart.
struct EngineIdentity {
  Role role = Role::aggregated;
  std::size_t engine = 0;  // group, or prefill engine
  std::size_t rank = 0;    // within it
  std::string engine_id;
  std::string host;
  std::uint16_t port = 0;
  std::uint16_t bootstrap_port = 0;  // of a prefill engine whose dialect has one
};

}  // namespace balanceroute::emulator
