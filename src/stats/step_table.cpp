#include "stats/step_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace balanceroute {

StepTable::StepTable(std::vector<Point> points) : points_{std::move(points)} {
  assert(points_.size() >= 2);
  assert(std::ranges::is_sorted(points_, std::ranges::less_equal{}, &Point::load));
  assert(std::ranges::is_sorted(points_, {}, &Point::ms) && points_.front().ms > 0);
}

double StepTable::milliseconds(double load) const {
  const auto above = std::ranges::lower_bound(points_.begin() + 1, points_.end() - 1, load, {}, &Point::load);
  const Point& right = *above;
  const Point& left = *(above - 1);
  const double slope = (right.ms - left.ms) / (right.load - left.load);
  return std::max(0.0, left.ms + slope * (load - left.load));
}

StepTime StepTable::line() const {
  const Point& first = points_.front();
  const double slope = (points_.back().ms - first.ms) / (points_.back().load - first.load);
  return {.fixed_ms = first.ms - slope * first.load, .per_token_ms = slope};
}

}  // namespace balanceroute
