// step_trail.hpp - the latest steps of one group with what its workers held, for who asks whether load is what steps
// cost.
#pragma once

#include <cstddef>
#include <deque>

namespace balanceroute::proxy {

// StepBlock is the mean of some successive steps.
struct StepBlock {
  double step_ms = 0;
  double max_tokens = 0;    // load of the most loaded worker
  double sequences = 0;     // that this worker decoded
  double total_tokens = 0;  // load of all workers
};

// StepTrail keeps the latest blocks, the oldest first.
class StepTrail {
 public:
  static constexpr std::size_t kMost = 4096;

  void add(const StepBlock& block) {
    if (blocks_.size() == kMost) blocks_.pop_front();
    blocks_.push_back(block);
  }
  [[nodiscard]] const std::deque<StepBlock>& blocks() const { return blocks_; }

 private:
  std::deque<StepBlock> blocks_;
};

}  // namespace balanceroute::proxy
