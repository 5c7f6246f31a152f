// A replay against an emulated fleet, and against servers that misbehave.
#include "replay/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "emulator/emulator.hpp"
#include "net/server.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::replay {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::body_of;
using testing_support::http_exchange;

trace::Trace trace_of(int count, milliseconds gap, std::int64_t output) {
  trace::Trace trace{.name = "test"};
  for (int i = 0; i < count; ++i) trace.requests.push_back({i * gap, Tokens{10 + i}, Tokens{output}, {}});
  return trace;
}

class ReplayTest : public testing::Test {
 protected:
  void start_fleet(std::int64_t slots, double fixed_ms = 1) {
    emulator::EmulatorParams fleet;
    fleet.ranks = 1;
    fleet.slots = slots;
    fleet.step_time = {.fixed_ms = fixed_ms, .per_token_ms = 0};
    emulator.emplace(fleet, clock);
    const auto started = emulator->start();
    ASSERT_TRUE(started) << started.error();
    port = emulator->ports()[0][0];
  }

  ReplayTest() { params.probe = false; }  // what servers here count is what the trace sends

  // Answers every generation with `handler`; knows one model.
  void start_server(net::HttpHandler handler) {
    server.emplace(threads, net::ServerOptions{},
                   [handler = std::move(handler)](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
                     if (exchange.request().path() == "/v1/models") {
                       co_await exchange.respond(net::json_response(200, R"({"data":[{"id":"m"}]})"));
                     } else {
                       co_await handler(exchange);
                     }
                   });
    const auto bound = server->listen("127.0.0.1", 0);
    ASSERT_TRUE(bound) << bound.error().detail;
    port = *bound;
    threads.start();
  }

  void TearDown() override {
    if (server) server->stop();
    threads.stop();
  }

  ReplayResult replayed(const trace::Trace& trace, const ReplayHooks& hooks = {}) {
    params.url = "http://127.0.0.1:" + std::to_string(port);
    const auto result = Replay{params, clock}.run(trace, hooks);
    EXPECT_TRUE(result) << result.error();
    return result.value_or(ReplayResult{});
  }
  json stats() const { return json::parse(body_of(http_exchange(port, "GET", "/emulator/stats"))); }

  net::SteadyClock clock;
  net::IoThreads threads{1, "server", clock};
  std::optional<emulator::Emulator> emulator;
  std::optional<net::HttpServer> server;
  std::uint16_t port = 0;
  ReplayParams params;
};

std::int64_t kind_count(const ReplayResult& result, FaultKind kind) {
  return result.errors_by_kind[static_cast<std::size_t>(kind)];
}

// Law: every request of the trace is sent with its lengths, answered in full, and timed.
TEST_F(ReplayTest, SendsTheTraceAndMeasures) {
  start_fleet(4);
  const auto result = replayed(trace_of(6, milliseconds{2}, 5));
  EXPECT_THAT(result.first_errors, ElementsAre());
  EXPECT_EQ(result.requests, 6);
  EXPECT_EQ(result.completed, 6);
  EXPECT_EQ(result.errors, 0);
  EXPECT_EQ(result.tokens, 30);
  EXPECT_GT(result.throughput_tokens_per_s, 0);
  EXPECT_EQ(result.ttft_ms.count, 6U);
  EXPECT_GE(result.tpot_ms.p50, 0.5);  // a step lasts a millisecond
  EXPECT_GE(result.e2e_ms.mean, result.ttft_ms.mean + 2);
  EXPECT_EQ(stats()["tokens"], 30);
  EXPECT_EQ(result.send_late_ms.count, 6U);
  EXPECT_EQ(result.prompt_tokens_stated, Tokens{6 * 10 + 15});
  EXPECT_EQ(result.prompt_tokens_counted, result.prompt_tokens_stated);
}

// Law: chats are answered and checked as completions are; the emulator counts four bytes as a token.
TEST_F(ReplayTest, ChatPromptsHaveTheTracesLengths) {
  start_fleet(4);
  params.route = "chat";
  const auto result = replayed(trace_of(3, milliseconds{1}, 5));
  EXPECT_THAT(result.first_errors, ElementsAre());
  EXPECT_EQ(result.tokens, 15);
  EXPECT_EQ(result.prompt_tokens_counted, Tokens{10 + 11 + 12});
}

