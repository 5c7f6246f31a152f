// trajectory.hpp - how the loads of one group went over time, in bounded memory: what a report draws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace balanceroute::sim {

// Trajectory is a group's steps, thinned out evenly.
struct Trajectory {
  struct Point {
    std::chrono::nanoseconds start{0};  // of its first step
    std::vector<Tokens> loads;          // in its first step, by worker
    double step_ms = 0;                 // means of its steps
    double imbalance = 0;               // in tokens
    double active = 0;                  // sequences
  };

  std::int64_t steps_of_point = 1;
  std::vector<Point> points;
};

// TrajectoryRecorder makes one. Of so many steps as may come it keeps the loads of some, evenly spaced, and means of
// all: whenever it is full, points become one of two.
//   Cost     memory in most_points * workers; a step O(workers).
//   Threads  not synchronised.
class TrajectoryRecorder {
 public:
  // most_points is even.
  explicit TrajectoryRecorder(std::size_t most_points) : most_points_{most_points} {}

  void step(std::chrono::nanoseconds start, std::chrono::nanoseconds duration, std::span<const Tokens> loads,
            std::int64_t active);

  // A last point of fewer steps than the others is left out, unless it is the only one.
  [[nodiscard]] Trajectory result() const;

 private:
  void halve();

  std::size_t most_points_;
  Trajectory kept_;  // sums in the place of means; its last point may be incomplete
  std::int64_t steps_of_last_ = 0;
};

}  // namespace balanceroute::sim
