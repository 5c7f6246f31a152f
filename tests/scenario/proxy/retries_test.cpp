// Requests that a worker fails and another one answers, on a clock that the test moves.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/clocked_router.hpp"
#include "support/fake_worker.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing_support::body_of;
using testing_support::chunk;
using testing_support::FakeWorker;
using testing_support::kDone;
using testing_support::kFinish;
using testing_support::RawClient;
using testing_support::start_stream;
using testing_support::unchunked;

using Handler = net::HttpHandler;

net::asio::awaitable<void> answer_well(net::HttpExchange& exchange) {
  if (exchange.request().body.find("stream\":true") == std::string::npos) {
    co_await exchange.respond(net::json_response(200, R"({"choices":[{"text":"whole","finish_reason":"stop"}]})"));
    co_return;
  }
  start_stream(exchange);
  exchange.write(chunk("whole") + kFinish + kDone);
  co_await exchange.finish();
}

// Returning without an answer breaks the connection off.
net::asio::awaitable<void> break_off(net::HttpExchange& /*exchange*/) {
  co_return;
}

Handler answers(int status) {
  return [status](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(status, R"({"error":{"message":"not now"}})"));
  };
}

Handler breaks_after(std::string bytes) {
  return [bytes](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    exchange.write(bytes);
    co_await exchange.flushed();
  };
}

const std::string kRole = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const std::string kError = "data: {\"error\":{\"message\":\"no memory\",\"code\":500}}\n\n";

// Workers of which the first `failing` requests, wherever they come, fare as the test says.
class Retries : public ClockedRouter {
 protected:
  void serve_failing(int workers, Handler failure, int failing, const Change& change = [](ServeParams&) {}) {
    failing_ = failing;
    fail_ = std::move(failure);
    std::vector<std::uint16_t> ports;
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<FakeWorker>([this](net::HttpExchange& exchange) { return play(exchange); }));
      ports.push_back(workers_.back()->port());
    }
    serve(ports, [&](ServeParams& params) {
      params.timeouts.worker_idle_ms = 0;  // else a kept connection that breaks is replaced at once
      change(params);
    });
  }
  // The requests of every worker.
  std::vector<net::HttpRequest> requests() {
    std::vector<net::HttpRequest> all;
    for (const auto& worker : workers_) {
      for (auto& request : worker->requests()) all.push_back(std::move(request));
    }
    return all;
  }
  std::size_t workers_asked() {
    return static_cast<std::size_t>(
        std::ranges::count_if(workers_, [](const auto& worker) { return !worker->requests().empty(); }));
  }

  std::atomic<int> failing_{0};
  Handler fail_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;  // they end before what they run

 private:
  net::asio::awaitable<void> play(net::HttpExchange& exchange) {
    if (failing_-- > 0) return fail_(exchange);
    return answer_well(exchange);
  }
};

std::uint16_t closed_port() {
  const FakeWorker gone{answer_well};
  return gone.port();
}

// Law: a worker that nobody can reach costs its requests nothing while another one is there.
TEST_F(Retries, UnreachableWorkersAreGoneRound) {
  FakeWorker good{answer_well};
  serve({closed_port(), good.port()});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  EXPECT_GE(metric("balanceroute_request_retries_total"), 1);
  EXPECT_EQ(metric("balanceroute_request_finished_total{outcome=\"ok\"}"), 4);
  EXPECT_TRUE(log_->has("retry request="));
  EXPECT_TRUE(log_->has(" tries=2 "));
}

TEST_F(Retries, WithoutAWorkerThatCanBeReachedTheErrorSaysSo) {
  serve({closed_port()});
  const std::string answer = ask(kText, kWhole);
  EXPECT_EQ(status_in(answer), 502) << answer;
  EXPECT_NE(answer.find("worker_unreachable"), std::string::npos) << answer;
  EXPECT_NE(answer.find("x-should-retry: true"), std::string::npos) << answer;
  EXPECT_TRUE(all_is_given_back());
}

// Law: however a worker fails before anything has gone out, one other worker is asked, under another key, and the
// client sees nothing of it.
TEST_F(Retries, FailuresBeforeTheFirstByteAreNotSeen) {
  const std::vector<std::pair<std::string, Handler>> failures{
      {"breaks off", break_off},
      {"stream breaks off", breaks_after("")},
      {"stream breaks off after the role", breaks_after(kRole)},
      {"stream breaks off inside an event", breaks_after(chunk("x").substr(0, 12))},
      {"stream begins with an error", breaks_after(kError)},
      {"stream begins with role and error", breaks_after(kRole + kError)},
      {"status 500", answers(500)}};
  for (const auto& [name, failure] : failures) {
    SCOPED_TRACE(name);
    workers_.clear();
    serve_failing(2, failure, 1);
    const std::string answer = ask(kChat, kStream);
    EXPECT_EQ(status_in(answer), 200) << answer;
    EXPECT_EQ(unchunked(answer), chunk("whole") + kFinish + kDone);
    const auto sent = requests();
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(workers_asked(), 2u);
    EXPECT_EQ(sent[0].body, sent[1].body);
    EXPECT_NE(sent[0].headers.find("X-Request-Id"), sent[1].headers.find("X-Request-Id"));
    EXPECT_TRUE(all_is_given_back());
    service_.reset();
  }
}

