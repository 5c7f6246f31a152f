// rate_meter.hpp - how often something happens, of late.
#pragma once

#include <chrono>
#include <cmath>
#include <optional>

#include "net/clock.hpp"

namespace balanceroute::proxy {

// RateMeter counts events, older ones with exponentially less weight.
//   Bias     while less than the memory has passed since the first event, the rate is that of the time passed.
//   Threads  not synchronised.
class RateMeter {
 public:
  explicit RateMeter(net::Duration memory) : memory_{memory} {}

  void count(net::TimePoint now) {
    if (!first_) first_ = now;
    weight_ = faded(now) + 1;
    last_ = now;
  }

  // Nothing before the first event.
  std::optional<double> per_second(net::TimePoint now) const {
    if (!first_) return std::nullopt;
    // The weight of a steady rate r is r * memory * (1 - e^(-passed / memory)); a second at least, so that the first
    // event alone is no flood.
    const double passed = std::max(seconds(now - *first_), 1.0);
    return faded(now) / (seconds(memory_) * (1 - std::exp(-passed / seconds(memory_))));
  }

 private:
  static double seconds(net::Duration span) { return std::chrono::duration<double>{span}.count(); }
  double faded(net::TimePoint now) const { return weight_ * std::exp(-seconds(now - last_) / seconds(memory_)); }

  net::Duration memory_;
  std::optional<net::TimePoint> first_;
  net::TimePoint last_{};
  double weight_ = 0;
};

}  // namespace balanceroute::proxy
