// The router's books against what the engines hold, step by step, with clients that come and leave at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <random>
#include <string>

#include "support/routed_fleet.hpp"

namespace balanceroute::proxy {
namespace {

// Real time that stands still at a gate until a test opens it further: engines take one step, and wait.
class GatedClock final : public net::Clock {
 public:
  [[nodiscard]] net::TimePoint now() const override { return std::min(steady_.now(), gate_.load()); }
  // The gate moves on from where real time, or the gate, is.
  void open_by(net::Duration time) { gate_ = now() + time; }

 private:
  net::SteadyClock steady_;
  std::atomic<net::TimePoint> gate_{steady_.now()};
};

class RouterTruth : public RoutedFleet, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr std::chrono::milliseconds kStep{2};

  [[nodiscard]] const net::Clock& engine_clock() const override { return gated_; }
  void TearDown() override {
    service_.reset();
    emulator_.reset();  // before its clock
  }

  void start_fleet() {
    EmulatorParams fleet = quick(GetParam());
    fleet.ranks = 3;
    fleet.lease_seconds = 1;
    fleet.step_time = {.fixed_ms = static_cast<double>(kStep.count()), .per_token_ms = 0};
    fleet.prefill_time = {.fixed_ms = 0.5, .per_token_ms = 0};
    fleet.transfer_time = {.fixed_ms = 0.5, .per_token_ms = 0};
    gated_.open_by(std::chrono::seconds{60});
    start(fleet, [](ServeParams& params) {
      params.fleets[0].policy.name = "br_fit";
      params.health.interval_ms = 1e6;  // probes ask engines for the time, too
    });
    gated_.open_by({});
  }

  void send_request() {
    const int prompt = 1 + static_cast<int>(random_() % 400);
    const int output = 1 + static_cast<int>(random_() % 40);
    std::string tokens = "1";
    for (int i = 1; i < prompt; ++i) tokens += ",1";
    testing_support::RawClient& client = clients_.emplace_back(service_->client_port());
    client.send(testing_support::http_request("POST", "/v1/completions",
                                              R"({"model":"emulated","stream":true,"prompt":[)" + tokens +
                                                  R"(],"max_tokens":)" + std::to_string(output) + "}"));
  }

  // Whether the books say of every decode rank what it holds: its sequences and its load.
  bool books_are_true() {
    const json books = ledger();
    for (const json& rank : json::parse(emulator_->state_json())["ranks"]) {
      if (rank["role"] == "prefill") continue;
      const json worker =
          *std::ranges::find_if(books["workers"], [&](const json& w) { return w["url"] == rank["url"]; });
      const auto sequences = rank["running"].get<std::int64_t>() + rank["waiting"].get<std::int64_t>();
      if (worker["sequences"] != sequences || worker["load_tokens"] != rank["kv_tokens"]) return false;
    }
    return true;
  }
  [[nodiscard]] bool something_waits() {
    const json state = json::parse(emulator_->state_json());
    return std::ranges::any_of(state["ranks"], [](const json& rank) { return rank["waiting"] != 0; });
  }

  GatedClock gated_;
  std::mt19937_64 random_{7};
  std::list<testing_support::RawClient> clients_;
};

INSTANTIATE_TEST_SUITE_P(Dialects, RouterTruth,
                         testing::Values("aggregated", "vllm_nixl", "ascend_mooncake", "vllm_mooncake",
                                         "ascend_layerwise", "sglang"),
                         [](const auto& param) { return std::string{param.param}; });

// Law: after each step, once its tokens have arrived, the router's sequences and load of every worker are the engine's
// to the token, whoever came and left meanwhile and however late an event was read.
TEST_P(RouterTruth, BooksAreTheEnginesAfterEachStep) {
  start_fleet();
  for (int step = 0; step < 150; ++step) {
    if (random_() % 3 != 0 && clients_.size() < 24) send_request();
    if (random_() % 8 == 0 && !clients_.empty()) {
      clients_.erase(std::next(clients_.begin(), static_cast<std::ptrdiff_t>(random_() % clients_.size())));
    }
    gated_.open_by(kStep);
    ASSERT_TRUE(testing_support::soon([this] { return something_waits() || books_are_true(); }))
        << "step " << step << "\n"
        << emulator_->state_json() << "\n"
        << ledger().dump(1);
  }
  clients_.clear();
  gated_.open_by(std::chrono::seconds{60});
  expect_all_given_back();
}

}  // namespace
}  // namespace balanceroute::proxy
