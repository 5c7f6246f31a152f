// A policy that does not do well gives way to a simpler one, and decides again; shadows beside it; on a clock that the
// test moves.
#include <gtest/gtest.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "support/clocked_router.hpp"
#include "support/fake_worker.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing_support::chunk;
using testing_support::FakeWorker;
using testing_support::kDone;
using testing_support::kFinish;
using testing_support::RawClient;
using testing_support::start_stream;

// An engine that says it runs so many sequences, whatever it runs. Streams begin and stay open; other answers are
// whole.
class TellingEngine {
 public:
  std::uint16_t port() const { return worker_.port(); }
  std::atomic<int> running{0};
  std::atomic<bool> ends{false};
  std::atomic<bool> slow{false};  // its metrics tell what was when they were asked for, later
  std::atomic<int> asked{0};
  std::atomic<int> tokens{1};  // of a whole answer

 private:
  net::asio::awaitable<void> play(net::HttpExchange& exchange) {
    if (exchange.request().path() == "/metrics") {
      const std::string page = "vllm:num_requests_running{engine=\"0\"} " + std::to_string(running) +
                               "\nvllm:num_requests_waiting{engine=\"0\"} 0\n";
      ++asked;
      net::Event never{exchange.thread()};
      while (slow) {
        const net::WaitResult waited = co_await never.wait(std::chrono::steady_clock::now() + 1ms);
        if (waited != net::WaitResult::Timeout) co_return;
      }
      co_await exchange.respond(net::text_response(200, page));
    } else if (exchange.request().method == "GET") {
      co_await exchange.respond(net::text_response(200, ""));
    } else if (exchange.request().body.find("stream\":true") == std::string::npos) {
      const std::string usage =
          R"("usage":{"prompt_tokens":1,"completion_tokens":)" + std::to_string(tokens) + R"(,"total_tokens":1})";
      const std::string whole = R"({"choices":[{"text":"x","finish_reason":"stop"}],)" + usage + "}";
      co_await exchange.respond(net::json_response(200, whole));
    } else {
      start_stream(exchange);
      exchange.write(chunk("begun"));
      net::Event never{exchange.thread()};
      while (!ends) {
        const net::WaitResult waited = co_await never.wait(std::chrono::steady_clock::now() + 1ms);
        if (waited != net::WaitResult::Timeout) co_return;
      }
      exchange.write(kFinish + kDone);
      co_await exchange.finish();
    }
  }

  FakeWorker worker_{[this](net::HttpExchange& exchange) { return play(exchange); }};
};

class FallbackChain : public ClockedRouter {
 protected:
  nlohmann::json policy() { return admin_json("/policy")["fleets"][0]; }
  template <class Condition>
  bool in_time(Condition condition, net::Duration step = 200ms) {
    return testing_support::soon([&] {
      pass(step);
      return condition();
    });
  }
};

// Law: where engines say again and again that they do not run what the ledger counts, loads are worth nothing: workers
// are taken in turn, until the two agree again.
TEST_F(FallbackChain, MirrorThatDoesNotFitLeadsToRoundRobinAndBack) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "least_tokens";
    params.health.interval_ms = 1'000;
    params.fallback.mirror_after_ms = 2'000;
    params.timeouts.stream_idle_ms = 36'000'000;
    params.timeouts.request_ms = 36'000'000;
  });
  std::vector<Answer> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(ask_later(kChat, kStream));
  ASSERT_TRUE(soon([&] { return ledger()["leases_live"] == 3; }));
  EXPECT_EQ(policy()["in_effect"], "least_tokens");
  ASSERT_TRUE(in_time([&] { return policy()["in_effect"] == "round_robin"; }));
  EXPECT_EQ(policy()["fallback_causes"], nlohmann::json::array({"mirror"}));
  EXPECT_EQ(metric("balanceroute_fallback_active{fleet=\"default\",cause=\"mirror\"}"), 1);
  EXPECT_EQ(metric("balanceroute_fallback_total{fleet=\"default\",cause=\"mirror\"}"), 1);
  EXPECT_TRUE(log_->has("fallback fleet=default policy=round_robin instead of least_tokens cause=mirror"));
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  engine.running = 3;
  ASSERT_TRUE(in_time([&] { return policy()["in_effect"] == "least_tokens"; }));
  EXPECT_EQ(metric("balanceroute_fallback_active{fleet=\"default\",cause=\"mirror\"}"), 0);
  EXPECT_TRUE(log_->has("fallback over fleet=default policy=least_tokens"));
  engine.ends = true;
  for (Answer& stream : streams) EXPECT_EQ(status_in(of(stream)), 200);
}

