// decision_trail.hpp - the latest admissions of a fleet and why they were made, for a person who looks.
//
// Leaves out what a record of all decisions needs: decision_log.hpp writes that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "net/clock.hpp"
#include "policy/admission.hpp"

namespace balanceroute::proxy {

// DecisionRecord is one admission as it was made.
struct DecisionRecord {
  std::uint64_t serial;  // 1, 2, 3, ...
  net::TimePoint at;
  net::Duration waited;  // for a worker
  RequestId request;
  WorkerId worker;
  GroupId group;
  Tokens prompt;  // of one sequence
  std::int32_t sequences;
  Stage stage;
  std::int32_t set_size;                            // requests chosen together
  double score;                                     // of that set
  Tokens margin;                                    // the worker's room below the envelope just before
  Tokens envelope;                                  // of the group after the round
  std::optional<Admission::Alternative> runner_up;  // only while somebody looks, as the next
  std::optional<WorkerId> shadow{};                 // where another policy would have it
};

// DecisionTrail keeps the last kKept records.
//   Cost     add() O(1).
//   Threads  not synchronised; the deciding thread's.
class DecisionTrail {
 public:
  static constexpr std::size_t kKept = 200;

  // Gives it the next serial.
  void add(DecisionRecord record) {
    record.serial = ++last_;
    if (records_.size() == kKept) records_.pop_front();
    records_.push_back(record);
  }

  // Those after that serial that are still there, oldest first.
  [[nodiscard]] std::vector<DecisionRecord> after(std::uint64_t serial) const {
    const std::uint64_t missed = serial < last_ ? last_ - serial : 0;
    const std::size_t count = std::min<std::uint64_t>(missed, records_.size());
    return {records_.end() - static_cast<std::ptrdiff_t>(count), records_.end()};
  }

 private:
  std::uint64_t last_ = 0;
  std::deque<DecisionRecord> records_;
};

}  // namespace balanceroute::proxy
