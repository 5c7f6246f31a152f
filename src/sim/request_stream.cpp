#include "sim/request_stream.hpp"

#include <cassert>
#include <cmath>

#include "sim/seeds.hpp"
#include "trace/arrivals.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::sim {

RequestStream::RequestStream(std::span<const trace::TraceRequest> trace, const StreamSettings& settings)
    : trace_{trace},
      settings_{settings},
      size_{trace.size() * static_cast<std::uint64_t>(settings.repeat)},
      lengths_{seed_for(Purpose::lengths, settings.seed)},
      gaps_{seed_for(Purpose::gaps, settings.seed)} {
  assert(!trace.empty() && settings.repeat >= 1 && settings.rate_per_second > 0);
  if (settings.arrivals == ArrivalLaw::trace) {
    const double rate = trace::arrival_rate(trace);
    assert(rate > 0);
    stretch_ = rate / settings.rate_per_second;
    period_ = 1e9 / rate * static_cast<double>(trace.size());  // one mean gap from its last to the next first
  }
  prepare();
}

void RequestStream::pop() {
  assert(!done());
  ++taken_;
  if (!done()) prepare();
}

void RequestStream::prepare() {
  const std::size_t place = taken_ % trace_.size();
  if (place == 0) begin_pass();
  const trace::TraceRequest& lengths = trace_[order_.empty() ? place : order_[place]];
  next_.prompt = lengths.prompt;
  next_.output = lengths.output;
  next_.prompt_key = trace::prompt_key(lengths);
  if (settings_.arrivals == ArrivalLaw::poisson) {
    if (taken_ > 0) clock_ += gaps_.exponential(1e9 / settings_.rate_per_second);
  } else {
    const auto pass = taken_ / trace_.size();
    clock_ = (static_cast<double>(pass) * period_ + static_cast<double>(trace_[place].arrival.count())) * stretch_;
  }
  next_.at = Nanoseconds{std::llround(clock_)};
}

void RequestStream::begin_pass() {
  if (settings_.repeat > 1) order_ = trace::permutation(trace_.size(), lengths_);
}

}  // namespace balanceroute::sim