// Law: each request is told in the class of its prompt and in that of its output, and the classes add up to the whole.
TEST_F(ReplayTest, TellsTheRequestsByLength) {
  start_fleet(8);
  auto trace = trace_of(3, milliseconds{1}, 5);
  trace.requests.push_back({milliseconds{3}, Tokens{600}, Tokens{5}, {}});
  trace.requests.push_back({milliseconds{4}, Tokens{512}, Tokens{129}, {}});
  const auto result = replayed(trace);
  EXPECT_EQ(result.by_prompt[0].requests, 4);
  EXPECT_EQ(result.by_prompt[1].completed, 1);
  EXPECT_EQ(result.by_prompt[1].tokens, 5);
  EXPECT_EQ(result.by_output[0].tokens, 20);
  EXPECT_EQ(result.by_output[1].tokens, 129);
  EXPECT_EQ(result.by_output[1].ttft_ms.count, 1U);
  EXPECT_DOUBLE_EQ(result.by_output[0].throughput_tokens_per_s + result.by_output[1].throughput_tokens_per_s,
                   result.throughput_tokens_per_s);
  const auto table = to_table(result);
  EXPECT_THAT(table, HasSubstr("prompt <= 2048"));
  EXPECT_THAT(table, Not(HasSubstr("prompt <= 8192")));  // no request, no line
}

TEST_F(ReplayTest, WholeAnswersHaveNoTimeToFirstToken) {
  start_fleet(4);
  params.stream = false;
  params.length_member = "emulator";
  const auto result = replayed(trace_of(3, milliseconds{0}, 5));
  EXPECT_EQ(result.completed, 3);
  EXPECT_EQ(result.tokens, 15);
  EXPECT_EQ(result.ttft_ms.count, 0U);
  EXPECT_EQ(result.e2e_ms.count, 3U);
}

// Law: warm requests fill the slots before the trace begins, are left out of the result, and are ended with it.
TEST_F(ReplayTest, WarmRequestsRunBeforeTheTrace) {
  start_fleet(64);
  params.warm_requests = 20;
  std::int64_t running_at_begin = 0;
  bool sent = false;
  auto trace = trace_of(5, milliseconds{1}, 3);
  trace.requests.push_back({milliseconds{5}, Tokens{100}, Tokens{300}, {}});  // almost every draw is of this one
  trace.requests.push_back({milliseconds{6}, Tokens{100}, Tokens{2}, {}});
  params.limit = 0;
  const auto result = replayed(
      trace, {.trace_begins = [&] { running_at_begin = stats()["active"]; }, .trace_sent = [&] { sent = true; }});
  EXPECT_GE(running_at_begin, 15);  // a few are drawn near their end
  EXPECT_TRUE(sent);
  EXPECT_EQ(result.requests, 7);
  EXPECT_EQ(result.completed, 7);
  EXPECT_THAT(result.first_errors, ElementsAre());
}

// Law: the client's own lateness is not hidden; a request that had to wait for a slot shows it.
TEST_F(ReplayTest, WaitingCountsFromTheDueTime) {
  start_fleet(1);
  const auto result = replayed(trace_of(2, milliseconds{0}, 20));
  EXPECT_EQ(result.completed, 2);
  EXPECT_GE(result.ttft_ms.max, result.ttft_ms.mean + 5);  // the second waits for 20 steps
}

// Law: a refusal that invites another try is tried again; others are errors at once.
TEST_F(ReplayTest, RetriesWhatMayBeTriedAgain) {
  std::atomic<int> calls = 0;
  start_server([&calls](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    if (calls++ == 0) {
      co_await exchange.respond(net::json_response(503, R"({"error":{"message":"later"}})"));
    } else {
      co_await exchange.respond(net::json_response(
          200, R"({"choices":[{"text":"x","finish_reason":"stop"}],"usage":{"completion_tokens":1}})"));
    }
  });
  params.stream = false;
  const auto result = replayed(trace_of(1, milliseconds{0}, 1));
  EXPECT_EQ(result.completed, 1);
  EXPECT_EQ(result.retries, 1);
  EXPECT_EQ(calls, 2);
}

