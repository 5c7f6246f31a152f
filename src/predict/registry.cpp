#include "predict/registry.hpp"

#include <algorithm>
#include <array>

#include "core/param_check.hpp"
#include "predict/capped.hpp"
#include "predict/exact_match.hpp"
#include "predict/oracle.hpp"
#include "predict/survival.hpp"

namespace balanceroute {
namespace {

struct Listed {
  std::string_view name;
  std::expected<std::unique_ptr<Predictor>, std::string> (*make)(const PredictorParams&, const LengthOracle*);
};

std::expected<std::unique_ptr<Predictor>, std::string> survival(const PredictorParams& params, const LengthOracle*) {
  return std::make_unique<Capped>(std::make_unique<SurvivalPredictor>(params));
}

std::expected<std::unique_ptr<Predictor>, std::string> exact_match(const PredictorParams& params, const LengthOracle*) {
  return std::make_unique<Capped>(std::make_unique<ExactMatch>(params, std::make_unique<SurvivalPredictor>(params)));
}

std::expected<std::unique_ptr<Predictor>, std::string> oracle(const PredictorParams&, const LengthOracle* lengths) {
  if (lengths == nullptr) {
    return std::unexpected(
        "predictor.name = oracle: it reads the lengths of answers from a trace, which only a simulation has; "
        "expected one of survival, exact_match");
  }
  return std::make_unique<OraclePredictor>(*lengths);
}

// A new predictor is a class and a line here.
constexpr std::array kPredictors{
    Listed{SurvivalPredictor::kName, survival},
    Listed{ExactMatch::kName, exact_match},
    Listed{OraclePredictor::kName, oracle},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kPredictors.size()> names;
  std::ranges::transform(kPredictors, names.begin(), &Listed::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> predictor_names() {
  return kNames;
}

std::expected<std::unique_ptr<Predictor>, std::string> make_predictor(const PredictorParams& params,
                                                                      const LengthOracle* oracle) {
  if (auto fault = first_fault(params, "predictor.")) return std::unexpected(*std::move(fault));
  return std::ranges::find(kPredictors, params.name, &Listed::name)->make(params, oracle);
}

}  // namespace balanceroute
