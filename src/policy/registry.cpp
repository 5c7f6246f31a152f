#include "policy/registry.hpp"

#include <algorithm>
#include <array>

#include "policy/br_0/br_0.hpp"
#include "policy/br_0_bypass/br_0_bypass.hpp"
#include "policy/br_fit/br_fit.hpp"
#include "policy/br_h/br_h.hpp"
#include "policy/join_shortest_queue/join_shortest_queue.hpp"
#include "policy/least_tokens/least_tokens.hpp"
#include "policy/power_of_two/power_of_two.hpp"
#include "policy/random/random.hpp"
#include "policy/round_robin/round_robin.hpp"
#include "predict/registry.hpp"

namespace balanceroute {
namespace {

using Made = std::expected<std::unique_ptr<Policy>, std::string>;

struct Listed {
  std::string_view name;
  Made (*make)(const PolicyParams&, const PolicyContext&);
};

template <class T>
Made plain(const PolicyParams&, const PolicyContext&) {
  return std::make_unique<T>();
}

Made br_0(const PolicyParams& params, const PolicyContext&) {
  return std::make_unique<Br0>(two_stage_settings(params));
}

Made br_h(const PolicyParams& params, const PolicyContext& context) {
  const PolicyParams full = with_preset(params);
  auto predictor = make_predictor(params.predictor, context.lengths);
  if (!predictor) return std::unexpected(std::move(predictor).error());
  const bool growth = full.growth == "true";
  // What an admission grows by is known beforehand only where it is always the same.
  const Growth steady = context.load_model.steady() ? context.load_model.growth_from(Tokens{0}) : Growth{};
  return std::make_unique<BrH>(
      two_stage_settings(params),
      HorizonWeights{.alpha = full.alpha,
                     .beta = full.beta,
                     .gamma = full.gamma,
                     .horizon = Steps{full.horizon_steps},
                     .growth = growth ? Tokens{steady.per_step} : Tokens{0}},
      ProjectionSettings{.horizon = Steps{full.horizon_steps},
                         .refresh = Steps{full.refresh_steps},
                         .shape = full.projection == "point" ? ProjectionShape::point : ProjectionShape::survival,
                         .growth = growth},
      *std::move(predictor), context.load_model);
}

Made br_fit(const PolicyParams& params, const PolicyContext&) {
  return std::make_unique<BrFit>(params.br_fit);
}

// A new policy is a folder and a line here.
constexpr std::array kPolicies{
    Listed{RandomWorker::kName, plain<RandomWorker>},
    Listed{RoundRobin::kName, plain<RoundRobin>},
    Listed{PowerOfTwo::kName, plain<PowerOfTwo>},
    Listed{JoinShortestQueue::kName, plain<JoinShortestQueue>},
    Listed{LeastTokens::kName, plain<LeastTokens>},
    Listed{Br0::kName, br_0},
    Listed{Br0Bypass::kName, plain<Br0Bypass>},
    Listed{BrH::kName, br_h},
    Listed{BrFit::kName, br_fit},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  std::ranges::transform(kPolicies, names.begin(), &Listed::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> policy_names() {
  return kNames;
}

std::expected<std::unique_ptr<Policy>, std::string> make_policy(const PolicyParams& params,
                                                                const PolicyContext& context) {
  if (auto valid = validate(params); !valid) return std::unexpected(std::move(valid).error());
  const auto* const listed = std::ranges::find(kPolicies, params.name, &Listed::name);
  if (listed == kPolicies.end()) return std::unexpected("policy " + params.name + ": expected the name of one policy");
  return listed->make(params, context);
}

}  // namespace balanceroute
