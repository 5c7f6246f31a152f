#include "policy/registry.hpp"

#include <algorithm>
#include <array>

#include "policy/br_0/br_0.hpp"
#include "policy/br_0_bypass/br_0_bypass.hpp"
#include "policy/br_fit/br_fit.hpp"
#include "policy/join_shortest_queue/join_shortest_queue.hpp"
#include "policy/least_tokens/least_tokens.hpp"
#include "policy/power_of_two/power_of_two.hpp"
#include "policy/random/random.hpp"
#include "policy/round_robin/round_robin.hpp"

namespace balanceroute {
namespace {

struct Listed {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyParams&);
};

template <class T>
std::unique_ptr<Policy> plain(const PolicyParams&) {
  return std::make_unique<T>();
}

std::unique_ptr<Policy> br_0(const PolicyParams& params) {
  return std::make_unique<Br0>(two_stage_settings(params));
}

std::unique_ptr<Policy> br_fit(const PolicyParams& params) {
  return std::make_unique<BrFit>(params.br_fit);
}

// A new policy is a folder and a line here.
constexpr std::array kPolicies{
    Listed{RandomWorker::kName, plain<RandomWorker>}, Listed{RoundRobin::kName, plain<RoundRobin>},
    Listed{PowerOfTwo::kName, plain<PowerOfTwo>},     Listed{JoinShortestQueue::kName, plain<JoinShortestQueue>},
    Listed{LeastTokens::kName, plain<LeastTokens>},   Listed{Br0::kName, br_0},
    Listed{Br0Bypass::kName, plain<Br0Bypass>},       Listed{BrFit::kName, br_fit},
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

std::expected<std::unique_ptr<Policy>, std::string> make_policy(const PolicyParams& params) {
  if (auto valid = validate(params); !valid) return std::unexpected(std::move(valid).error());
  return std::ranges::find(kPolicies, params.name, &Listed::name)->make(params);
}

}  // namespace balanceroute
