// step_table.hpp - how long a step lasts by load, as it was measured.
#pragma once

#include <cstddef>
#include <vector>

#include "stats/step_time.hpp"

namespace balanceroute {

// StepTable joins measured points by lines, and goes on beyond them as its outermost lines do.
//   Invariants  at least two points, loads rising, times above 0 and never falling; so is every time in between.
//   Cost        O(log points).
class StepTable {
 public:
  struct Point {
    double load = 0;  // tokens
    double ms = 0;
  };

  explicit StepTable(std::vector<Point> points);

  // Never below 0.
  [[nodiscard]] double milliseconds(double load) const;
  // The line through the outermost points: what a step costs on the whole.
  [[nodiscard]] StepTime line() const;

 private:
  std::vector<Point> points_;
};

}  // namespace balanceroute