// Law: 200 and nothing is no answer, and never the client's.
TEST_F(Retries, EmptyAnswersAreTriedAgain) {
  serve_failing(2, [](net::HttpExchange& exchange) { return exchange.respond(net::json_response(200, "")); }, 1);
  const std::string answer = ask(kText, kWhole);
  EXPECT_EQ(status_in(answer), 200);
  EXPECT_NE(answer.find("whole"), std::string::npos);
}

// Law: what broke one worker may break the next; it goes to no third, and the status says what happened.
TEST_F(Retries, WhatBreaksTwoWorkersGoesToNoThird) {
  for (const Handler& failure : {Handler{break_off}, breaks_after(kError)}) {
    workers_.clear();
    serve_failing(3, failure, 3);
    const std::string answer = ask(kChat, kStream);
    EXPECT_EQ(status_in(answer), 502) << answer;
    EXPECT_TRUE(answer.find("\"error\":{") != std::string::npos &&
                answer.find("text/event-stream") == std::string::npos);
    EXPECT_EQ(requests().size(), 2u);
    EXPECT_TRUE(all_is_given_back());
    service_.reset();
  }
}

// Law: once a word of the answer has gone out no other worker is asked.
TEST_F(Retries, BegunAnswersAreNotTriedAgain) {
  serve_failing(2, breaks_after(chunk("begun")), 1);
  const std::string answer = ask(kChat, kStream);
  EXPECT_EQ(status_in(answer), 200);
  EXPECT_NE(answer.find("worker_broken"), std::string::npos) << answer;
  EXPECT_EQ(requests().size(), 1u);
  EXPECT_EQ(metric("balanceroute_request_retries_total"), 0);
}

// Law: an engine's own word that it cannot now is not the client's while another engine can; others are.
TEST_F(Retries, StatusesSayWhetherAnotherWorkerIsAsked) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504, 529}) {
    SCOPED_TRACE(status);
    workers_.clear();
    serve_failing(2, answers(status), 1);
    EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
    EXPECT_EQ(workers_asked(), 2u);
    service_.reset();
  }
  for (const int status : {400, 404, 422, 499, 501}) {
    SCOPED_TRACE(status);
    workers_.clear();
    serve_failing(2, answers(status), 1);
    const std::string answer = ask(kText, kWhole);
    EXPECT_EQ(status_in(answer), status);
    EXPECT_EQ(body_of(answer), R"({"error":{"message":"not now"}})");
    EXPECT_EQ(requests().size(), 1u);
    service_.reset();
  }
}

TEST_F(Retries, TheSetOfStatusesIsConfigurable) {
  serve_failing(2, answers(418), 1, [](ServeParams& params) { params.retries.statuses = {418}; });
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  failing_ = 1;
  fail_ = answers(503);
  EXPECT_EQ(status_in(ask(kText, kWhole)), 503);
}

// Law: when every worker says no, the client gets the last one's words.
TEST_F(Retries, LastRefusalIsTheClients) {
  serve_failing(2, answers(529), 100);
  const std::string answer = ask(kText, kWhole);
  EXPECT_EQ(status_in(answer), 529);
  EXPECT_EQ(body_of(answer), R"({"error":{"message":"not now"}})");
  EXPECT_EQ(requests().size(), 4u);
}

// Law: an outage is not answered by more load than the budget allows.
TEST_F(Retries, BudgetBoundsRetries) {
  serve_failing(2, break_off, 1000, [](ServeParams& params) {
    params.retries.budget_percent = 0;
    params.retries.reserve = 2;
    params.health.hold_after = 1000;
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_in(ask(kText, kWhole)), 502);
  EXPECT_EQ(requests().size(), 7u);
  EXPECT_EQ(metric("balanceroute_request_retries_total"), 2);
  EXPECT_EQ(metric("balanceroute_request_retries_denied_total"), 3);
}

TEST_F(Retries, ZeroMeansNone) {
  serve_failing(2, break_off, 1, [](ServeParams& params) { params.retries.most = 0; });
  EXPECT_EQ(status_in(ask(kText, kWhole)), 502);
  EXPECT_EQ(requests().size(), 1u);
}

// Law: another try waits; who leaves meanwhile leaves nothing behind.
TEST_F(Retries, AnotherTryWaits) {
  serve_failing(2, break_off, 1, [](ServeParams& params) {
    params.retries.backoff_ms = 60'000;
    params.retries.longest_backoff_ms = 60'000;
  });
  Answer answer = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return metric("balanceroute_request_retries_total") == 1; }));
  EXPECT_EQ(requests().size(), 1u);
  EXPECT_EQ(ledger()["leases_live"], 0);  // meanwhile others may have its slot
  EXPECT_EQ(status_in(of(answer, 1s)), 200);
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(Retries, WhoLeavesWhileItWaitsIsGone) {
  serve_failing(2, break_off, 1, [](ServeParams& params) {
    params.retries.backoff_ms = 60'000;
    params.retries.longest_backoff_ms = 60'000;
  });
  RawClient client{service_->client_port()};
  client.send(testing_support::http_request("POST", kText, kWhole));
  ASSERT_TRUE(soon([&] { return metric("balanceroute_request_retries_total") == 1; }));
  client.close();
  EXPECT_TRUE(soon([&] { return log_->has("outcome=client_left"); }));
  EXPECT_TRUE(all_is_given_back());
  pass(60s);
  EXPECT_EQ(requests().size(), 1u);
}

}  // namespace
}  // namespace balanceroute::proxy
