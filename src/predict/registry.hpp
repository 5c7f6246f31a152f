// registry.hpp - all predictors, by name.
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "predict/params.hpp"
#include "predict/predictor.hpp"

namespace balanceroute {

[[nodiscard]] std::span<const std::string_view> predictor_names();

// The predictor that `params` names, or a message about a setting outside its range. What learns from ends is always
// made to respect each request's output limit; the oracle knows it already. `oracle` may be null but for `oracle`, and
// must outlive the predictor.
[[nodiscard]] std::expected<std::unique_ptr<Predictor>, std::string> make_predictor(const PredictorParams& params,
                                                                                    const LengthOracle* oracle);

}  // namespace balanceroute
