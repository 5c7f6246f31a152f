// calibration.hpp - whether what was predicted came about: chances of finishing against finishes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ledger.hpp"
#include "core/units.hpp"

namespace balanceroute {

// Calibration compares predicted chances with what happened.
//   Empty    every mean is 0 before the first outcome.
//   Threads  not synchronised.
class Calibration {
 public:
  // Outcomes whose predicted chance lies in one tenth of [0, 1].
  struct Bin {
    std::int64_t count = 0;
    double predicted = 0;  // sum of chances
    std::int64_t happened = 0;
  };
  static constexpr std::size_t kBins = 10;

  // chance in [0, 1].
  void record(double chance, bool happened);
  // Adds what another one recorded.
  Calibration& operator+=(const Calibration& other);

  // What it recorded after it was as `earlier`.
  [[nodiscard]] Calibration since(const Calibration& earlier) const;

  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] double mean_predicted() const;
  [[nodiscard]] double mean_happened() const;
  // Mean of (chance - outcome)^2, the outcome being 0 or 1: 0 is clairvoyance.
  [[nodiscard]] double brier_score() const;
  // The score of predicting mean_happened() each time: what a prediction must beat to be worth anything.
  [[nodiscard]] double brier_reference() const;
  [[nodiscard]] std::span<const Bin, kBins> bins() const { return bins_; }

 private:
  [[nodiscard]] double per_outcome(double sum) const;

  std::array<Bin, kBins> bins_{};
  double squares_ = 0;
};

// OpenPrediction is one prediction that waits for its outcome, kept by whoever keeps the running request.
struct OpenPrediction {
  Tokens made_at{0};  // age
  double finish_chance = 0;
  bool open = false;
};

// PredictionCheck follows predictions until their outcome is known, one a request at a time: "it ends within `horizon`
// more tokens".
//   Outcome  true if the request finishes by then, false once it is known to be older. One that is cut before tells
//            nothing.
//   Cost     each call O(1), no allocation.
class PredictionCheck {
 public:
  explicit PredictionCheck(Steps horizon) : horizon_{horizon.count()} {}

  // The request runs, has `age` tokens, and was predicted to finish within the horizon with this chance. Settles an
  // earlier prediction that has run out; the new one is followed if none is open then.
  void predicted(OpenPrediction& its, Tokens age, double finish_chance);
  // The request is over with so many tokens.
  void ended(OpenPrediction& its, Tokens generated, LeaseEnd how);

  [[nodiscard]] const Calibration& calibration() const { return calibration_; }

 private:
  void settle(OpenPrediction& its, bool finished);

  Tokens horizon_;
  Calibration calibration_;
};

}  // namespace balanceroute
