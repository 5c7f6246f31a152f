// emulator.hpp - a fleet of engines in one process: real HTTP, a real barrier, no model.
//
// Each rank listens on a port of its own and answers like a vLLM server; the ranks of a group step together as
// src/engine says, in real time. Leaves out prefill (instant) and the content of answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "emulator/emulator_params.hpp"
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

  // Binds every port; the message names the address that cannot be had.
  [[nodiscard]] std::expected<void, std::string> start();
  // Ends all streams without their end mark, and the thread.
  void stop();

  // What GET /emulator/stats tells, and what POST /emulator/reset does.
  [[nodiscard]] std::string stats_json();
  void reset_measures();

  // Ports by group and rank, once started.
  [[nodiscard]] const std::vector<std::vector<std::uint16_t>>& ports() const { return ports_; }
  // {"model": ..., "groups": [["http://127.0.0.1:9000", ...], ...]}
  [[nodiscard]] std::string ready_json() const;

 private:
  struct Parts;

  EmulatorParams params_;
  std::unique_ptr<Parts> parts_;
  std::vector<std::vector<std::uint16_t>> ports_;
};

}  // namespace balanceroute::emulator
