// outlook.hpp - how each worker's load is expected to change, from the ages of what it runs and the survival curve.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/ledger.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "policy/br_fit/params.hpp"
#include "policy/running/running_requests.hpp"
#include "predict/kaplan_meier.hpp"

namespace balanceroute {

// Outlook learns how long answers are, and keeps two sums a worker and look ahead over the sequences it runs, each of
// weight w and with chance q to run still, h steps later: drift = sum of q * (w + h) - w, gone = sum of 1 - q.
//   Renewal   a worker's sums are made anew every refresh_steps steps, all of them when the curve is; in between an
//             admission adds its terms and a departure takes out what is in for it.
//   Cost      an event O(1) amortised; a step O(running / refresh_steps); a new curve O(longest + running).
//   Threads   not synchronised. No allocation once warm.
class Outlook {
 public:
  static constexpr std::size_t kPoints = 3;
  using Row = std::array<double, kPoints>;
  struct Sums {
    Row drift{};
    Row gone{};
  };

  explicit Outlook(const BrFitParams& params);

  // An answer that ran here or, before anything runs, at an earlier time.
  void ended(const LifeSpan& span, LeaseEnd how);
  void admitted(const Request& request, GroupId group, WorkerId worker);
  void aged(RequestId request, Tokens generated);
  void narrowed(RequestId request, Tokens generated);
  void left(RequestId request, Tokens generated, LeaseEnd how);
  void stepped(GroupId group, Steps steps);

  [[nodiscard]] const Row& horizons() const { return horizons_; }  // in steps
  // The chance of a request that starts now to run still at each horizon.
  [[nodiscard]] Row entry_survival() const;
  // Zero for a worker that never ran anything.
  [[nodiscard]] Sums sums(WorkerId worker) const;
  [[nodiscard]] std::optional<Tokens> prompt_of(RequestId running) const;
  [[nodiscard]] double running_prompts(WorkerId worker) const;  // sum over its sequences
  [[nodiscard]] const SurvivalCurve& curve() const { return curve_; }

 private:
  static constexpr std::size_t kFirstCurve = 100;  // finishes

  using Handle = RunningRequests::Handle;

  struct Worker {
    Sums sums;
    double prompts = 0;
  };

  [[nodiscard]] double survival(std::size_t point, std::int64_t age) const;
  void add(Handle handle, double sign);
  void renew(WorkerId worker);
  void renew_curve();

  std::size_t refresh_;
  Row fractions_;
  KaplanMeier lengths_;
  SurvivalCurve curve_;
  std::size_t next_curve_ = kFirstCurve;
  Row horizons_{15, 60, 250};                       // until a curve is known
  std::array<std::vector<double>, kPoints> ahead_;  // S(a + h) / S(a) by age a; 1 beyond

  RunningRequests running_;
  std::vector<Worker> workers_;      // by WorkerId
  std::vector<Tokens> counted_age_;  // by handle: the age that is in the sums
};

}  // namespace balanceroute
