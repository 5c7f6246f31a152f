// The router in front of an emulated fleet that checks every relay: each dialect from the client to the last token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/routed_fleet.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using emulator::Emulator;
using emulator::EmulatorParams;
using nlohmann::json;
using testing::HasSubstr;
using testing_support::body_of;
using testing_support::http_exchange;
using testing_support::http_request;
using testing_support::RawClient;
using testing_support::soon;

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kText = "/v1/completions";

class EveryDialect : public RoutedFleet, public testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] bool is(std::string_view name) const { return name == GetParam(); }
  [[nodiscard]] bool prefills() const { return !is("aggregated"); }
};

// Those with a prefill side.
class PrefillDialect : public EveryDialect {};
// Those whose decode engines can lose KV: it does not come to them while it is computed.
class LosingDialect : public EveryDialect {};

constexpr auto kDialectName = [](const auto& param) { return std::string{param.param}; };

INSTANTIATE_TEST_SUITE_P(Dialects, EveryDialect,
                         testing::Values("aggregated", "vllm_nixl", "ascend_mooncake", "vllm_mooncake",
                                         "ascend_layerwise", "sglang"),
                         kDialectName);
INSTANTIATE_TEST_SUITE_P(Dialects, PrefillDialect,
                         testing::Values("vllm_nixl", "ascend_mooncake", "vllm_mooncake", "ascend_layerwise", "sglang"),
                         kDialectName);
INSTANTIATE_TEST_SUITE_P(Dialects, LosingDialect,
                         testing::Values("vllm_nixl", "ascend_mooncake", "vllm_mooncake", "sglang"), kDialectName);

// Law: in each dialect every kind of request is answered in full, its prompt's KV comes from the prefill side and no
// engine finds fault with what it was sent.
TEST_P(EveryDialect, AnswersCarryTheKvOfThePrefillSide) {
  start(quick(GetParam()));
  const std::string options = R"("max_tokens": 5, "min_tokens": 3, "stream_options": {"include_usage": true}, )";
  const std::string whole = post(kText, R"({"model":"emulated","prompt":"once upon a time","max_tokens":5})");
  ASSERT_EQ(status_of(whole), 200) << whole;
  EXPECT_EQ(json::parse(body_of(whole))["choices"][0]["text"], numbered(5));
  const std::string chat =
      post(kChat, R"({"messages":[{"role":"user","content":"hi"}], "max_completion_tokens":4,"model":"emulated"})");
  ASSERT_EQ(status_of(chat), 200) << chat;
  EXPECT_EQ(json::parse(body_of(chat))["choices"][0]["message"]["content"], numbered(4));
  const Streamed text =
      read_stream(post(kText, R"({"stream":true,)" + options + R"("model":"emulated","prompt":[1,2,3,4,5,6,7]})"));
  EXPECT_EQ(text.text, numbered(5));
  EXPECT_EQ(text.dones, 1);
  const Streamed talk = read_stream(post(
      kChat, R"({"model":"emulated","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":6,"n":1})"));
  EXPECT_EQ(talk.text, numbered(6));
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_EQ(kv()["local_prompts"], 0);
  if (prefills()) {
    EXPECT_EQ(kv()["transferred"], 4);
  }
  expect_all_given_back();
}

// Law: several answers and several prompts are right in every dialect, by the prefill side or without it, or refused
// where no engine could do it.
TEST_P(EveryDialect, SeveralAnswersAndPromptsAreRight) {
  start(quick(GetParam()));
  const std::string two = post(kText, R"({"model":"emulated","prompt":"once","max_tokens":3,"n":2})");
  if (is("sglang")) {
    EXPECT_EQ(status_of(two), 400);
    EXPECT_THAT(two, HasSubstr(R"("param":"n")"));
  } else {
    ASSERT_EQ(status_of(two), 200) << two;
    EXPECT_EQ(json::parse(body_of(two))["choices"].size(), 2u);
  }
  const std::string list = post(kText, R"({"model":"emulated","prompt":["once","upon a","time"],"max_tokens":3})");
  ASSERT_EQ(status_of(list), 200) << list;
  const json answers = json::parse(body_of(list));
  ASSERT_EQ(answers["choices"].size(), 3u);
  for (const json& choice : answers["choices"]) EXPECT_EQ(choice["text"], numbered(3));
  EXPECT_EQ(kv()["relay_faults"], 0);
  // Several prompts go by the prefill side where the dialect has words for them.
  if (is("ascend_layerwise")) {
    EXPECT_EQ(kv()["local_prompts"], 1);
  } else if (is("sglang")) {
    EXPECT_EQ(kv()["local_prompts"], 0);
  } else if (prefills()) {
    EXPECT_EQ(kv()["local_prompts"], 2);
  }
  expect_all_given_back();
}

