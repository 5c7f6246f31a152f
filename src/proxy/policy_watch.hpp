// policy_watch.hpp - sees to it that a policy that does not do well gives way, and decides again when it may.
//
// Leaves out when that is (fallback.hpp) and how a policy gives way (policy/router.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/load_model.hpp"
#include "net/timer_queue.hpp"
#include "policy/policy_params.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/fallback.hpp"
#include "proxy/membership.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// PolicyWatch looks at a fleet's policy every second.
//   Threads  the deciding thread, or before it runs.
class PolicyWatch {
 public:
  PolicyWatch(std::string fleet, const FallbackParams& params, const PolicyParams& chosen, const LoadModel& load_model,
              Dispatcher& dispatcher, const Membership& membership, spdlog::logger& log);

  void set(const FallbackParams& params);
  // The operator has set another policy, which decides now.
  void choose(const PolicyParams& chosen);
  [[nodiscard]] FallbackStatus status() const;

 private:
  void look();
  [[nodiscard]] PolicySigns signs() const;
  [[nodiscard]] std::string_view wanted() const;
  void bring_about(std::string_view simpler);

  std::string fleet_;
  PolicyParams chosen_;
  LoadModel load_model_;
  Dispatcher& dispatcher_;
  const Membership& membership_;
  spdlog::logger& log_;
  Fallback fallback_;
  std::string in_its_place_;  // the policy that decides instead; empty: none
  net::Timer timer_;
};

}  // namespace balanceroute::proxy
