// fleet.hpp - everything of an emulated fleet that is not HTTP, and what it measured.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/dialect.hpp"
#include "emulator/emulator_params.hpp"
#include "emulator/fault_plan.hpp"
#include "emulator/kv_exchange.hpp"
#include "emulator/prefill_engine.hpp"
#include "emulator/stepping_group.hpp"
#include "net/io_thread.hpp"
#include "net/task_group.hpp"

namespace balanceroute::emulator {

// What a service adds to the reports on the whole fleet.
class Reporter {
 public:
  virtual ~Reporter() = default;
  // A JSON object for each rank, behind the other in a list.
  virtual void append_state(std::vector<std::string>& ranks) const = 0;
  // Sequences that are here in any state, those that wait for their KV included.
  [[nodiscard]] virtual std::int64_t sequences() const = 0;
  [[nodiscard]] virtual const FaultPlan& faults() const = 0;
};

// Fleet holds groups, which step independently of each other, prefill engines and the channel between them.
//   Threads  only on `thread`.
class Fleet {
 public:
  Fleet(net::IoThread& thread, const EmulatorParams& params);

  [[nodiscard]] net::IoThread& thread() { return thread_; }
  [[nodiscard]] const EmulatorParams& params() const { return params_; }
  [[nodiscard]] SteppingGroup& group(std::size_t index) { return *groups_[index]; }
  [[nodiscard]] PrefillEngine& prefill(std::size_t instance, std::size_t rank);
  [[nodiscard]] KvExchange& exchange() { return exchange_; }
  [[nodiscard]] Dialect& dialect() { return *dialect_; }
  [[nodiscard]] net::TaskGroup& tasks() { return tasks_; }
  // Reporters live as long as the fleet is asked.
  void add(const Reporter& reporter) { reporters_.push_back(&reporter); }

  // Measures of the window, of the whole fleet with the same members for each of its "groups".
  [[nodiscard]] std::string stats_json() const;
  // What every rank holds now, and whether the fleet holds anything at all.
  [[nodiscard]] std::string state_json() const;
  // The last steps of a group, oldest first, at most `most`.
  [[nodiscard]] std::string steps_json(std::size_t group, std::size_t most) const;
  // Begins a new measuring window.
  void reset_measures();

 private:
  [[nodiscard]] bool holds_nothing() const;

  net::IoThread& thread_;
  EmulatorParams params_;
  net::TaskGroup tasks_;
  std::vector<std::unique_ptr<SteppingGroup>> groups_;
  std::vector<std::unique_ptr<PrefillEngine>> prefills_;  // rank by rank of each instance
  KvExchange exchange_;                                   // whose offers belong to engines
  std::unique_ptr<Dialect> dialect_;
  std::vector<const Reporter*> reporters_;
};

}  // namespace balanceroute::emulator