// Law: what an engine says of the time before a dispatch takes nothing of it back, and is no disagreement.
TEST_F(FallbackChain, StaleReadingsEraseNoDispatch) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.health.interval_ms = 1'000;
    params.health.timeout_ms = 600'000;
    params.timeouts.stream_idle_ms = 36'000'000;
  });
  engine.slow = true;
  const int before = engine.asked;
  ASSERT_TRUE(in_time([&] { return engine.asked == before + 1; }));
  std::vector<Answer> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(ask_later(kChat, kStream));
  ASSERT_TRUE(soon([&] {
    const nlohmann::json leases = ledger()["leases"];
    return leases.size() == 3 && std::ranges::all_of(leases, [](const auto& one) { return one["state"] == "running"; });
  }));
  engine.running = 3;
  engine.slow = false;
  const int stale = engine.asked;
  ASSERT_TRUE(in_time([&] { return engine.asked > stale + 3; }));  // each probe follows the reading of the one before
  EXPECT_EQ(worker(0)["sequences"], 3);
  EXPECT_EQ(worker(0)["disagreements"], 0);
  EXPECT_EQ(worker(0)["background_sequences"], 0);
  engine.ends = true;
  for (Answer& stream : streams) EXPECT_EQ(status_in(of(stream)), 200);
}

// A clock on which every decision takes time: a millisecond passes whenever the deciding thread looks. Other threads
// look in the middle of its rounds, and must not make them longer.
class CreepingClock final : public net::Clock {
 public:
  explicit CreepingClock(const net::ManualClock& clock) : clock_{clock} {}
  net::TimePoint now() const override { return clock_.now() + 1ms * (decides() ? looks_.fetch_add(1) : looks_.load()); }
  bool moves_by_itself() const override { return false; }

 private:
  static bool decides() {
    std::array<char, 16> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return std::string_view{name.data()} == "br-decide";
  }

  const net::ManualClock& clock_;
  mutable std::atomic<std::int64_t> looks_{0};
};

class SlowRounds : public FallbackChain {
 protected:
  [[nodiscard]] const net::Clock& clock() const override { return creeping_; }
  CreepingClock creeping_{clock_};
};

// Law: a policy whose rounds are too slow gives way to least_tokens, decides again after its rest, and rests for twice
// as long when that does not go well.
TEST_F(SlowRounds, LeadToLeastTokensAndBack) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "join_shortest_queue";
    params.fallback.slow_round_ms = 0.5;
    params.fallback.rest_ms = 60'000;
    params.timeouts.request_ms = 36'000'000;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  ASSERT_TRUE(in_time([&] { return policy()["in_effect"] == "least_tokens"; }));
  EXPECT_EQ(policy()["fallback_causes"], nlohmann::json::array({"slow_rounds"}));
  EXPECT_EQ(policy()["policy"]["name"], "join_shortest_queue");  // what is set stays set
  EXPECT_TRUE(in_time([&] { return policy()["in_effect"] == "join_shortest_queue"; }, 10s));
  EXPECT_GE(metric("balanceroute_decision_slow_rounds_total{fleet=\"default\"}"), 3);
}

// Law: whoever sets a policy sets the one that decides.
TEST_F(SlowRounds, AnotherPolicyBeginsAnew) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "join_shortest_queue";
    params.fallback.slow_round_ms = 0.5;
    params.timeouts.request_ms = 36'000'000;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  ASSERT_TRUE(in_time([&] { return policy()["in_effect"] == "least_tokens"; }));
  const auto put = nlohmann::json::parse(testing_support::body_of(
      testing_support::http_exchange(service_->admin_port(), "PUT", "/policy", R"({"name":"power_of_two"})")));
  EXPECT_EQ(put["in_effect"], "power_of_two");
  EXPECT_EQ(put["fallback_causes"], nlohmann::json::array());
}

// Law: switched off, no policy gives way.
TEST_F(SlowRounds, ChangeNothingWithoutFallback) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "join_shortest_queue";
    params.fallback.enabled = false;
    params.fallback.slow_round_ms = 0.5;
    params.timeouts.request_ms = 36'000'000;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  for (int i = 0; i < 3; ++i) pass(1s);
  ASSERT_TRUE(soon([&] { return metric("balanceroute_decision_slow_rounds_total{fleet=\"default\"}") >= 3; }));
  pass(1s);
  EXPECT_EQ(policy()["in_effect"], "join_shortest_queue");
}

