// An emulated fleet as its clients see it: real sockets, steps of a millisecond.
#include "emulator/emulator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scenario/emulator/fleet_fixture.hpp"
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

class EmulatorTest : public FleetFixture {
 protected:
  void start(std::int64_t ranks, std::int64_t slots) {
    auto params = quick();
    params.ranks = ranks;
    params.slots = slots;
    FleetFixture::start(params);
  }
  void start(const EmulatorParams& params) { FleetFixture::start(params); }

  std::string post(std::size_t rank, std::string_view path, const std::string& body) const {
    return http_exchange(port(rank), "POST", path, body);
  }
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
  EXPECT_EQ(measured["valid"], measured["late_steps_fraction"] <= 0.05);
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

// Law: groups have barriers of their own: a step of one is no step of the other.
TEST_F(EmulatorTest, GroupsStepByThemselves) {
  auto params = quick();
  params.groups = 2;
  params.ranks = 2;
  start(params);
  complete(port(1, 1), R"({"prompt": "x", "max_tokens": 7})");
  const auto measured = stats();
  EXPECT_EQ(measured["groups"][0]["steps"], 0);
  EXPECT_EQ(measured["groups"][1]["steps"], 7);
  const auto steps = get(port(), "/emulator/steps?group=1&last=3").json()["steps"];
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[2]["step"], 7);
  EXPECT_EQ(steps[2]["loads"], json({0, 7}));
  EXPECT_EQ(steps[2]["active"], json({0, 1}));
  EXPECT_EQ(get(port(), "/emulator/steps?group=2").status(), 400);
}

class RankHeaderTest : public FleetFixture {
 protected:
  void start_four_ranks(std::int64_t ranks_per_port) {
    auto params = quick();
    params.ranks = 4;
    params.ranks_per_port = ranks_per_port;
    params.start_rank = 8;
    start(params);
  }
  // Ranks that have generated something, by the label `engine` of a port's metrics.
  static std::vector<std::int64_t> served(std::uint16_t from) {
    std::vector<std::int64_t> engines;
    const auto metrics = get(from, "/metrics").raw;
    constexpr std::string_view kSeries = R"(vllm:generation_tokens_total{model_name="emulated",engine=")";
    for (auto at = metrics.find(kSeries); at != std::string::npos; at = metrics.find(kSeries, at + 1)) {
      const auto label = metrics.substr(at + kSeries.size());
      if (label.substr(label.find('}') + 2, 1) != "0") engines.push_back(std::stoll(label));
    }
    return engines;
  }
};

// Law: a header names a rank of the port, the label `engine` its number in the group.
TEST_F(RankHeaderTest, NamesARankOfThePort) {
  start_four_ranks(2);
  ASSERT_EQ(emulator->ports()[0].size(), 2U);
  const std::string body = R"({"prompt": "x", "max_tokens": 1})";
  EXPECT_EQ(complete(port(1), body, "X-data-parallel-rank: 1\r\n").status(), 200);
  EXPECT_THAT(served(port(0)), testing::IsEmpty());
  EXPECT_THAT(served(port(1)), testing::ElementsAre(11));
}

// Law: a number that is no rank is refused, what is no number is as if it were not there.
TEST_F(RankHeaderTest, RefusesRanksThatAreNot) {
  start_four_ranks(4);
  const std::string body = R"({"prompt": "x", "max_tokens": 1})";
  EXPECT_THAT(complete(port(), body, "X-data-parallel-rank: 4\r\n").error(), HasSubstr("4 is out of range [0, 4)"));
  EXPECT_EQ(complete(port(), body, "X-data-parallel-rank: -1\r\n").status(), 400);
  EXPECT_EQ(complete(port(), body, "X-data-parallel-rank: two\r\n").status(), 200);
  EXPECT_THAT(served(port()), testing::ElementsAre(8));
}

// Law: without a header the engine takes the rank of least 4 * waiting + running.
TEST_F(RankHeaderTest, EngineBalancesByItself) {
  start_four_ranks(4);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) {
    auto& client = *clients.emplace_back(std::make_unique<RawClient>(port()));
    client.send(http_request("POST", "/v1/completions", R"({"prompt": "x", "stream": true, "max_tokens": 1000000})"));
    client.read_until(" t1");
  }
  const auto ranks = state()["ranks"];
  ASSERT_EQ(ranks.size(), 4U);
  for (const auto& rank : ranks) EXPECT_EQ(rank["running"], 1);
}

// Law: the first token comes alone, then each event has an interval of tokens, the last what is left.
TEST_F(EmulatorTest, EventsHaveAnIntervalOfTokens) {
  auto params = quick();
  params.stream_interval = 4;
  start(params);
  const auto answer = post(0, "/v1/completions", R"({"prompt": "x", "stream": true, "max_tokens": 7})");
  EXPECT_EQ(occurrences(answer, "data: {"), 3);
  EXPECT_THAT(answer, HasSubstr(R"("text":" t1")"));
  EXPECT_THAT(answer, HasSubstr(R"("text":" t2 t3 t4 t5")"));
  EXPECT_THAT(answer, HasSubstr(R"("text":" t6 t7","logprobs":null,"finish_reason":"length")"));
}