// Law: an answer that is over with its first token is whole, whoever ends it, and its prompt is computed once.
TEST_P(EveryDialect, AnswersOfOneTokenAreWhole) {
  start(quick(GetParam()));
  const std::string own_end = R"("model":"emulated","prompt":"once upon","emulator":{"output_tokens":1})";
  const std::string limit = R"("model":"emulated","prompt":"once upon","max_tokens":1)";
  for (const auto& [members, reason] : {std::pair{own_end, "stop"}, std::pair{limit, "length"}}) {
    const std::string whole = post(kText, "{" + members + "}");
    ASSERT_EQ(status_of(whole), 200) << whole;
    const json answer = json::parse(body_of(whole));
    EXPECT_EQ(answer["choices"][0]["text"], numbered(1));
    EXPECT_EQ(answer["choices"][0]["finish_reason"], reason);
    EXPECT_EQ(answer["usage"]["completion_tokens"], 1);
    const Streamed stream =
        read_stream(post(kText, R"({"stream":true,"stream_options":{"include_usage":true},)" + members + "}"));
    EXPECT_EQ(stream.text, numbered(1));
    EXPECT_EQ(stream.finishes, 1);
    EXPECT_EQ(stream.dones, 1);
    EXPECT_EQ(stream.usage["completion_tokens"], 1);
  }
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_EQ(json::parse(emulator_->stats_json())["tokens"], 4) << emulator_->stats_json();
  // NIXL's prefill engine drops the KV of what is over, and says so.
  if (prefills()) {
    EXPECT_EQ(kv()["transferred"], is("vllm_nixl") ? 2 : 4);
    EXPECT_EQ(kv()["local_prompts"], is("vllm_nixl") ? 2 : 0);
  }
  expect_all_given_back();
}

// Law: ranks behind one port are named as the engine wants it, on both sides.
TEST_P(EveryDialect, RanksBehindOnePortAreNamed) {
  EmulatorParams fleet = quick(GetParam());
  fleet.ranks = 4;
  fleet.ranks_per_port = 2;
  fleet.prefill_ranks = 2;
  fleet.slots = 1;
  start(fleet);
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(std::async(std::launch::async, [this] {
      return post(kText, R"({"model":"emulated","prompt":"once upon a time","max_tokens":30})");
    }));
  }
  for (auto& answer : answers) EXPECT_EQ(status_of(answer.get()), 200);
  EXPECT_EQ(kv()["relay_faults"], 0);
  const json state = json::parse(emulator_->state_json());
  for (const json& rank : state["ranks"]) EXPECT_EQ(rank["waiting"], 0);
  expect_all_given_back();
}

// Law: a prefill instance that fails is replaced by another one, and the client sees nothing of it.
TEST_P(PrefillDialect, FailedPrefillIsTriedElsewhere) {
  start(quick(GetParam()));
  inject(emulator_->prefill_ports()[0], {{"fault", "status:503"}, {"count", 1}, {"path", std::string{kText}}});
  inject(emulator_->prefill_ports()[1], {{"fault", "status:500"}, {"count", 1}, {"path", std::string{kText}}});
  for (int i = 0; i < 3; ++i) {
    const std::string answer = post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
    ASSERT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(json::parse(body_of(answer))["choices"][0]["text"], numbered(3));
  }
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_prefill_failures_total "));
  expect_all_given_back();
}