TEST_F(ReplayTest, ReportsRefusalsWithTheirWords) {
  std::atomic<int> calls = 0;
  start_server([&calls](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    ++calls;
    co_await exchange.respond(net::json_response(400, R"({"error":{"message":"too long"}})"));
  });
  const auto result = replayed(trace_of(1, milliseconds{0}, 1));
  EXPECT_EQ(result.errors, 1);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(result.first_errors.size(), 1U);
  EXPECT_THAT(result.first_errors[0], HasSubstr("status 400"));
  EXPECT_THAT(result.first_errors[0], HasSubstr("too long"));
  EXPECT_EQ(kind_count(result, FaultKind::status_4xx), 1);
}

// Law: an answer that is no stream where one was asked for is an error that names what came.
TEST_F(ReplayTest, AnswerThatIsNoStreamIsAnError) {
  start_server([](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    co_await exchange.respond(net::text_response(200, "<html>"));
  });
  const auto result = replayed(trace_of(1, milliseconds{0}, 1));
  EXPECT_EQ(kind_count(result, FaultKind::bad_answer), 1);
  EXPECT_THAT(result.first_errors, ElementsAre(AllOf(HasSubstr("text/plain"), HasSubstr("text/event-stream"))));
}

// Law: what every request would fail on is one message before the trace, and no request of it is sent.
TEST_F(ReplayTest, ProbeStopsAReplayThatCannotWork) {
  std::atomic<int> calls = 0;
  start_server([&calls](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    ++calls;
    co_await exchange.respond(net::json_response(404, R"({"error":{"message":"no model 'wrong'"}})"));
  });
  params.probe = true;
  params.model = "wrong";
  params.url = "http://127.0.0.1:" + std::to_string(port);
  const auto refused = Replay{params, clock}.run(trace_of(5, milliseconds{0}, 1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), AllOf(HasSubstr(params.url), HasSubstr("no model 'wrong'")));
  EXPECT_EQ(calls, 1);
}

// Law: the path before /v1 is kept, and the key goes to the server and into no message.
TEST_F(ReplayTest, SendsToTheGivenPathWithTheKey) {
  std::string path;
  std::string key;
  server.emplace(threads, net::ServerOptions{}, [&](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    path = exchange.request().path();
    key = exchange.request().headers.find("Authorization").value_or("none");
    co_await exchange.respond(net::json_response(401, R"({"error":{"message":"who are you"}})"));
  });
  const auto bound = server->listen("127.0.0.1", 0);
  ASSERT_TRUE(bound) << bound.error().detail;
  threads.start();
  params.url = "http://127.0.0.1:" + std::to_string(*bound) + "/api/v1/";
  params.model = "m";
  params.api_key = "secret";
  params.route = "chat";
  const auto result = Replay{params, clock}.run(trace_of(1, milliseconds{0}, 1));
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(path, "/api/v1/chat/completions");
  EXPECT_EQ(key, "Bearer secret");
  EXPECT_THAT(to_json(*result), Not(HasSubstr("secret")));
}

// Law: a stream that ends without its end mark is an error, and is not sent twice.
TEST_F(ReplayTest, BrokenStreamIsAnErrorWithoutRetry) {
  std::atomic<int> calls = 0;
  start_server([&calls](net::HttpExchange& exchange) -> boost::asio::awaitable<void> {
    ++calls;
    net::HttpResponse head;
    head.headers.add("Content-Type", "text/event-stream");
    exchange.start(std::move(head));
    exchange.write("data: {\"choices\":[{\"text\":\" t1\",\"finish_reason\":null}]}\n\n");
    co_await exchange.finish();
  });
  const auto result = replayed(trace_of(1, milliseconds{0}, 5));
  EXPECT_EQ(result.errors, 1);
  EXPECT_EQ(result.retries, 0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(kind_count(result, FaultKind::bad_answer), 1);
  EXPECT_THAT(result.first_errors, ElementsAre(HasSubstr("without [DONE]")));
}

TEST_F(ReplayTest, SaysWhenNothingIsThere) {
  params.url = "http://127.0.0.1:1";
  const auto refused = Replay{params, clock}.run(trace_of(1, milliseconds{0}, 1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), HasSubstr("127.0.0.1:1"));
  params.url = "https://127.0.0.1";
  EXPECT_THAT((Replay{params, clock}.run(trace_of(1, milliseconds{0}, 1)).error()), HasSubstr("https"));
}

// Law: a cancelled run ends at once and counts what it had sent.
TEST_F(ReplayTest, CancelEndsTheRun) {
  start_fleet(4);
  params.url = "http://127.0.0.1:" + std::to_string(port) + "/v1";
  Replay replay{params, clock};
  auto trace = trace_of(1, milliseconds{0}, 1'000'000);
  trace.requests.push_back({std::chrono::hours{1}, Tokens{1}, Tokens{1}, {}});
  const auto result = replay.run(trace, {.trace_begins = [&replay] { replay.cancel(); }});
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->completed, 0);
  EXPECT_EQ(result->errors, result->requests);
}