// Law: continuous usage tells with each event what has come so far.
TEST_F(EmulatorTest, ContinuousUsageGrows) {
  auto params = quick();
  params.stream_interval = 2;
  start(params);
  const auto answer = post(0, "/v1/completions",
                           R"({"prompt": [1, 2], "stream": true, "max_tokens": 4, "return_token_ids": true,
                               "stream_options": {"include_usage": true, "continuous_usage_stats": true}})");
  for (const char* usage : {R"("total_tokens":3,"completion_tokens":1})", R"("total_tokens":5,"completion_tokens":3})",
                            R"("total_tokens":6,"completion_tokens":4})"}) {
    EXPECT_THAT(answer, HasSubstr(usage));
  }
  EXPECT_THAT(answer, HasSubstr(R"("token_ids":[1000002,1000003])"));
  EXPECT_EQ(occurrences(answer, R"("prompt_token_ids":[1,2])"), 1);
}

// Law: a prompt list has an index for each answer, prompt by prompt.
TEST_F(EmulatorTest, PromptListsAndAlternativesHaveIndexes) {
  start(1, 4);
  const auto answer = post(0, "/v1/completions", R"({"prompt": ["a", "b"], "n": 2, "stream": true, "max_tokens": 2})");
  for (const char* index : {"0", "1", "2", "3"}) {
    EXPECT_EQ(occurrences(answer, R"("choices":[{"index":)" + std::string{index} + ","), 2);
  }
  EXPECT_EQ(occurrences(answer, R"("finish_reason":"length")"), 4);
  // A step gives each of them a token: they take turns.
  EXPECT_LT(answer.find(R"("index":3,"text":" t1")"), answer.find(R"("index":0,"text":" t2")"));
}

// Law: an answer whose beginning is in the prompt goes on with the next number and ends where it would have ended.
TEST_F(EmulatorTest, ContinuesABegunAnswer) {
  start(1, 4);
  const auto answer =
      complete(port(), R"({"prompt": "once t1 t2 t3", "max_tokens": 100, "emulator": {"output_tokens": 5}})").json();
  EXPECT_EQ(answer["choices"][0]["text"], " t4 t5");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
}

// Law: reasoning comes first, in events of its own.
TEST_F(EmulatorTest, ReasonsBeforeItSpeaks) {
  auto params = quick();
  params.stream_interval = 8;
  start(params);
  const auto answer = post(0, "/v1/chat/completions",
                           R"({"messages": [{"content": "x"}], "stream": true,
                               "emulator": {"output_tokens": 4, "reasoning_tokens": 2}})");
  EXPECT_THAT(answer, HasSubstr(R"({"reasoning":" t2"})"));
  EXPECT_THAT(answer, HasSubstr(R"({"content":" t3 t4"})"));
}

// Law: on a full rank the youngest answer ends with the word that makes a router ask again; without the setting it is
// preempted and goes on.
TEST_F(EmulatorTest, FullRankTellsTheYoungestToComeAgain) {
  auto params = quick();
  params.kv_capacity_tokens = 210;
  params.block_size = 1;
  params.recompute_stop = true;
  params.dialect = "ascend_mooncake";
  params.prefill_instances = 1;
  start(params);
  const std::string body =
      R"({"prompt": "x", "stream": true, "emulator": {"prompt_tokens": 100, "output_tokens": 100}})";
  RawClient older{port()};
  older.send(http_request("POST", "/v1/completions", body));
  older.read_until(" t1");
  const auto younger = complete(port(), body).raw;
  EXPECT_THAT(younger, HasSubstr(R"("text":"","logprobs":null,"finish_reason":"stop","stop_reason":"recomputed")"));
  EXPECT_THAT(younger, HasSubstr("[DONE]"));
  EXPECT_THAT(older.read_to_end(), HasSubstr(R"( t100","logprobs":null,"finish_reason":"stop","stop_reason":null)"));
}

TEST_F(EmulatorTest, NamesSettingsThatContradict) {
  const auto refusal = [this](auto change) {
    auto params = quick();
    change(params);
    return Emulator{params, clock}.start().error();
  };
  EXPECT_EQ(refusal([](auto& params) { params.ranks_per_port = 3; }),
            "ranks_per_port = 3: expected a divisor of ranks = 1");
  EXPECT_EQ(refusal([](auto& params) { params.dialect = "sglang"; }),
            "prefill_instances = 0: expected at least 1 with dialect sglang");
  EXPECT_THAT(refusal([](auto& params) { params.prefill_instances = 1; }),
              HasSubstr("expected 0 with dialect aggregated"));
}

}  // namespace
}  // namespace balanceroute::emulator
