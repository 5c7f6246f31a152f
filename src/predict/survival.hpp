// survival.hpp - the predictor `survival`: how long answers are, whatever they are about.
#pragma once

#include "predict/kaplan_meier.hpp"
#include "predict/params.hpp"
#include "predict/predictor.hpp"
#include "predict/renewal_schedule.hpp"

namespace balanceroute {

// SurvivalPredictor knows a request's age only, and predicts from the survival curve of all answers.
//   Learning   an end is an end; what was cut, met its output limit or still runs is known to be longer. Older requests
//              weigh half each half_life_requests finished ones.
//   Cost       ended O(1) amortised; renew O(longest + running); predict O(1); survival O(1) a chance.
class SurvivalPredictor final : public Predictor {
 public:
  static constexpr std::string_view kName = "survival";

  explicit SurvivalPredictor(const PredictorParams& params);

  [[nodiscard]] std::string_view name() const override { return kName; }
  void ended(const Request& request, Tokens generated, LeaseEnd how) override;
  [[nodiscard]] bool informed() const override { return !curve_.empty(); }
  [[nodiscard]] bool wants_renewal() const override { return schedule_.due(); }
  void renew(std::span<const LifeSpan> running) override;
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override;
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override;

 private:
  KaplanMeier lengths_;
  SurvivalCurve curve_;
  RenewalSchedule schedule_;
  std::size_t min_ends_;
  std::size_t half_life_;
  std::size_t next_halving_;
};

}  // namespace balanceroute