// Law: when no prefill instance is left, decode workers compute prompts themselves, or the client is told to come
// again.
TEST_P(PrefillDialect, WithoutAPrefillSideRequestsGoOnAsConfigured) {
  for (const char* loss : {"decode_only", "503"}) {
    start(quick(GetParam()), [loss](ServeParams& params) { params.fleets[0].prefill.on_prefill_loss = loss; });
    for (const auto port : emulator_->prefill_ports()) inject(port, {{"fault", "refuse"}, {"count", 100}});
    const std::string answer = post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
    const bool served = loss == std::string_view{"decode_only"} && !is("sglang");
    EXPECT_EQ(status_of(answer), served ? 200 : 503) << answer;
    EXPECT_THAT(answer, HasSubstr(served ? numbered(3) : "no_prefill_ready"));
    EXPECT_EQ(kv()["local_prompts"], served ? 1 : 0);
    expect_all_given_back();
    service_.reset();
  }
}

// Law: what a prefill engine refuses for what it is, its client hears in the engine's words.
TEST_P(PrefillDialect, RefusalOfThePrefillEngineIsPassedOn) {
  start(quick(GetParam()));
  for (const auto port : emulator_->prefill_ports()) {
    inject(port, {{"fault", "status:422"}, {"count", 1}, {"path", std::string{kText}}});
  }
  const std::string answer = post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
  EXPECT_EQ(status_of(answer), is("ascend_layerwise") ? status_of(answer) : 422) << answer;
  EXPECT_GE(status_of(answer), 400) << answer;
  expect_all_given_back();
}

