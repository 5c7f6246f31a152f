// oracle.hpp - the predictor `oracle`: the truth, as an upper reference in simulations.
#pragma once

#include "predict/predictor.hpp"

namespace balanceroute {

// OraclePredictor reads every request's length from a LengthOracle, which must outlive it.
//   Cost  predict O(1); survival O(1) a chance; nothing is learned.
class OraclePredictor final : public Predictor {
 public:
  static constexpr std::string_view kName = "oracle";

  explicit OraclePredictor(const LengthOracle& lengths) : lengths_{lengths} {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  void ended(const Request&, Tokens, LeaseEnd) override {}
  [[nodiscard]] bool informed() const override { return true; }
  [[nodiscard]] bool wants_renewal() const override { return false; }
  void renew(std::span<const LifeSpan>) override {}
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override;
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override;

 private:
  [[nodiscard]] Tokens remaining(const Request& request, Tokens age) const;

  const LengthOracle& lengths_;
};

}  // namespace balanceroute
