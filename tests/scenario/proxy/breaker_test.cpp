// Workers that fail requests, are held back and tried again; probes that say nothing against evidence; on a clock that
// the test moves.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
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

// How a worker answers completions, changed while it runs.
enum class Mood : std::uint8_t { well, breaks, breaks_begun, hangs };

// A worker whose mood and health page the test sets; streams that are held get an event for each that the test allows.
class MoodyWorker {
 public:
  std::uint16_t port() const { return worker_.port(); }
  std::size_t completions() const { return completions_; }

  std::atomic<Mood> mood{Mood::well};
  std::atomic<int> health{200};  // 0: it does not answer
  std::atomic<int> events{0};

 private:
  net::asio::awaitable<void> play(net::HttpExchange& exchange) {
    net::Event never{exchange.thread()};
    if (exchange.request().path() == "/health") {
      if (health == 0) {
        co_await never.wait();
      } else {
        co_await exchange.respond(net::text_response(health, ""));
      }
      co_return;
    }
    if (exchange.request().method == "GET") {
      co_await exchange.respond(net::text_response(404, ""));
      co_return;
    }
    ++completions_;
    if (mood == Mood::breaks) co_return;
    if (exchange.request().body.find("stream\":true") == std::string::npos) {
      if (mood == Mood::hangs) co_await never.wait();
      co_await exchange.respond(net::json_response(200, R"({"choices":[{"text":"x","finish_reason":"stop"}],)"
                                                        R"("usage":{"prompt_tokens":1,"completion_tokens":1}})"));
      co_return;
    }
    start_stream(exchange);
    exchange.write(chunk("begun"));
    co_await exchange.flushed();
    if (mood == Mood::breaks_begun) co_return;
    int sent = 0;
    while (mood == Mood::hangs) {
      while (sent < events) exchange.write(chunk("e" + std::to_string(sent++)));
      const net::WaitResult waited = co_await never.wait(std::chrono::steady_clock::now() + 1ms);
      if (waited != net::WaitResult::Timeout) co_return;
    }
    exchange.write(kFinish + kDone);
    co_await exchange.finish();
  }

  std::atomic<std::size_t> completions_{0};
  FakeWorker worker_{[this](net::HttpExchange& exchange) { return play(exchange); }};
};

class Breaker : public ClockedRouter {
 protected:
  static void two_failures_hold(ServeParams& params) {
    params.retries.most = 0;
    params.timeouts.worker_idle_ms = 0;
    params.health.hold_after = 2;
    params.health.hold_ms = 5'000;
    params.health.release_after = 2;
  }
  // Asks until the first worker is held.
  void fail_until_held() {
    while (worker(0)["health"] != "held") ask(kChat, kStream);
  }
};

// Law: a stream that opens with 200 and breaks is a failure, however often it opens.
TEST_F(Breaker, StreamsThatOpenAndBreakHoldTheirWorker) {
  MoodyWorker bad;
  MoodyWorker good;
  bad.mood = Mood::breaks_begun;
  serve({bad.port(), good.port()}, two_failures_hold);
  fail_until_held();
  EXPECT_EQ(bad.completions(), 2u);
  EXPECT_EQ(worker(0)["takes_requests"], false);
  EXPECT_EQ(worker(0)["times_held"], 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_EQ(bad.completions(), 2u);
  EXPECT_EQ(metric("balanceroute_worker_holds_total{fleet=\"default\",group=\"g\",worker=\"" + url_at(bad.port())), 1);
  EXPECT_TRUE(log_->has("state=draining was=ready"));
}

// Law: on trial a worker has one request at a time, also when many wait; as many as were asked for release it.
TEST_F(Breaker, TrialIsOneRequestAtATime) {
  MoodyWorker bad;
  MoodyWorker good;
  bad.mood = Mood::breaks;
  serve({bad.port(), good.port()}, [](ServeParams& params) {
    two_failures_hold(params);
    params.fleets[0].groups[0].slots = 2;
    params.fleets[0].barrier = true;
    params.fleets[0].policy.name = "br_0";  // from one pool, not from queues of workers
  });
  fail_until_held();
  good.mood = Mood::hangs;
  bad.mood = Mood::hangs;
  const std::size_t before = bad.completions();
  std::vector<Answer> answers;
  for (int i = 0; i < 6; ++i) answers.push_back(ask_later(kChat, kStream));
  ASSERT_TRUE(soon([&] { return ledger()["requests_waiting"] == 4; }));
  EXPECT_EQ(bad.completions(), before);
  pass(5s);
  ASSERT_TRUE(soon([&] { return bad.completions() == before + 1; }));
  EXPECT_TRUE(soon([&] { return worker(0)["on_trial"] == true && worker(0)["takes_requests"] == false; }));
  EXPECT_EQ(ledger()["requests_waiting"], 3);
  bad.mood = Mood::well;  // ends the first, answers the second, and then as many as it has slots for
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(soon([&] { return ledger()["requests_waiting"] == 0; }));
  EXPECT_TRUE(soon([&] { return worker(0)["on_trial"] == false && worker(0)["takes_requests"] == true; }));
  EXPECT_TRUE(log_->has("it has passed its trial"));
  good.mood = Mood::well;
  for (Answer& answer : answers) EXPECT_EQ(status_in(of(answer)), 200);
  EXPECT_TRUE(all_is_given_back());
}

// Law: a worker that fails on trial is held for twice as long.
TEST_F(Breaker, FailureOnTrialHoldsForLonger) {
  MoodyWorker bad;
  MoodyWorker good;
  bad.mood = Mood::breaks;
  serve({bad.port(), good.port()}, two_failures_hold);
  fail_until_held();
  pass(5s);
  ASSERT_TRUE(soon([&] { return worker(0)["on_trial"] == true; }));
  fail_until_held();
  EXPECT_EQ(bad.completions(), 3u);
  pass(9s);
  EXPECT_EQ(worker(0)["health"], "held");
  pass(1100ms);
  EXPECT_TRUE(soon([&] { return worker(0)["on_trial"] == true; }));
}

// Law: a rank that its engine does not know is a fault of the settings: it is told once, that rank is left alone, the
// others are not, and requests go there.
TEST_F(Breaker, RejectedRankHoldsThatRankAlone) {
  std::atomic<int> rejected{0};
  FakeWorker engine{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    if (exchange.request().headers.find("X-data-parallel-rank") == "1") {
      ++rejected;
      co_await exchange.respond(
          net::json_response(400, R"({"error":{"message":"data_parallel_rank 1 is out of range","code":400
      }})"));
      co_return;
    }
    co_await exchange.respond(net::json_response(200, R"({"choices":[{"text":"x","finish_reason":"stop"}]})"));
  }};
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].groups[0].workers[0].ranks = 2;
    params.fleets[0].groups[0].workers[0].addressing = "header";
  });
  for (int i = 0; i < 6; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_EQ(rejected, 1);
  EXPECT_EQ(worker(0)["health"], "up");
  EXPECT_EQ(worker(1)["health"], "held");
  EXPECT_EQ(worker(1)["rank_rejections"], 1);
  EXPECT_TRUE(log_->has("does not know rank 1"));
}