// Law: whoever leaves, in whatever state of the request, leaves nothing behind, and KV that an engine keeps for nobody
// is stranded until its lease ends.
TEST_P(EveryDialect, ClientsThatLeaveAnywhereLeaveNothing) {
  EmulatorParams fleet = quick(GetParam());
  fleet.lease_seconds = 0.3;
  fleet.prefill_time = {.fixed_ms = 2, .per_token_ms = 0};
  fleet.transfer_time = {.fixed_ms = 1, .per_token_ms = 0};
  fleet.slots = 2;
  start(fleet);
  const auto clients = [this](std::uint64_t seed) {
    std::mt19937_64 random{seed};
    for (int i = 0; i < 60; ++i) {
      RawClient client{service_->client_port()};
      const bool stream = random() % 4 != 0;
      client.send(
          http_request("POST", kText,
                       std::string{R"({"model":"emulated","prompt":"once upon a time","max_tokens":8,"stream":)"} +
                           (stream ? "true}" : "false}")));
      switch (random() % 4) {
        case 0:
          break;  // at once
        case 1: {
          const auto leave = std::chrono::steady_clock::now() + std::chrono::microseconds{random() % 8000};
          while (std::chrono::steady_clock::now() < leave) std::this_thread::yield();
          break;
        }
        case 2:
          client.read_until(" t1");
          break;
        default:
          client.read_to_end();
      }
      client.close();
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(clients, seed);
  for (std::thread& thread : threads) thread.join();
  expect_all_given_back();
  EXPECT_EQ(status_of(post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})")), 200);
}

// Law: a prefill engine that restarted is asked for its new id; requests go on.
TEST_P(PrefillDialect, RestartedPrefillEngineIsFoundAgain) {
  EmulatorParams fleet = quick(GetParam());
  fleet.prefill_instances = 1;
  fleet.lease_seconds = 0.5;  // of KV that nobody fetches, because its decode worker was told the old id
  start(fleet);
  const std::string body = R"({"model":"emulated","prompt":"once upon","max_tokens":3})";
  ASSERT_EQ(status_of(post(kText, body)), 200);
  http_exchange(emulator_->prefill_ports()[0], "POST", "/emulator/restart", R"({"down_ms": 1})");
  ASSERT_TRUE(soon([this] { return http_is_up(emulator_->prefill_ports()[0]); }));
  for (int i = 0; i < 3; ++i) {
    const std::string answer = post(kText, body);
    EXPECT_EQ(status_of(answer), 200) << answer;
  }
  expect_all_given_back();
}

// Law: KV that is lost on the way is computed again, and the client sees nothing of it.
TEST_P(LosingDialect, LostKvIsComputedAgain) {
  start(quick(GetParam()));
  for (const auto port : emulator_->prefill_ports()) inject(port, {{"fault", "kv_loss"}, {"count", 1}});
  for (int i = 0; i < 3; ++i) {
    const std::string answer = post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
    ASSERT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(json::parse(body_of(answer))["choices"][0]["text"], numbered(3));
  }
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_prefill_repeated_total 2"));
}

// Law: the same of streams, where vLLM finds the loss only after it has sent its status and, in a chat, the role.
TEST_P(LosingDialect, LostKvOfAStreamIsComputedAgain) {
  EmulatorParams fleet = quick(GetParam());
  fleet.lease_seconds = 0.5;  // of KV that was lost: nobody fetches it
  start(fleet);
  const std::string rest = R"(,"model":"emulated","max_tokens":3,"stream":true})";
  for (const auto& [path, prompt] : {std::pair{kText, R"({"prompt":"once upon")"},
                                     std::pair{kChat, R"({"messages":[{"role":"user","content":"once upon"}])"}}) {
    for (const auto port : emulator_->prefill_ports()) inject(port, {{"fault", "kv_loss"}, {"count", 1}});
    for (int i = 0; i < 3; ++i) {
      const std::string answer = post(path, prompt + rest);
      ASSERT_EQ(status_of(answer), 200) << answer;
      const Streamed stream = read_stream(answer);
      EXPECT_EQ(stream.text, numbered(3));
      EXPECT_EQ(stream.errors, "");
      EXPECT_EQ(stream.dones, 1);
    }
  }
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_prefill_repeated_total 4"));
  expect_all_given_back();
}

// Law: KV that is lost again and again is an error with a status, for nothing of the answer has gone out.
TEST_F(RoutedFleet, LostKvOfAStreamIsAnErrorInTheEnd) {
  start(quick("vllm_nixl"));
  for (const auto port : emulator_->prefill_ports()) inject(port, {{"fault", "kv_loss"}, {"count", 10}});
  const std::string answer = post(
      kChat, R"({"model":"emulated","messages":[{"role":"user","content":"once upon"}],"max_tokens":3,"stream":true})");
  EXPECT_EQ(status_of(answer), 502) << answer;
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_prefill_repeated_total 2"));
}

// Law: a worker that nobody can reach costs its requests nothing while another one lives, and prompts are computed
// once.
TEST_P(EveryDialect, UnreachableWorkersAreGoneRound) {
  constexpr std::uint16_t kNobody = 1;
  EmulatorParams fleet = quick(GetParam());
  fleet.ranks = 1;
  start(fleet, [](ServeParams& params) {
    params.fleets[0].barrier = false;  // else the dead worker would stop its group
    params.fleets[0].policy.name = "round_robin";
    params.fleets[0].groups[0].workers.push_back({.url = url_of(kNobody)});
    params.health.interval_ms = 0;  // taken for healthy until requests say otherwise
  });
  const std::string body = R"({"model":"emulated","prompt":"once upon","max_tokens":3)";
  for (int i = 0; i < 4; ++i) {
    const std::string whole = post(kText, body + "}");
    ASSERT_EQ(status_of(whole), 200) << whole;
    EXPECT_EQ(json::parse(body_of(whole))["choices"][0]["text"], numbered(3));
    EXPECT_EQ(read_stream(post(kText, body + R"(,"stream":true})")).text, numbered(3));
  }
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_EQ(kv()["local_prompts"], 0);
  if (is("vllm_nixl") || is("ascend_mooncake")) {
    EXPECT_EQ(kv()["offered"], 8);
  }
  EXPECT_THAT(metrics(), testing::Not(HasSubstr("balanceroute_request_retries_total 0")));
}

// Law: a request whose worker breaks off before it has answered anything is tried once more, prefill and all, and no
// more: it may be why.
TEST_P(EveryDialect, BrokenOffRequestsAreTriedOnceMore) {
  EmulatorParams fleet = quick(GetParam());
  fleet.ranks = 1;
  fleet.lease_seconds = 0.3;
  start(fleet, [](ServeParams& params) {
    params.timeouts.worker_idle_ms = 0;  // else a kept connection that breaks is replaced, at the cost of one fault
  });
  const auto broken = [this](int times) {
    inject(emulator_->ports()[0][0], {{"fault", "reset"}, {"count", times}, {"path", std::string{kText}}});
    return post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
  };
  const std::string answer = broken(1);
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(json::parse(body_of(answer))["choices"][0]["text"], numbered(3));
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_request_retries_total 1"));
  EXPECT_EQ(status_of(broken(2)), 502);
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_request_retries_total 2"));
  EXPECT_EQ(kv()["relay_faults"], 0);
  expect_all_given_back();
}

class AscendDialect : public EveryDialect {};

INSTANTIATE_TEST_SUITE_P(Dialects, AscendDialect, testing::Values("ascend_mooncake", "ascend_layerwise"), kDialectName);

// Law: answers that a worker gives up for want of KV space go on elsewhere: no token is lost or doubled, the client
// sees one id, one end and the usage of the one answer.
TEST_P(AscendDialect, GivenUpAnswersGoOnWithoutASeam) {
  constexpr int kTokens = 60;
  EmulatorParams fleet = quick(GetParam());
  fleet.ranks = 1;
  fleet.kv_capacity_tokens = 160;  // of four answers of more than 60 tokens each
  fleet.recompute_stop = true;
  fleet.step_time = {.fixed_ms = 0.3, .per_token_ms = 0};
  fleet.stream_interval = 3;
  start(fleet);
  const std::string limit = R"(,"max_tokens":60,"model":"emulated")";
  const std::string chat = R"({"messages":[{"role":"user","content":"once upon a time"}])" + limit;
  const std::string text = R"({"prompt":"once upon a time")" + limit;
  const std::string stream = R"(,"stream":true,"stream_options":{"include_usage":true}})";
  std::vector<std::future<std::string>> streams;
  std::vector<std::future<std::string>> wholes;
  const auto send = [this](std::string_view path, std::string body) {
    return std::async(std::launch::async, [this, path, body = std::move(body)] { return post(path, body); });
  };
  for (int i = 0; i < 2; ++i) {
    streams.push_back(send(kText, text + stream));
    streams.push_back(send(kChat, chat + stream));
    wholes.push_back(send(kText, text + "}"));
    wholes.push_back(send(kChat, chat + "}"));
  }
  for (auto& future : streams) {
    const std::string answer = future.get();
    const Streamed read = read_stream(answer);
    EXPECT_EQ(read.text, numbered(kTokens));
    EXPECT_EQ(read.finishes, 1);
    EXPECT_EQ(read.dones, 1);
    EXPECT_EQ(read.ids.size(), 1u);
    EXPECT_EQ(read.errors, "");
    EXPECT_EQ(read.usage["completion_tokens"], kTokens) << answer;
    EXPECT_EQ(read.usage["prompt_tokens"], 4);
    EXPECT_EQ(read.usage["total_tokens"], 4 + kTokens);
  }
  for (auto& future : wholes) {
    const std::string answer = future.get();
    ASSERT_EQ(status_of(answer), 200) << answer;
    const json whole = json::parse(body_of(answer));
    const json& choice = whole["choices"][0];
    EXPECT_EQ(choice.contains("text") ? choice["text"] : choice["message"]["content"], numbered(kTokens));
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(whole["usage"]["completion_tokens"], kTokens);
    EXPECT_EQ(whole["usage"]["prompt_tokens"], 4);
  }
  EXPECT_THAT(metrics(), testing::Not(HasSubstr("balanceroute_stream_given_up_total 0")));
  EXPECT_EQ(kv()["relay_faults"], 0);
  expect_all_given_back();
}

// A prefill engine of vLLM's MooncakeConnector that ends every answer for the reason it is told.
class EndingPrefill {
 public:
  EndingPrefill(const net::Clock& clock, std::string reason)
      : reason_{std::move(reason)},
        threads_{1, "prefill", clock},
        server_{threads_, {}, [this](net::HttpExchange& exchange) { return handle(exchange); }},
        port_{*server_.listen("127.0.0.1", 0)} {
    threads_.start();
  }
  ~EndingPrefill() {
    server_.stop();
    threads_.stop();
  }
  EndingPrefill(const EndingPrefill&) = delete;
  EndingPrefill& operator=(const EndingPrefill&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  net::asio::awaitable<void> handle(net::HttpExchange& exchange) {
    std::string body = R"({"0":{"engine_id":"engine","worker_addr":{}}})";
    if (exchange.request().path() == kText) {
      body = R"({"choices":[{"text":"x","finish_reason":")" + reason_ + R"("}],"usage":{"prompt_tokens":3}})";
    }
    co_await exchange.respond(net::json_response(200, body));
  }

  std::string reason_;
  net::IoThreads threads_;
  net::HttpServer server_;
  std::uint16_t port_;
};

// Law: KV that a prefill engine dropped, since to it the answer was over, is waited for by no decode worker: the worker
// gets the request once more and computes the prompt itself.
TEST_F(RoutedFleet, DroppedKvIsNotWaitedFor) {
  const EndingPrefill engine{clock_, "stop"};
  start(quick("vllm_mooncake"), [&](ServeParams& params) {
    params.fleets[0].prefill.instances = {{.url = url_of(engine.port()), .bootstrap_port = engine.port()}};
    params.fleets[0].prefill.lease_ms = 3'600'000;
  });
  const std::string body = R"({"model":"emulated","prompt":"once upon","max_tokens":3)";
  const std::string whole = post(kText, body + "}");
  ASSERT_EQ(status_of(whole), 200) << whole;
  EXPECT_EQ(json::parse(body_of(whole))["choices"][0]["text"], numbered(3));
  EXPECT_EQ(read_stream(post(kText, body + R"(,"stream":true})")).text, numbered(3));
  EXPECT_EQ(kv()["local_prompts"], 2);
  EXPECT_EQ(kv()["relay_faults"], 0);
  EXPECT_THAT(metrics(), HasSubstr(R"(balanceroute_prefill_skipped_total{reason="no_kv"} 2)"));
  EXPECT_THAT(metrics(), HasSubstr("balanceroute_prefill_failures_total 0"));
  expect_all_given_back();
}

// One worker with one slot, which a request holds as long as the test wants.
class BusyWorker : public RoutedFleet {
 protected:
  void start_busy(const std::function<void(ServeParams&)>& change = no_change, double lease_seconds = 30) {
    EmulatorParams fleet = quick("vllm_nixl");
    fleet.ranks = 1;
    fleet.slots = 1;
    fleet.lease_seconds = lease_seconds;
    start(fleet, change);
    holder_ = std::make_unique<RawClient>(service_->client_port());
    holder_->send(http_request("POST", kText, body(100'000)));
    holder_->read_until(" t1");
  }
  static std::string body(int tokens) {
    return R"({"model":"emulated","prompt":"once upon","stream":true,"max_tokens":)" + std::to_string(tokens) + "}";
  }
  std::unique_ptr<RawClient> send(int tokens = 3) {
    auto client = std::make_unique<RawClient>(service_->client_port());
    client->send(http_request("POST", kText, body(tokens)));
    return client;
  }
  bool shows(const std::string& metric) { return metrics().find(metric) != std::string::npos; }

  std::unique_ptr<RawClient> holder_;
};

// Law: a prefilled request that waits for its hold limit goes beyond its worker's slots, and takes the next free one.
TEST_F(BusyWorker, KvThatCanWaitNoLongerGoesBeyondSlots) {
  start_busy([](ServeParams& params) { params.fleets[0].prefill.hold_limit_ms = 30; });
  const auto waiting = send();
  EXPECT_TRUE(soon([this] { return shows("balanceroute_pool_forced_holds_total{fleet=\"default\"} 1"); }));
  holder_->close();
  EXPECT_EQ(read_stream(waiting->read_to_end()).text, numbered(3));
  EXPECT_EQ(kv()["relay_faults"], 0);
  expect_all_given_back();
}

// Law: the lease that an engine states counts where it is shorter than the limit.
TEST_F(BusyWorker, StatedLeaseBoundsTheHold) {
  start_busy(
      [](ServeParams& params) {
        params.fleets[0].prefill.lease_ms = 30'000;
        params.fleets[0].prefill.hold_limit_ms = 20'000;
      },
      1);
  const auto waiting = send();
  EXPECT_TRUE(soon([this] { return shows("balanceroute_pool_forced_holds_total{fleet=\"default\"} 1"); }, 10s));
  holder_->close();
  EXPECT_EQ(read_stream(waiting->read_to_end()).text, numbered(3));
  EXPECT_EQ(kv()["relay_faults"], 0);
}

// Law: where nothing may go beyond slots, it is prefilled once more and then refused.
TEST_F(BusyWorker, KvThatFindsNoRoomIsComputedOnceMore) {
  start_busy(
      [](ServeParams& params) {
        params.fleets[0].prefill.hold_limit_ms = 30;
        params.fleets[0].prefill.overcommit = 0;
      },
      0.3);
  const std::string answer = post(kText, body(3));
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_THAT(answer, HasSubstr("hold_expired"));
  EXPECT_TRUE(shows("balanceroute_pool_holds_expired_total{fleet=\"default\"} 2"));
  holder_->close();
  expect_all_given_back();
}

// Law: more requests than may wait are refused, and prefill is not begun for what the pool has no use for.
TEST_F(BusyWorker, RequestsWaitBeforePrefill) {
  start_busy([](ServeParams& params) { params.limits.waiting_requests = 2; });
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(send());
  EXPECT_TRUE(soon([this] {
    const json state = ledger();
    return state["requests_waiting"] == 1 && state["prefill"]["requests_waiting"] == 2;
  })) << ledger().dump(1);
  EXPECT_EQ(status_of(post(kText, body(3))), 429);
  holder_->close();
  for (const auto& client : waiting) EXPECT_EQ(read_stream(client->read_to_end()).text, numbered(3));
  expect_all_given_back();
}

// Law: KV whose client left the pool is fetched by nobody's request, or stays stranded until the engine's lease ends.
TEST_F(BusyWorker, AbandonedKvIsDrained) {
  start_busy();
  send()->close();
  const auto waiting = send();
  EXPECT_TRUE(soon([this] { return ledger()["requests_waiting"] == 1; }));
  waiting->close();
  EXPECT_TRUE(soon([this] { return kv()["offered"] >= 2; }));
  holder_->close();
  expect_all_given_back();
  EXPECT_EQ(kv()["leases_expired"], 0);
}

TEST_F(BusyWorker, AbandonedKvIsLeftToItsLease) {
  start_busy(
      [](ServeParams& params) {
        params.fleets[0].prefill.abandon = "lease";
        params.fleets[0].prefill.hold_limit_ms = 250;
      },
      0.3);
  const auto waiting = send();
  EXPECT_TRUE(soon([this] { return ledger()["requests_waiting"] == 1; }));
  // Until then it is a lease that can be seen.
  const json prefill = ledger()["prefill"];
  ASSERT_EQ(prefill["leases"].size(), 1u) << prefill;
  EXPECT_EQ(prefill["leases"][0]["state"], "held");
  EXPECT_EQ(prefill["leases"][0]["tokens"], 3);
  waiting->close();
  const auto stranded = [this] {
    std::int64_t tokens = 0;
    const json state = ledger();
    for (const json& instance : state["prefill"]["instances"]) {
      tokens += instance["stranded_tokens"].get<std::int64_t>();
    }
    return tokens;
  };
  EXPECT_TRUE(soon([&] { return stranded() > 0; }));
  holder_->close();
  expect_all_given_back();
  EXPECT_EQ(kv()["leases_expired"], 1);
}

// Law: a worker fetches the KV of so many requests at a time, and no more.
TEST_F(RoutedFleet, TransfersAreBounded) {
  EmulatorParams fleet = quick("vllm_nixl");
  fleet.ranks = 1;
  fleet.transfer_time = {.fixed_ms = 30, .per_token_ms = 0};
  start(fleet, [](ServeParams& params) { params.fleets[0].prefill.max_transfers_in_flight = 1; });
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(service_->client_port()));
    clients.back()->send(
        http_request("POST", kText, R"({"model":"emulated","prompt":"once upon","stream":true,"max_tokens":300})"));
  }
  std::int64_t most = 0;
  EXPECT_TRUE(soon([&] {
    const json rank = json::parse(emulator_->state_json())["ranks"][0];
    most = std::max(most, rank["waiting"].get<std::int64_t>());
    return kv()["transferred"] == 3;
  }));
  EXPECT_EQ(most, 1);
  for (const auto& client : clients) EXPECT_EQ(read_stream(client->read_to_end()).text, numbered(300));
}

// Law: a prefill instance is given no more than its high-water mark, counted until its KV has been fetched.
TEST_F(RoutedFleet, HighWaterMarkHoldsRequestsBack) {
  EmulatorParams fleet = quick("vllm_nixl");
  fleet.prefill_instances = 1;
  fleet.transfer_time = {.fixed_ms = 20, .per_token_ms = 0};
  start(fleet, [](ServeParams& params) { params.fleets[0].prefill.kv_high_water_tokens = 7; });
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<RawClient>(service_->client_port()));
    clients.back()->send(
        http_request("POST", kText, R"({"model":"emulated","prompt":[1,2,3],"stream":true,"max_tokens":3})"));
  }
  std::int64_t most = 0;
  EXPECT_TRUE(soon([&] {
    const json state = json::parse(emulator_->state_json());
    most = std::max(most, state["ranks"][2]["kv_tokens"].get<std::int64_t>());
    return kv()["transferred"] == 6;
  }));
  EXPECT_LE(most, 6);  // two prompts of three tokens
  for (const auto& client : clients) EXPECT_EQ(read_stream(client->read_to_end()).text, numbered(3));
  expect_all_given_back();
}

// Law: a failed prefill is tried again as often as configured, and no more.
TEST_F(RoutedFleet, RetriesAreAsConfigured) {
  for (const int retries : {0, 1}) {
    start(quick("vllm_nixl"), [retries](ServeParams& params) { params.fleets[0].prefill.retries = retries; });
    inject(emulator_->prefill_ports()[0], {{"fault", "status:503"}, {"count", 1}, {"path", std::string{kText}}});
    EXPECT_EQ(status_of(post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})")), 200);
    EXPECT_EQ(kv()["local_prompts"], retries == 0 ? 1 : 0);
    service_.reset();
  }
}

// Law: decode engines call where the settings say that they reach the router.
TEST_F(RoutedFleet, CallbackUrlIsWhereWorkersCall) {
  start(quick("ascend_layerwise"), [](ServeParams& params) {
    params.fleets[0].prefill.callback_url = "http://127.0.0.1:1/";  // where nobody listens
  });
  const std::string answer = post(kText, R"({"model":"emulated","prompt":"once upon","max_tokens":3})");
  EXPECT_EQ(status_of(answer), 500);
  EXPECT_THAT(answer, HasSubstr("metaserver http://127.0.0.1:1/v1/metaserver"));
  expect_all_given_back();
}

// Law: a call for a request that nobody has is refused, and so is one that cannot be read.
TEST_F(RoutedFleet, CallsForUnknownRequestsAreRefused) {
  start(quick("ascend_layerwise"));
  const auto call = [this](const std::string& body) {
    return status_of(http_exchange(service_->client_port(), "POST", "/v1/metaserver", body));
  };
  EXPECT_EQ(call(R"({"request_id":"cmpl-0123-0","do_remote_decode":true})"), 404);
  EXPECT_EQ(call(R"({"do_remote_decode":true})"), 400);
  EXPECT_EQ(call("nonsense"), 400);
}

// Law: the engine's own number of a rank is shown beside ours.
TEST_F(RoutedFleet, EngineRanksAreShown) {
  start(quick("aggregated"), [](ServeParams& params) { params.fleets[0].groups[0].workers[1].start_rank = 5; });
  const json state = ledger();
  EXPECT_EQ(state["workers"][0]["engine_rank"], 0);
  EXPECT_EQ(state["workers"][1]["engine_rank"], 5);
}

}  // namespace
}  // namespace balanceroute::proxy
