#include "sim/trajectory.hpp"

#include <numeric>

#include "core/envelope.hpp"

namespace balanceroute::sim {

void TrajectoryRecorder::step(std::chrono::nanoseconds start, std::chrono::nanoseconds duration,
                              std::span<const Tokens> loads, std::int64_t active) {
  if (kept_.points.empty() || steps_of_last_ == kept_.steps_of_point) {
    if (kept_.points.size() == most_points_) halve();
    kept_.points.push_back({.start = start, .loads = {loads.begin(), loads.end()}});
    steps_of_last_ = 0;
  }
  Trajectory::Point& last = kept_.points.back();
  const Tokens whole = largest_load(loads) * static_cast<std::int64_t>(loads.size());
  last.step_ms += static_cast<double>(duration.count()) / 1e6;
  last.imbalance += static_cast<double>((whole - total_load(loads)).count());
  last.active += static_cast<double>(active);
  ++steps_of_last_;
}

void TrajectoryRecorder::halve() {
  auto& points = kept_.points;
  for (std::size_t i = 0; i < points.size() / 2; ++i) {
    const Trajectory::Point& second = points[2 * i + 1];
    Trajectory::Point merged = points[2 * i];
    merged.step_ms += second.step_ms;
    merged.imbalance += second.imbalance;
    merged.active += second.active;
    points[i] = std::move(merged);
  }
  points.resize(points.size() / 2);
  kept_.steps_of_point *= 2;
}

Trajectory TrajectoryRecorder::result() const {
  Trajectory told = kept_;
  if (told.points.size() > 1 && steps_of_last_ < told.steps_of_point) told.points.pop_back();
  const auto steps =
      static_cast<double>(told.points.size() == 1 && steps_of_last_ > 0 ? steps_of_last_ : told.steps_of_point);
  for (Trajectory::Point& point : told.points) {
    point.step_ms /= steps;
    point.imbalance /= steps;
    point.active /= steps;
  }
  return told;
}

}  // namespace balanceroute::sim
