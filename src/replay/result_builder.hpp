// result_builder.hpp - sums up the outcomes of a replay's requests.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "net/clock.hpp"
#include "replay/outcome.hpp"
#include "replay/replay_result.hpp"
#include "stats/values_by_length.hpp"

namespace balanceroute::replay {

// PartBuilder sums up one part of the requests.
class PartBuilder {
 public:
  void add(net::TimePoint due, const Outcome& outcome);
  // As add(), of a request that did not end by itself: `counter` tells why.
  void add_cut(net::TimePoint due, const Outcome& outcome, std::int64_t ReplayPart::* counter);
  [[nodiscard]] const ReplayPart& counts() const { return counts_; }
  [[nodiscard]] ReplayPart part(double seconds) const;

 private:
  void add_times(net::TimePoint due, const Outcome& outcome);

  ReplayPart counts_;
  std::vector<double> ttft_ms_;
  std::vector<double> tpot_ms_;
  std::vector<double> e2e_ms_;
};

// ResultBuilder collects outcomes, for the whole and by length.
//   Threads  not synchronised.
class ResultBuilder {
 public:
  void begin(net::TimePoint now) { begin_ = end_ = now; }
  void add(const RequestLengths& lengths, net::TimePoint due, const Outcome& outcome);
  // From now on requests end because they are ended.
  void cut() { cut_ = true; }
  void note(std::string error);
  // Requests that have ended.
  [[nodiscard]] std::size_t ended() const { return static_cast<std::size_t>(whole_.counts().requests); }

  [[nodiscard]] ReplayResult result() const;

 private:
  using Builders = std::array<PartBuilder, kLengthBuckets>;

  void count_prompt(const RequestLengths& lengths, const Outcome& outcome);

  bool cut_ = false;
  net::TimePoint begin_{};
  net::TimePoint end_{};
  PartBuilder whole_;
  Builders by_prompt_;
  Builders by_output_;
  std::vector<double> send_late_ms_;
  ReplayResult rest_;  // what is told of the whole alone
};

}  // namespace balanceroute::replay