// Law: a shadow that is slow is asked no more, its time is not that of the policy that decides, and every request is
// answered.
TEST_F(SlowRounds, OfAShadowEndTheShadowAlone) {
  TellingEngine engine;
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "join_shortest_queue";
    params.fleets[0].shadow = {.policy = "least_tokens", .mode = "step", .slow_round_ms = 0.5};
    params.fallback.slow_round_ms = 2.5;  // a round beside a shadow looks at the clock four times
    params.timeouts.request_ms = 36'000'000;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_TRUE(
      log_->has("shadow stopped fleet=default policy=least_tokens: three of its rounds within a minute were slow"));
  EXPECT_EQ(metric("balanceroute_shadow_stopped{fleet=\"default\",policy=\"least_tokens\"}"), 1);
  EXPECT_EQ(metric("balanceroute_decision_slow_rounds_total{fleet=\"default\"}"), 0);
  EXPECT_EQ(policy()["in_effect"], "join_shortest_queue");
  EXPECT_TRUE(all_is_given_back());
}

// Law: br_h gives way to br_0 while its predictor is worse than a constant, and decides again when it has learned.
TEST_F(FallbackChain, PredictorThatDriftsLeadsToBr0AndBack) {
  TellingEngine first;
  TellingEngine second;
  serve({first.port(), second.port()}, [](ServeParams& params) {
    params.fleets[0].barrier = true;
    params.fleets[0].policy.name = "br_h";
    params.fleets[0].policy.horizon_steps = 10;
    params.fleets[0].policy.predictor.min_requests = 8;
    params.fleets[0].policy.predictor.half_life_requests = 100;
    params.fallback.drift_window_ms = 1'000;
    params.fallback.drift_outcomes = 4;
    params.timeouts.request_ms = 36'000'000;
  });
  const auto ask_until = [&](std::string_view decides) {
    return testing_support::soon([&] {
      EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
      pass(200ms);
      return policy()["in_effect"] == decides;
    });
  };
  // It learns from short answers that all end within the horizon, and then none does.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  for (auto* engine : {&first, &second}) engine->tokens = 50;
  ASSERT_TRUE(ask_until("br_0"));
  EXPECT_EQ(policy()["fallback_causes"], nlohmann::json::array({"drift"}));
  EXPECT_EQ(policy()["policy"]["name"], "br_h");
  ASSERT_TRUE(ask_until("br_h"));  // it has gone on hearing
  EXPECT_EQ(metric("balanceroute_fallback_total{fleet=\"default\",cause=\"drift\"}"), 1);
}

class Shadows : public ClockedRouter {};

// Law: a shadow is asked in each round and places nothing.
TEST_F(Shadows, StepShadowIsOnlyAsked) {
  TellingEngine first;
  TellingEngine second;
  serve({first.port(), second.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "round_robin";
    params.fleets[0].shadow.policy = "least_tokens";
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_EQ(metric("balanceroute_shadow_rounds_total{fleet=\"default\",policy=\"least_tokens\"}"), 4);
  EXPECT_TRUE(all_is_given_back());
}

// Law: the world of a shadow has the requests of the live one, and is as empty when they have ended.
TEST_F(Shadows, WorldShadowKeepsBooksOfItsOwn) {
  TellingEngine first;
  TellingEngine second;
  serve({first.port(), second.port()}, [](ServeParams& params) {
    params.fleets[0].policy.name = "round_robin";
    params.fleets[0].shadow = {.policy = "least_tokens", .mode = "world"};
  });
  std::vector<Answer> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(ask_later(kChat, kStream));
  ASSERT_TRUE(soon([&] { return ledger()["leases_live"] == 3; }));
  const std::string shadow = R"(balanceroute_shadow_imbalance_tokens{fleet="default",group="g",policy="least_tokens",)"
                             R"(world="shadow"})";
  EXPECT_GT(metric(shadow), 0);  // two on one worker, one on the other
  EXPECT_EQ(metric("balanceroute_shadow_waiting_requests"), 0);
  for (auto* engine : {&first, &second}) engine->ends = true;
  for (Answer& stream : streams) EXPECT_EQ(status_in(of(stream)), 200);
  EXPECT_TRUE(all_is_given_back());
}

}  // namespace
}  // namespace balanceroute::proxy
