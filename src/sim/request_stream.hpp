// request_stream.hpp - the requests of a simulated run in order of arrival, made from a trace as they are asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "core/units.hpp"
#include "trace/trace.hpp"

namespace balanceroute::sim {

// A span of simulated time, or a moment: the time since the run began.
using Nanoseconds = std::chrono::nanoseconds;

// poisson: a Poisson process. trace: the trace's own times, faster or slower.
enum class ArrivalLaw : std::uint8_t { poisson, trace };

struct StreamSettings {
  std::int64_t repeat = 1;  // times the trace is played; more than once: each time its lengths in another drawn order
  ArrivalLaw arrivals = ArrivalLaw::poisson;
  double rate_per_second = 1;  // of arrivals, on average
  std::uint64_t seed = 1;
};

struct Arrival {
  Nanoseconds at{0};
  Tokens prompt;
  Tokens output;
  std::uint64_t prompt_key = 0;  // as in Request
};

// RequestStream tells the arrivals of one run.
//   Determinism  trace and settings give the arrivals; who routes them does not matter, so policies can be compared on
//                the very same requests. Another rate stretches the times and changes nothing else.
//   Invariants   the first arrives at 0 and none before the one in front of it; size() of them in all.
//   Cost         one arrival O(1); memory O(trace), whatever `repeat` is. `trace` must outlive it.
class RequestStream {
 public:
  // `trace` is not empty; with its own times, it spans some.
  RequestStream(std::span<const trace::TraceRequest> trace, const StreamSettings& settings);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] bool done() const { return taken_ == size_; }

  // The next one, and beyond it; not done().
  [[nodiscard]] const Arrival& next() const { return next_; }
  void pop();

 private:
  void prepare();
  void begin_pass();

  std::span<const trace::TraceRequest> trace_;
  StreamSettings settings_;
  std::uint64_t size_;
  double stretch_ = 1;  // simulated time over trace time
  double period_ = 0;   // of one playing of the trace, in ns of trace time
  Random lengths_;
  Random gaps_;

  std::uint64_t taken_ = 0;
  std::vector<std::uint32_t> order_;  // of lengths in this playing; empty: the trace's own
  double clock_ = 0;                  // ns of the last Poisson arrival
  Arrival next_;
};

}  // namespace balanceroute::sim
