// emulator.hpp - a fleet of engines in one process: real HTTP, a real barrier, no model.
//
// Engines listen on ports of their own and answer like vLLM or SGLang servers; the decode ranks of a group step
// together as src/engine says, in real time; prefill engines hand KV over as their dialect does. Leaves out the content
// of answers. docs/emulator.md says what is modelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "emulator/emulator_params.hpp"
#include "emulator/engine_identity.hpp"
#include "net/clock.hpp"

namespace balanceroute::emulator {

// Emulator runs the fleet on a thread of its own between start() and stop().
//   Threads  the public functions are for one owner that is not the fleet's thread.
class Emulator {
 public:
  Emulator(const EmulatorParams& params, const net::Clock& clock);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  // Binds every port; the message names the address that cannot be had, or the settings that contradict one another.
  [[nodiscard]] std::expected<void, std::string> start();
  // Ends all streams without their end mark, and the thread.
  void stop();

  // What GET /emulator/stats and /emulator/state tell, and what POST /emulator/reset does.
  [[nodiscard]] std::string stats_json();
  [[nodiscard]] std::string state_json();
  void reset_measures();

  // Once started: ports of the groups, in order of their ranks; of the prefill engines; of their bootstrap servers,
  // where the dialect has some.
  [[nodiscard]] const std::vector<std::vector<std::uint16_t>>& ports() const { return ports_; }
  [[nodiscard]] const std::vector<std::uint16_t>& prefill_ports() const { return prefill_ports_; }
  [[nodiscard]] const std::vector<std::uint16_t>& bootstrap_ports() const { return bootstrap_ports_; }
  // {"model": ..., "dialect": ..., "groups": [["http://127.0.0.1:9000", ...], ...], "prefill": [...], "bootstrap":
  // [...]}
  [[nodiscard]] std::string ready_json() const;

 private:
  struct Parts;

  [[nodiscard]] std::expected<void, std::string> start_decode();
  [[nodiscard]] std::expected<void, std::string> start_prefill();
  [[nodiscard]] bool has_bootstrap() const;
  [[nodiscard]] std::int64_t port_count() const;
  [[nodiscard]] std::vector<EngineIdentity> ranks_of(Role role, std::size_t engine, std::int64_t first,
                                                     std::int64_t count) const;

  EmulatorParams params_;
  std::unique_ptr<Parts> parts_;
  std::vector<std::vector<std::uint16_t>> ports_;
  std::vector<std::uint16_t> prefill_ports_;
  std::vector<std::uint16_t> bootstrap_ports_;
};

}  // namespace balanceroute::emulator
