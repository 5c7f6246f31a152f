// stream_progress.hpp - how far one request's streams have come, as its I/O thread has read them.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/units.hpp"
#include "net/clock.hpp"

namespace balanceroute::proxy {

// StreamProgress is a request's tokens, how many of them the last event brought, and its time.
//   Threads  one shows, any reads; the values may be of successive events.
class StreamProgress {
 public:
  // So many tokens of each sequence were read by now.
  void show(Tokens tokens, net::TimePoint now) {
    latest_.store(tokens.count() - tokens_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    tokens_.store(tokens.count(), std::memory_order_relaxed);
    at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

  [[nodiscard]] Tokens tokens() const { return Tokens{tokens_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] Tokens latest() const { return Tokens{latest_.load(std::memory_order_relaxed)}; }
  [[nodiscard]] net::TimePoint at() const { return net::TimePoint{net::Duration{at_.load(std::memory_order_relaxed)}}; }

 private:
  std::atomic<std::int64_t> tokens_{0};
  std::atomic<std::int64_t> latest_{0};
  std::atomic<net::Duration::rep> at_{0};
};

}  // namespace balanceroute::proxy
