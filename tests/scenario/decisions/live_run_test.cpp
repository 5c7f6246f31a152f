// Decision truth: what a live router decided, in front of an emulated fleet and under clients that give up, is what the
// core decides when it is told the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "emulator/emulator.hpp"
#include "proxy/decision_check.hpp"
#include "proxy/service.hpp"
#include "replay/replay.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::proxy {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t kRanks = 4;
constexpr std::int64_t kSlots = 4;

// A few more requests than the fleet can answer, so that many wait; lengths that differ by a factor of ten.
trace::Trace busy_trace(std::int64_t count) {
  Random random{3};
  trace::Trace trace{.name = "busy"};
  for (std::int64_t i = 0; i < count; ++i) {
    trace.requests.push_back({i * microseconds{2'200},
                              Tokens{static_cast<std::int64_t>(20 + random.below(400))},
                              Tokens{static_cast<std::int64_t>(2 + random.below(20))},
                              {}});
  }
  return trace;
}

struct Run {
  std::string_view policy;
  std::int64_t requests;
  std::string_view shadow = "none";
  std::string_view mode = "step";
};

class LiveRun : public testing::TestWithParam<Run> {
 protected:
  ~LiveRun() override { std::filesystem::remove(path_); }

  ServeParams router_params(const emulator::Emulator& engines) const {
    ServeParams serve;
    serve.listen = "127.0.0.1:0";
    serve.admin.listen = "127.0.0.1:0";
    FleetParams fleet;
    fleet.policy.name = GetParam().policy;
    fleet.shadow = {.policy = std::string{GetParam().shadow}, .mode = std::string{GetParam().mode}};
    fleet.decision_log.path = path_;
    GroupParams group{.name = "g", .slots = kSlots, .kv = {}, .workers = {}};
    for (const std::uint16_t port : engines.ports().front()) {
      group.workers.push_back({.url = "http://127.0.0.1:" + std::to_string(port)});
    }
    fleet.groups.push_back(std::move(group));
    serve.fleets.push_back(std::move(fleet));
    return serve;
  }

  replay::ReplayResult run_live(std::int64_t requests) {
    emulator::EmulatorParams fleet;
    fleet.ranks = kRanks;
    fleet.slots = kSlots;
    fleet.step_time = {.fixed_ms = 3, .per_token_ms = 1e-3};
    emulator::Emulator engines{fleet, clock_};
    const auto started = engines.start();
    EXPECT_TRUE(started) << started.error();
    auto router = Service::start(router_params(engines), telemetry::make_logger("test", "error"));
    EXPECT_TRUE(router) << router.error();
    replay::ReplayParams client;
    client.url = "http://127.0.0.1:" + std::to_string((*router)->client_port());
    client.length_member = "emulator";
    client.retries = 0;
    client.request_timeout_s = 0.12;  // clients give up, some while they wait, some while they are answered
    auto result = replay::Replay{client, clock_}.run(busy_trace(requests));
    EXPECT_TRUE(result) << result.error();
    return result.value_or(replay::ReplayResult{});
  }

  net::SteadyClock clock_;
  std::string path_ = testing::TempDir() + "live-decisions-" + std::to_string(::getpid()) + ".jsonl";
};

// Law: told again what the live router heard, a fresh one makes every one of its decisions; so it does without the
// shadow that the live one had, which has changed none.
TEST_P(LiveRun, IsDecidedAgain) {
  const std::int64_t requests = GetParam().requests;
  const auto result = run_live(requests);
  const auto given_up = result.errors_by_kind[static_cast<std::size_t>(replay::FaultKind::timeout)];
  EXPECT_EQ(result.completed + given_up, requests);
  EXPECT_GT(given_up, 0);
  EXPECT_GT(result.completed, 0);

  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->difference, std::nullopt) << *report->difference;
  EXPECT_EQ(report->end, "stop");
  EXPECT_GE(report->requests, requests * 9 / 10);  // a few may leave before they are read; the probe is one more
  EXPECT_GE(report->admissions, result.completed);
  EXPECT_GT(report->rounds, requests / 20);
}

INSTANTIATE_TEST_SUITE_P(Policies, LiveRun,
                         testing::Values(Run{"br_fit", 2'000}, Run{"br_h", 300}, Run{"br_0", 300},
                                         Run{"power_of_two", 300}, Run{"least_tokens", 300},
                                         Run{"br_fit", 300, "power_of_two", "step"},
                                         Run{"power_of_two", 300, "br_h", "world"}),
                         [](const auto& test) {
                           const Run& run = test.param;
                           const std::string name{run.policy};
                           return run.shadow == "none" ? name : name + "_beside_" + std::string{run.shadow};
                         });

}  // namespace
}  // namespace balanceroute::proxy
