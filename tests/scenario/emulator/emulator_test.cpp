// An emulated fleet as its clients see it: real sockets, steps of a millisecond.
#include "emulator/emulator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/raw_client.hpp"

namespace balanceroute::emulator {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing_support::body_of;
using testing_support::http_exchange;
using testing_support::http_request;
using testing_support::RawClient;

std::int64_t occurrences(const std::string& text, std::string_view part) {
  std::int64_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

class EmulatorTest : public testing::Test {
 protected:
  void start(std::int64_t ranks, std::int64_t slots, double fixed_ms = 1) {
    EmulatorParams params;
    params.ranks = ranks;
    params.slots = slots;
    params.step_time = {.fixed_ms = fixed_ms, .per_token_ms = 0};
    emulator = std::make_unique<Emulator>(params, clock);
    const auto started = emulator->start();
    ASSERT_TRUE(started) << started.error();
  }

  std::uint16_t port(std::size_t rank) const { return emulator->ports()[0][rank]; }
  std::string post(std::size_t rank, std::string_view path, const std::string& body) const {
    return http_exchange(port(rank), "POST", path, body);
  }
  json stats() const { return json::parse(body_of(http_exchange(port(0), "GET", "/emulator/stats"))); }

  // Asks again until `done` holds; a fleet that never gets there runs into the test's time limit.
  template <class Condition>
  json stats_when(Condition done) const {
    json now = stats();
    while (!done(now)) now = stats();
    return now;
  }

  net::SteadyClock clock;
  std::unique_ptr<Emulator> emulator;
};

// Law: role first, one token an event in order, the reason once, usage when asked, the end mark last.
TEST_F(EmulatorTest, StreamsChat) {
  start(1, 4);
  const auto answer = post(0, "/v1/chat/completions",
                           R"({"model": "emulated", "messages": [{"role": "user", "content": "hello"}], "stream": true,
                               "max_tokens": 3, "stream_options": {"include_usage": true}})");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("text/event-stream"));
  EXPECT_EQ(occurrences(answer, "data: {"), 5);
  EXPECT_LT(answer.find(R"("role":"assistant")"), answer.find("t1"));
  EXPECT_LT(answer.find(R"("content":" t1")"), answer.find(R"("content":" t2")"));
  EXPECT_LT(answer.find(R"("content":" t2")"), answer.find(R"("content":" t3")"));
  EXPECT_EQ(occurrences(answer, R"("finish_reason":"length")"), 1);
  EXPECT_THAT(answer, HasSubstr(R"("usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3})"));
  EXPECT_THAT(answer, HasSubstr("data: [DONE]"));
}

TEST_F(EmulatorTest, AnswersWhole) {
  start(1, 4);
  const auto answer = json::parse(body_of(
      post(0, "/v1/completions", R"({"prompt": [1, 2, 3], "n": 2, "emulator": {"output_tokens": 4, "age": 1}})")));
  ASSERT_EQ(answer["choices"].size(), 2U);
  EXPECT_EQ(answer["choices"][1]["text"], " t2 t3 t4");
  EXPECT_EQ(answer["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 4);  // the age is context that was there before
  EXPECT_EQ(answer["usage"]["completion_tokens"], 6);
}

// Law: the answer's id is made from the request's.
TEST_F(EmulatorTest, RequestIdIsTheBasisOfTheAnswersId) {
  start(1, 4);
  RawClient client{port(0)};
  const std::string body = R"({"prompt": "x", "max_tokens": 1})";
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\nX-Request-Id: abc\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_THAT(client.read_to_end(), HasSubstr(R"("id":"cmpl-abc")"));
}

// Law: the fleet measures what its barrier cost: one of two ranks idles all the time.
TEST_F(EmulatorTest, MeasuresItsLoads) {
  start(2, 4);
  post(1, "/v1/completions", R"({"prompt": "x", "emulator": {"prompt_tokens": 500, "output_tokens": 10}})");
  const auto measured = stats();
  EXPECT_EQ(measured["steps"], 10);
  EXPECT_EQ(measured["tokens"], 10);
  EXPECT_EQ(measured["load_idle_fraction"], 0.5);
  EXPECT_EQ(measured["spread_mean_tokens"], 504.5);
  EXPECT_EQ(measured["groups"].size(), 1U);
  EXPECT_EQ(measured["groups"][0]["steps"], 10);
  EXPECT_EQ(body_of(http_exchange(port(0), "POST", "/emulator/reset")), "{}");
  EXPECT_EQ(stats()["steps"], 0);
}

// Law: the owner of a fleet in its own process sees the same figures as a client.
TEST_F(EmulatorTest, OwnerSeesTheSameFigures) {
  start(1, 4);
  post(0, "/v1/completions", R"({"prompt": "x", "max_tokens": 3})");
  EXPECT_EQ(json::parse(emulator->stats_json()), stats());
  emulator->reset_measures();
  EXPECT_EQ(stats()["steps"], 0);
}

// Law: a client that closes takes its sequence out, streaming or not, running or waiting.
TEST_F(EmulatorTest, ClosedConnectionWithdrawsItsSequence) {
  start(1, 1);
  const std::string endless = R"({"prompt": "x", "stream": true, "max_tokens": 1000000})";
  RawClient running{port(0)};
  running.send(http_request("POST", "/v1/completions", endless));
  running.read_until(" t2");
  RawClient waiting{port(0)};
  waiting.send(http_request("POST", "/v1/completions", R"({"prompt": "x", "max_tokens": 1000000})"));
  stats_when([](const json& now) { return now["active"] == 1 && now["waiting"] == 1; });
  waiting.close();
  stats_when([](const json& now) { return now["active"] == 1 && now["waiting"] == 0; });
  running.close();
  const auto after = stats_when([](const json& now) { return now["active"] == 0; });
  EXPECT_EQ(after["client_closes"], 2);
  EXPECT_THAT(http_exchange(port(0), "GET", "/metrics"), HasSubstr(R"(finished_reason="abort"} 2)"));
}

// Law: a slot serves one sequence at a time, in order of arrival.
TEST_F(EmulatorTest, FullRankQueues) {
  start(1, 1);
  RawClient first{port(0)};
  first.send(http_request("POST", "/v1/completions", R"({"prompt": "x", "stream": true, "max_tokens": 1000000})"));
  first.read_until(" t1");
  RawClient second{port(0)};
  second.send(http_request("POST", "/v1/completions", R"({"prompt": "x", "stream": true, "max_tokens": 2})"));
  stats_when([](const json& now) { return now["waiting"] == 1; });
  EXPECT_THAT(http_exchange(port(0), "GET", "/metrics"),
              HasSubstr(R"(vllm:num_requests_waiting{model_name="emulated",engine="0"} 1)"));
  first.close();
  EXPECT_THAT(second.read_to_end(), HasSubstr("[DONE]"));
}

TEST_F(EmulatorTest, TellsWhatItIs) {
  start(2, 4);
  EXPECT_THAT(http_exchange(port(1), "GET", "/health"), HasSubstr("HTTP/1.1 200"));
  EXPECT_EQ(json::parse(body_of(http_exchange(port(1), "GET", "/v1/models")))["data"][0]["id"], "emulated");
  EXPECT_TRUE(json::parse(body_of(http_exchange(port(1), "GET", "/version")))["version"].is_string());
  const auto metrics = http_exchange(port(1), "GET", "/metrics");
  EXPECT_THAT(metrics, HasSubstr(R"(vllm:num_requests_running{model_name="emulated",engine="1"} 0)"));
  EXPECT_THAT(metrics, HasSubstr(R"(block_size="16")"));
  const auto ready = json::parse(emulator->ready_json());
  EXPECT_EQ(ready["groups"][0][1], "http://127.0.0.1:" + std::to_string(port(1)));
}

TEST_F(EmulatorTest, RefusesLikeTheEngine) {
  start(1, 4);
  const auto error = [this](std::string_view method, std::string_view path, std::string_view body) {
    return json::parse(body_of(http_exchange(port(0), method, path, body)))["error"];
  };
  EXPECT_EQ(error("POST", "/v1/completions", "{")["code"], 400);
  EXPECT_EQ(error("POST", "/v1/completions", R"({"prompt": "x", "model": "other"})")["type"], "NotFoundError");
  EXPECT_EQ(error("GET", "/v1/nothing", "")["code"], 404);
  EXPECT_EQ(error("GET", "/v1/completions", "")["code"], 405);
  EXPECT_THAT(error("POST", "/v1/completions", R"({"prompt": "x", "max_tokens": 1048576})")["message"],
              HasSubstr("maximum context length is 1048576 tokens"));
}

// Law: a stream that the fleet's end cuts off does not look complete.
TEST_F(EmulatorTest, StoppingCutsStreamsWithoutTheEndMark) {
  start(1, 4);
  RawClient client{port(0)};
  client.send(http_request("POST", "/v1/completions", R"({"prompt": "x", "stream": true, "max_tokens": 1000000})"));
  client.read_until(" t1");
  emulator->stop();
  const auto& answer = client.read_to_end();
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n"));
}

TEST_F(EmulatorTest, NamesThePortThatIsTaken) {
  start(1, 1);
  EmulatorParams params;
  params.ranks = 1;
  params.base_port = port(0);
  Emulator second{params, clock};
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error(), HasSubstr("127.0.0.1:" + std::to_string(port(0))));
  params.base_port = 65'535;
  params.ranks = 2;
  Emulator third{params, clock};
  EXPECT_EQ(third.start().error(), "base_port = 65535: expected room for 2 ports up to 65535");
}

}  // namespace
}  // namespace balanceroute::emulator