// Law: words of the client's that an engine repeats hold nobody.
TEST_F(Breaker, RepeatedWordsOfAClientHoldNobody) {
  FakeWorker engine{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(400, R"({"error":{"message":"bad stop: data_parallel_rank"}})"));
  }};
  serve({engine.port()}, [](ServeParams& params) {
    params.fleets[0].groups[0].workers[0].ranks = 2;
    params.fleets[0].groups[0].workers[0].addressing = "header";
  });
  const std::string body = R"({"model":"m","prompt":"x","stop":"data_parallel_rank"})";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(status_in(ask(kText, body)), 400);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(worker(static_cast<std::size_t>(i))["health"], "up");
}

class Probes : public ClockedRouter {
 protected:
  static void each_second(ServeParams& params) {
    params.health.interval_ms = 1'000;
    params.health.timeout_ms = 1'000;
    params.health.unhealthy_after = 2;
    params.health.healthy_after = 2;
    params.timeouts.stream_idle_ms = 3'600'000;
  }
  // As time goes on in steps.
  template <class Condition>
  bool in_time(Condition condition, net::Duration step = 100ms) {
    return testing_support::soon([&] {
      pass(step);
      return condition();
    });
  }
};

// Law: late answers of a health page eject no worker whose streams go on; they do when the streams have stopped.
TEST_F(Probes, BusyWorkerMayBeLate) {
  MoodyWorker busy;
  busy.mood = Mood::hangs;
  serve({busy.port()}, each_second);
  RawClient client{service_->client_port()};
  client.send(testing_support::http_request("POST", kChat, kStream));
  client.read_until("begun");
  busy.health = 0;
  for (int second = 0; second < 12; ++second) {
    ++busy.events;
    client.read_until("\"e" + std::to_string(second));
    pass(500ms);
    EXPECT_EQ(worker(0)["state"], "ready") << second;
  }
  EXPECT_TRUE(in_time([&] { return worker(0)["state"] == "dead"; }));
  busy.health = 200;
  EXPECT_TRUE(in_time([&] { return worker(0)["state"] == "ready"; }));
}

// Law: prefill instances are probed too, with thresholds both ways: one that cannot be reached gets no requests.
TEST_F(Probes, PrefillInstancesAreProbed) {
  MoodyWorker prefill;
  MoodyWorker decode;
  serve({decode.port()}, [&](ServeParams& params) {
    each_second(params);
    params.fleets[0].dialect = "vllm_nixl";
    params.fleets[0].prefill.instances = {{.url = url_at(prefill.port())}};
  });
  const auto instance = [this] { return ledger()["prefill"]["instances"][0]; };
  EXPECT_EQ(instance()["health"], "up");
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_EQ(prefill.completions(), 1u);
  prefill.health = 503;
  ASSERT_TRUE(in_time([&] { return instance()["health"] == "down"; }));
  EXPECT_EQ(instance()["last_fault"], "GET /health: status 503");
  EXPECT_TRUE(log_->has("prefill state=down"));
  EXPECT_EQ(metric("balanceroute_prefill_ready"), 0);
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);  // the decode worker computes the prompt itself
  EXPECT_EQ(prefill.completions(), 1u);
  prefill.health = 200;
  ASSERT_TRUE(in_time([&] { return instance()["health"] == "up"; }));
  EXPECT_EQ(metric("balanceroute_prefill_ready"), 1);
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_EQ(prefill.completions(), 2u);
}

}  // namespace
}  // namespace balanceroute::proxy
