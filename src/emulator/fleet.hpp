// fleet.hpp - all groups of an emulated fleet, and what they measured.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "emulator/emulator_params.hpp"
#include "emulator/stepping_group.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::emulator {

// Fleet holds the groups, which step independently of each other.
//   Threads  only on `thread`.
class Fleet {
 public:
  Fleet(net::IoThread& thread, const EmulatorParams& params);

  [[nodiscard]] net::IoThread& thread() { return thread_; }
  [[nodiscard]] SteppingGroup& group(std::size_t index) { return *groups_[index]; }

  // Measures of the window, of the whole fleet with the same members for each of its "groups".
  [[nodiscard]] std::string stats_json() const;
  // Begins a new measuring window.
  void reset_measures();

 private:
  net::IoThread& thread_;
  std::vector<std::unique_ptr<SteppingGroup>> groups_;
};

}  // namespace balanceroute::emulator
