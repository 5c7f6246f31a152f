// fleet_shadow.hpp - the policy that a fleet asks beside the one that decides.
//
// Leaves out what it is asked and what becomes of it: policy/shadow/.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "net/io_thread.hpp"
#include "policy/policy_params.hpp"
#include "policy/router.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/serve_params.hpp"
#include "proxy/shadow_report.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// FleetShadow is a shadow of either kind. When it fails, or is too slow, it is asked no more, and the log says so.
//   Threads  the deciding thread, or before it runs. It outlives the dispatcher that it joins.
class FleetShadow {
 public:
  // `of_fleet`: the settings that it shares with the policy that decides. Nothing if no shadow is set.
  static std::expected<std::unique_ptr<FleetShadow>, std::string> make(const FleetParams& params,
                                                                       const PolicyParams& of_fleet, std::uint64_t seed,
                                                                       const RouterSettings& settings,
                                                                       net::IoThread& decider, spdlog::logger& log);

  // What hears all that the fleet's router is told, from the first word on; none: nothing does.
  [[nodiscard]] RouterListener* listener() { return world_.get(); }
  // Before anything waits or runs there.
  void join(Dispatcher& dispatcher);
  [[nodiscard]] ShadowReport report() const;

 private:
  FleetShadow() = default;

  std::string policy_;
  std::unique_ptr<StepShadow> to_join_;
  const StepShadow* step_ = nullptr;
  std::unique_ptr<WorldShadow> world_;
};

}  // namespace balanceroute::proxy
