// exact_match.hpp - the predictor `exact_match`: how long the answers to this very prompt were.
#pragma once

#include <memory>
#include <vector>

#include "predict/length_history.hpp"
#include "predict/params.hpp"
#include "predict/predictor.hpp"
#include "predict/renewal_schedule.hpp"

namespace balanceroute {

// ExactMatch predicts from the last answers to the same prompt, if there were enough and one of them was longer than
// the request is now; else it asks its fallback.
//   Learning   finished requests with a prompt key. One that met its output limit counts as longer than any horizon.
//   Hits       a request is a hit if enough answers to its prompt were known when it ended.
//   Cost       ended O(1); renew O(ended since) beside the fallback's; predict O(1); survival O(1) a chance.
class ExactMatch final : public Predictor {
 public:
  static constexpr std::string_view kName = "exact_match";

  ExactMatch(const PredictorParams& params, std::unique_ptr<Predictor> fallback);

  [[nodiscard]] std::string_view name() const override { return kName; }
  void ended(const Request& request, Tokens generated, LeaseEnd how) override;
  [[nodiscard]] bool informed() const override { return history_.keys() > 0 || fallback_->informed(); }
  [[nodiscard]] bool wants_renewal() const override { return schedule_.due() || fallback_->wants_renewal(); }
  void renew(std::span<const LifeSpan> running) override;
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override;
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override;
  [[nodiscard]] KeyHits key_hits() const override { return hits_; }

 private:
  struct Finished {
    std::uint64_t key;
    Tokens length;
  };

  // Lengths of enough answers to its prompt, of which `longer` have more than `age` tokens; empty if there are none.
  struct Known {
    std::span<const Tokens> lengths;
    std::int64_t longer = 0;
  };
  [[nodiscard]] Known known(const Request& request, Tokens age) const;

  std::unique_ptr<Predictor> fallback_;
  LengthHistory history_;
  std::vector<Finished> since_;  // the last renewal
  RenewalSchedule schedule_;
  std::size_t min_answers_;
  KeyHits hits_;
};

}  // namespace balanceroute