// Law: clients that are to leave do, each within the time; whoever does not is answered, and none is an error.
TEST_F(ReplayTest, ClientsLeave) {
  start_fleet(64);
  params.leave_share = 0.5;
  params.leave_within_s = 0.02;
  auto trace = trace_of(40, milliseconds{0}, 2);
  for (std::size_t i = 0; i < 20; ++i) trace.requests[i].output = Tokens{400};
  const auto result = replayed(trace);
  EXPECT_EQ(result.errors, 0);
  EXPECT_EQ(result.left + result.completed, 40);
  EXPECT_GE(result.left, 4);
  EXPECT_GE(result.completed, 10);
  EXPECT_LE(stats()["client_closes"], result.left);
  EXPECT_THAT(to_table(result), HasSubstr("left by their clients: " + std::to_string(result.left)));
}

ReplayResult small_result() {
  ReplayResult result;
  result.requests = 200;
  result.completed = 198;
  result.errors = 2;
  result.errors_by_kind[static_cast<std::size_t>(FaultKind::timeout)] = 2;
  result.tokens = 7;
  return result;
}

TEST_F(ReplayTest, ResultIsTheDocumentedJson) {
  const auto report = json::parse(to_json(small_result()));
  EXPECT_EQ(report["requests"], 200);
  EXPECT_EQ(report["errors"], 2);
  EXPECT_EQ(report["errors_by_kind"], json({{"timeout", 2}}));
  EXPECT_EQ(report["tokens"], 7);
  for (const auto* name : {"ttft_ms", "tpot_ms", "e2e_ms", "send_late_ms"}) {
    EXPECT_EQ(report[name].size(), 4U);
    EXPECT_TRUE(report[name].contains("p99"));
  }
  ASSERT_EQ(report["by_output"].size(), kLengthBuckets);
  EXPECT_EQ(report["by_output"][0]["up_to_tokens"], 128);
  EXPECT_EQ(report["by_prompt"][4]["up_to_tokens"], nullptr);
}

// Law: a client that was late says so, and one that was not does not.
TEST_F(ReplayTest, LateClientSaysSo) {
  auto result = small_result();
  result.late_sends = 2;
  EXPECT_THAT(to_table(result), AllOf(HasSubstr("2 of 200"), Not(HasSubstr("fell behind")), HasSubstr("2 timeout")));
  result.late_sends = 3;
  EXPECT_THAT(to_table(result), HasSubstr("fell behind"));
}

// Law: the settings decide which requests are sent, and when.
TEST_F(ReplayTest, LoadsTheTraceTheSettingsName) {
  params.trace = "examples/traces/azure2023_conv_segment.csv";
  params.limit = 10;
  const auto recorded = load_trace(params);
  ASSERT_TRUE(recorded) << recorded.error();
  ASSERT_EQ(recorded->requests.size(), 10U);
  params.speed = 2;
  EXPECT_EQ(load_trace(params)->requests[9].arrival, recorded->requests[9].arrival / 2);
  params.rate_per_s = 1000;
  EXPECT_LT(load_trace(params)->requests[9].arrival, milliseconds{100});
  params.trace = "/no/such/file";
  EXPECT_THAT(load_trace(params).error(), HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace balanceroute::replay
