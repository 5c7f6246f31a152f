#include "proxy/policy_watch.hpp"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "policy/registry.hpp"

namespace balanceroute::proxy {

namespace {

constexpr net::Duration kInterval = std::chrono::seconds{1};

}  // namespace

PolicyWatch::PolicyWatch(std::string fleet, const FallbackParams& params, const PolicyParams& chosen,
                         const LoadModel& load_model, Dispatcher& dispatcher, const Membership& membership,
                         spdlog::logger& log)
    : fleet_{std::move(fleet)},
      chosen_{chosen},
      load_model_{load_model},
      dispatcher_{dispatcher},
      membership_{membership},
      log_{log},
      fallback_{params, dispatcher.decider().now()},
      timer_{dispatcher.decider().timers()} {
  set(params);
  timer_.arm(dispatcher_.decider().now() + kInterval, [this] { look(); });
}

void PolicyWatch::set(const FallbackParams& params) {
  fallback_.set(params);
  const std::chrono::duration<double, std::milli> slow{params.slow_round_ms};
  dispatcher_.set_slow_round(std::chrono::duration_cast<net::Duration>(slow));
}

void PolicyWatch::choose(const PolicyParams& chosen) {
  chosen_ = chosen;
  in_its_place_.clear();
  fallback_.reset(dispatcher_.decider().now(), signs());
}

FallbackStatus PolicyWatch::status() const {
  FallbackStatus status{.instead = in_its_place_};
  for (const FallbackCause cause : kFallbackCauses) {
    status.causes[static_cast<std::size_t>(cause)] = {fallback_.holds(cause), fallback_.times(cause)};
  }
  return status;
}

void PolicyWatch::look() {
  const net::TimePoint now = dispatcher_.decider().now();
  fallback_.observe(now, signs());
  if (const std::string_view simpler = wanted(); simpler != in_its_place_) bring_about(simpler);
  timer_.arm(now + kInterval, [this] { look(); });
}

PolicySigns PolicyWatch::signs() const {
  const Router& router = dispatcher_.router();
  PolicySigns seen{.policy_errors = router.refused_choices() + router.broken_calls(),
                   .slow_rounds = dispatcher_.slow_rounds(),
                   .predictions = std::nullopt,
                   .mirror_share = membership_.contradicted_share()};
  if (const auto report = router.chosen_policy().prediction_report()) seen.predictions = report->calibration;
  return seen;
}

// For the gravest cause that asks for another policy at all.
std::string_view PolicyWatch::wanted() const {
  for (auto cause = kFallbackCauses.rbegin(); cause != kFallbackCauses.rend(); ++cause) {
    if (!fallback_.holds(*cause)) continue;
    if (const std::string_view simpler = simpler_policy(*cause, chosen_.name); !simpler.empty()) return simpler;
  }
  return {};
}

void PolicyWatch::bring_about(std::string_view simpler) {
  in_its_place_ = simpler;
  if (simpler.empty()) {
    dispatcher_.change([](Router& router) {
      router.restore();
      return true;
    });
    log_.info("fallback over fleet={} policy={}: it decides again", fleet_, chosen_.name);
    return;
  }
  PolicyParams settings = chosen_;
  settings.name = simpler;
  settings.alpha = PolicyParams::kAuto;
  settings.beta = PolicyParams::kAuto;
  auto policy = make_policy(settings, {.load_model = load_model_}).value();  // they fit the chosen one, and so these
  dispatcher_.change([&](Router& router) {
    router.degrade(std::move(policy), settings);
    return true;
  });
  log_.warn("fallback fleet={} policy={} instead of {} cause={}", fleet_, simpler, chosen_.name,
            fmt::join(causes_in_force(status()), ","));
}

}  // namespace balanceroute::proxy
