#include "proxy/fleet_shadow.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "core/envelope.hpp"
#include "policy/registry.hpp"

namespace balanceroute::proxy {

namespace {

ShadowLimits limits_of(const FleetParams& params, net::IoThread& decider, spdlog::logger& log) {
  const std::chrono::duration<double, std::milli> slow{params.shadow.slow_round_ms};
  return {.now = [&decider] { return decider.now().time_since_epoch(); },
          .slow_round = std::chrono::duration_cast<net::Duration>(slow),
          .stopped =
              [&log, fleet = params.name, policy = params.shadow.policy](std::string_view why) {
                log.warn("shadow stopped fleet={} policy={}: {}; requests are placed as before", fleet, policy, why);
              }};
}

}  // namespace

std::expected<std::unique_ptr<FleetShadow>, std::string> FleetShadow::make(
    const FleetParams& params, const PolicyParams& of_fleet, std::uint64_t seed, const RouterSettings& settings,
    net::IoThread& decider, spdlog::logger& log) {
  if (!params.shadow.is_on()) return nullptr;
  auto policy = make_policy(params.shadow.settings(of_fleet), {.load_model = settings.books.load_model});
  if (!policy) return std::unexpected("shadow: " + policy.error());
  std::unique_ptr<FleetShadow> shadow{new FleetShadow};
  shadow->policy_ = params.shadow.policy;
  ShadowLimits limits = limits_of(params, decider, log);
  if (params.shadow.keeps_world()) {
    shadow->world_ = std::make_unique<WorldShadow>(params.name, *std::move(policy), seed, settings, std::move(limits));
  } else {
    shadow->to_join_ = std::make_unique<StepShadow>(*std::move(policy), seed, std::move(limits));
    shadow->step_ = shadow->to_join_.get();
  }
  return shadow;
}

void FleetShadow::join(Dispatcher& dispatcher) {
  if (world_) {
    world_->watch(dispatcher.router());
    dispatcher.watch_shadow(*world_);
    return;
  }
  dispatcher.watch_shadow(*step_);
  dispatcher.change([this](Router& router) {
    router.set_shadow(std::move(to_join_));
    return true;
  });
}

ShadowReport FleetShadow::report() const {
  if (!world_) return {.policy = policy_, .stopped = step_->guard().why(), .step = step_->regret()};
  ShadowReport out{.policy = policy_,
                   .stopped = world_->guard().why(),
                   .waiting = world_->router().waiting(),
                   .left_out = world_->left_out()};
  for (const GroupView& group : world_->router().ledger().groups()) {
    const std::size_t g = group.group.value();
    out.world.push_back({.here = world_->here()[g], .there = world_->there()[g], .imbalance = imbalance(group.loads)});
  }
  return out;
}

}  // namespace balanceroute::proxy
