// The whole router on real sockets, in front of workers that the test scripts.
#include "proxy/service.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/fake_worker.hpp"
#include "support/log_lines.hpp"
#include "support/raw_client.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing_support::body_of;
using testing_support::chunk;
using testing_support::FakeWorker;
using testing_support::hangs_after;
using testing_support::kDone;
using testing_support::kFinish;
using testing_support::kUsage;
using testing_support::LogLines;
using testing_support::RawClient;
using testing_support::soon;
using testing_support::start_stream;
using testing_support::streams;
using testing_support::unchunked;

std::string ask(std::uint16_t port, const std::string& request) {
  return testing_support::http_exchange(port, request);
}
std::string get(std::string_view path) {
  return testing_support::http_request("GET", path);
}
std::string post(std::string_view path, std::string_view body, std::string_view more_headers = "") {
  return testing_support::http_request("POST", path, body, more_headers);
}

const std::string kStreamBody = R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"x":1.50})";

class RouterService : public testing::Test {
 protected:
  void serve(
      std::vector<std::uint16_t> worker_ports, std::int64_t slots = 4,
      const std::function<void(ServeParams&)>& change = [](ServeParams&) {}) {
    ServeParams params;
    params.listen = "127.0.0.1:0";
    params.admin.listen = "127.0.0.1:0";
    params.io_threads = 2;
    params.health.interval_ms = 0;  // workers see nothing but what the test sends
    params.fleets.resize(1);
    params.fleets[0].policy.name = "join_shortest_queue";
    params.fleets[0].groups.resize(1);
    params.fleets[0].groups[0].name = "g";
    params.fleets[0].groups[0].slots = slots;
    for (const std::uint16_t port : worker_ports) {
      params.fleets[0].groups[0].workers.push_back({.url = "http://127.0.0.1:" + std::to_string(port)});
    }
    change(params);
    ASSERT_EQ(problems_of(params), std::vector<std::string>{});
    auto started = Service::start(params, std::make_shared<spdlog::logger>("test", sink_));
    ASSERT_TRUE(started) << started.error();
    service_ = std::move(*started);
  }

  nlohmann::json ledger() {
    return nlohmann::json::parse(body_of(ask(service_->admin_port(), get("/debug/ledger"))))["fleets"][0];
  }
  std::string metrics() { return ask(service_->admin_port(), get("/metrics")); }
  // The service works in its own threads; a condition holds soon or never.
  bool ledger_is_empty() {
    const auto state = ledger();
    return state["requests_live"] == 0 && state["leases_live"] == 0 && state["requests_waiting"] == 0;
  }
  std::size_t final_lines() {
    const auto lines = sink_->lines();
    return static_cast<std::size_t>(
        std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("request id="); }));
  }

  std::shared_ptr<LogLines> sink_ = std::make_shared<LogLines>();
  std::unique_ptr<Service> service_;
};

// Law: events reach the client as they were, in order; only the usage event nobody asked for is left out; the body
// reaches the worker unchanged but for the wish for usage.
TEST_F(RouterService, StreamsPassUnchanged) {
  FakeWorker worker{
      streams({": hello\n\n", chunk("a") + chunk("b").substr(0, 20), chunk("b").substr(20) + kFinish, kUsage + kDone})};
  serve({worker.port()});
  const std::string answer = ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_EQ(unchunked(answer), ": hello\n\n" + chunk("a") + chunk("b") + kFinish + kDone);
  ASSERT_EQ(worker.requests().size(), 1u);
  std::string expected = kStreamBody;
  expected.insert(expected.size() - 1, R"(,"stream_options":{"include_usage":true})");
  EXPECT_EQ(worker.requests()[0].body, expected);
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
  EXPECT_NE(metrics().find("balanceroute_request_finished_total{outcome=\"ok\"} 1"), std::string::npos);
  EXPECT_NE(metrics().find("balanceroute_stream_tokens_total 2"), std::string::npos);
}

// Law: an operator sees what the policy thinks of each worker for a request of that size, and the final line of a
// request says why it is where it is.
TEST_F(RouterService, DecisionsAreExplained) {
  FakeWorker first{streams({chunk("a") + kFinish + kUsage + kDone})};
  FakeWorker second{streams({})};
  serve({first.port(), second.port()}, 3, [](ServeParams& params) { params.fleets[0].policy.name = "br_0"; });
  const auto explained =
      nlohmann::json::parse(body_of(ask(service_->admin_port(), get("/debug/explain?prompt_tokens=500&sequences=2"))));
  const auto& fleet = explained["fleets"][0];
  EXPECT_EQ(fleet["policy"], "br_0");
  EXPECT_EQ(fleet["score_meaning"], "tokens of imbalance that the admission removes");
  ASSERT_EQ(fleet["workers"].size(), 2u);
  // Two sequences of 500 on one of two idle workers: the other one waits for 1000.
  EXPECT_EQ(fleet["workers"][1]["score"], -1000);
  EXPECT_EQ(fleet["workers"][1]["free_slots"], 3);
  ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  ASSERT_TRUE(soon([&] { return final_lines() == 1; }));
  const auto lines = sink_->lines();
  const auto line = std::ranges::find_if(lines, [](const auto& text) { return text.starts_with("request id="); });
  EXPECT_NE(line->find(" client=127.0.0.1"), std::string::npos) << *line;
  EXPECT_NE(line->find(" rank=0 stage=single score=-"), std::string::npos) << *line;
}

// Law: where several ranks share an address, the final line of a request says which one it had, as its header did.
TEST_F(RouterService, FinalLineTellsTheRank) {
  FakeWorker node{streams({chunk("a") + kFinish + kUsage + kDone})};
  serve({node.port()}, 3, [](ServeParams& params) {
    params.fleets[0].policy.name = "round_robin";
    params.fleets[0].groups[0].workers[0].ranks = 2;
    params.fleets[0].groups[0].workers[0].addressing = "header";
  });
  for (std::size_t i = 0; i < 2; ++i) {
    ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
    ASSERT_TRUE(soon([&] { return final_lines() == i + 1; }));
    const auto requests = node.requests();
    const auto rank = requests.at(i).headers.find("X-data-parallel-rank");
    ASSERT_TRUE(rank);
    EXPECT_NE(sink_->lines().back().find(" rank=" + std::string{*rank} + " "), std::string::npos);
  }
  EXPECT_NE(node.requests().at(0).headers.find("X-data-parallel-rank"),
            node.requests().at(1).headers.find("X-data-parallel-rank"));
}

// Law: without a policy of its own a fleet has br_fit where workers wait for each other, and least_tokens where not.
TEST_F(RouterService, UnnamedPolicySuitsTheFleet) {
  FakeWorker first{streams({kDone})};
  FakeWorker second{streams({kDone})};
  const auto policy_of = [&](const std::vector<std::uint16_t>& ports, bool barrier) {
    serve(ports, 3, [barrier](ServeParams& params) {
      params.fleets[0].policy.name = "auto";
      params.fleets[0].barrier = barrier;
    });
    return ledger()["policy"];
  };
  EXPECT_EQ(policy_of({first.port(), second.port()}, true), "br_fit");
  EXPECT_EQ(policy_of({first.port(), second.port()}, false), "least_tokens");
  EXPECT_EQ(policy_of({first.port()}, true), "least_tokens");
}

// Law: a question that cannot be read is answered with what was expected.
TEST_F(RouterService, BadQuestionsAreNamed) {
  FakeWorker worker{streams({kDone})};
  serve({worker.port()});
  const std::vector<std::pair<std::string, std::string>> questions{
      {"", "prompt_tokens is missing"},
      {"?prompt_tokens=0", "prompt_tokens = '0': expected a whole number from 1 to 2147483648"},
      {"?prompt_tokens=5x", "prompt_tokens = '5x'"},
      {"?prompt_tokens=5&sequences=99999999999999999999", "sequences = '99999999999999999999'"},
      {"?prompt=5", "'prompt': expected prompt_tokens or sequences"},
  };
  for (const auto& [query, expected] : questions) {
    const std::string answer = ask(service_->admin_port(), get("/debug/explain" + query));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
    EXPECT_NE(answer.find(expected), std::string::npos) << answer;
  }
}

// Law: a client that asks for usage gets the event, and its body goes on byte for byte.
TEST_F(RouterService, UsageIsPassedOnToWhomAskedForIt) {
  FakeWorker worker{streams({chunk("a") + kFinish + kUsage + kDone})};
  serve({worker.port()});
  const std::string body = R"({ "stream_options" : {"include_usage" : true}, "model":"m", "stream":true })";
  const std::string answer = ask(service_->client_port(), post("/v1/chat/completions", body));
  EXPECT_EQ(unchunked(answer), chunk("a") + kFinish + kUsage + kDone);
  EXPECT_EQ(worker.requests()[0].body, body);
}

// Law: the two ids are kept apart: the worker sees ours, the client gets its own back; secrets and framing of the
// client's connection stop at the router.
TEST_F(RouterService, HeadersAreOursOrTheClients) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    net::HttpResponse response = net::json_response(200, R"({"usage":{"prompt_tokens":3,"completion_tokens":4}})");
    response.headers.add("X-Request-Id", "the-worker's");
    response.headers.add("X-Custom", "kept");
    response.headers.add("Keep-Alive", "timeout=5");
    co_await exchange.respond(response);
  }};
  serve({worker.port()});
  const std::string answer = ask(
      service_->client_port(),
      post("/v1/completions", R"({"model":"m","prompt":"x"})",
           "X-Request-Id: mine\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer k\r\nTE: trailers\r\nX-Other: o\r\n"));
  EXPECT_NE(answer.find("X-Request-Id: mine\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("X-Custom: kept\r\n"), std::string::npos);
  EXPECT_EQ(answer.find("Keep-Alive: timeout"), std::string::npos);
  const net::HeaderList sent = worker.requests().at(0).headers;
  EXPECT_EQ(sent.find("X-Request-Id")->size(), 32u);
  EXPECT_EQ(sent.count("X-Request-Id"), 1u);
  EXPECT_EQ(sent.find("Authorization"), "Bearer k");
  EXPECT_EQ(sent.find("X-Other"), "o");
  EXPECT_FALSE(sent.find("Accept-Encoding"));
  EXPECT_FALSE(sent.find("TE"));
}

// Law: a client that leaves in mid-stream is noticed although no byte moves; the worker sees the close and nothing is
// left in the ledger.
TEST_F(RouterService, ClientThatLeavesFreesEverything) {
  FakeWorker worker{hangs_after(chunk("a"))};
  serve({worker.port()});
  RawClient client{service_->client_port()};
  client.send(post("/v1/chat/completions", kStreamBody));
  client.read_until("\"a\"");
  EXPECT_TRUE(soon([&] { return ledger()["leases"].size() == 1 && ledger()["leases"][0]["state"] == "running"; }));
  client.close();
  EXPECT_TRUE(soon([&] { return worker.closes() == 1; }));
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
  EXPECT_TRUE(soon([&] { return final_lines() == 1; }));
  EXPECT_NE(metrics().find("balanceroute_request_finished_total{outcome=\"client_left\"} 1"), std::string::npos);
}

// Law: the same holds for a client that leaves while its request still waits for a slot, and before any answer.
TEST_F(RouterService, ClientThatLeavesTheQueueFreesItsPlace) {
  FakeWorker worker{hangs_after("")};
  serve({worker.port()}, 1);
  RawClient first{service_->client_port()};
  first.send(post("/v1/completions", R"({"model":"m","prompt":"x"})"));
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 1; }));
  RawClient second{service_->client_port()};
  second.send(post("/v1/completions", R"({"model":"m","prompt":"x"})"));
  EXPECT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  second.close();
  EXPECT_TRUE(soon([&] { return ledger()["requests_waiting"] == 0; }));
  EXPECT_EQ(worker.requests().size(), 1u);
  first.close();
  EXPECT_TRUE(soon([&] { return ledger_is_empty() && worker.closes() == 1; }));
}

// Law: KV space bounds what a worker is given too: a request waits for it though slots are free.
TEST_F(RouterService, KvSpaceBoundsWhatAWorkerGets) {
  FakeWorker worker{hangs_after("")};
  serve({worker.port()}, 4, [](ServeParams& params) {
    params.fleets[0].groups[0].kv = {.capacity_tokens = 20, .reserve_tokens = 4, .block_size = 8};
  });
  RawClient first{service_->client_port()};
  first.send(post("/v1/completions", R"({"model":"m","prompt":[1,2,3,4,5,6,7,8,9]})"));
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 1; }));
  RawClient second{service_->client_port()};
  second.send(post("/v1/completions", R"({"model":"m","prompt":[1]})"));
  EXPECT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  first.close();
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 2; }));
}

// Law: slots bound what a worker is given; the next request goes out when one ends.
TEST_F(RouterService, SlotsBoundWhatAWorkerGets) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<bool> open{false};
  FakeWorker worker{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    most = std::max(most.load(), ++running);
    net::Event tick{exchange.thread()};
    while (!open) co_await tick.wait(std::chrono::steady_clock::now() + 1ms);
    --running;
    co_await exchange.respond(net::json_response(200, "{}"));
  }};
  serve({worker.port()}, 2);
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 5; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      return ask(service_->client_port(), post("/v1/completions", R"({"model":"m","prompt":"x"})"));
    }));
  }
  EXPECT_TRUE(soon([&] { return running == 2 && ledger()["requests_waiting"] == 3; }));
  open = true;
  for (auto& answer : answers) EXPECT_TRUE(answer.get().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(most, 2);
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

// Law: slots are free at the last token, not when the connection closes.
TEST_F(RouterService, SlotIsFreeAtTheLastToken) {
  FakeWorker worker{hangs_after(chunk("a") + kFinish)};
  serve({worker.port()}, 1);
  RawClient client{service_->client_port()};
  client.send(post("/v1/chat/completions", kStreamBody));
  client.read_until("finish_reason");
  EXPECT_TRUE(soon([&] { return ledger()["leases_live"] == 0; }));
  EXPECT_EQ(worker.closes(), 0u);
}

// Law: each of several answers frees its own slot at its last token.
TEST_F(RouterService, EachAnswerFreesItsSlot) {
  const std::string second = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n";
  FakeWorker worker{hangs_after(chunk("a") + second + kFinish)};
  serve({worker.port()}, 2);
  RawClient client{service_->client_port()};
  client.send(post("/v1/chat/completions", R"({"model":"m","stream":true,"n":2,"messages":[]})"));
  client.read_until("finish_reason");
  EXPECT_TRUE(soon([&] {
    const auto state = ledger();
    return state["leases_live"] == 1 && state["workers"][0]["sequences"] == 1;
  }));
  client.close();
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

struct Refusal {
  std::string request;
  int status;
  std::string code;
};

// Law: what cannot be served is answered at once, with a status and a code of its own.
TEST_F(RouterService, RefusalsNameTheirCause) {
  FakeWorker worker{streams({kDone})};
  serve({worker.port()}, 2, [](ServeParams& params) {
    params.fleets[0].models.push_back({.name = "m", .aliases = {"short"}});
    params.fleets[0].groups[0].kv = {.capacity_tokens = 20, .reserve_tokens = 4, .block_size = 8};
    params.limits.body_bytes = 2000;
  });
  const std::vector<Refusal> refusals{
      {post("/v1/completions", "{"), 400, "bad_body"},
      {post("/v1/completions", R"({"model":"other","prompt":"x"})"), 404, "model_not_found"},
      {post("/v1/completions", R"({"model":"m","prompt":"x","n":3})"), 400, "too_many_sequences"},
      {post("/v1/completions", R"({"model":"m","prompt":[1,2,3,4,5,6,7,8,9],"n":2})"), 400, "too_many_tokens"},
      {post("/v1/completions", R"({"model":"m","prompt":"x","kv_transfer_params":{}})"), 400, "bad_body"},
      {post("/v1/completions", R"({"model":"m"})", "X-Data-Parallel-Rank: 1\r\n"), 400, "forbidden_header"},
      {post("/v1/completions", std::string(2001, ' ')), 413, "body_too_large"},
      {post("/abort_requests", "{}"), 404, "unknown_path"},
      {post("/debug/ledger", "{}"), 404, "unknown_path"},
      {get("/v1/completions"), 405, "method_not_allowed"},
  };
  for (const Refusal& refusal : refusals) {
    const std::string answer = ask(service_->client_port(), refusal.request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(refusal.status) + " ")) << answer;
    const auto body = nlohmann::json::parse(body_of(answer));
    EXPECT_EQ(body["error"]["code"], refusal.code) << answer;
    EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
  }
  EXPECT_TRUE(worker.requests().empty());
}

// Law: only paths of the list are served, spelled as they are there: an engine's control endpoints are reached by no
// spelling, and no other spelling of a served path is passed on.
TEST_F(RouterService, OnlyListedPathsReachEngines) {
  FakeWorker worker{streams({kDone})};
  serve({worker.port()});
  std::vector<std::string> paths;
  for (const char* control : {"abort_requests",
                              "abort_request",
                              "sleep",
                              "wake_up",
                              "is_sleeping",
                              "reset_prefix_cache",
                              "reset_mm_cache",
                              "collective_rpc",
                              "load_lora_adapter",
                              "v1/load_lora_adapter",
                              "unload_lora_adapter",
                              "v1/unload_lora_adapter",
                              "update_weights_from_disk",
                              "update_weights_from_tensor",
                              "init_weights_update_group",
                              "flush_cache",
                              "start_profile",
                              "stop_profile",
                              "server_info",
                              "get_server_info",
                              "get_model_info",
                              "get_load",
                              "set_internal_state",
                              "release_memory_occupation",
                              "resume_memory_occupation",
                              "pause_generation",
                              "scale_elastic_ep",
                              "invocations",
                              "inference/v1/generate",
                              "generate",
                              "query",
                              "openapi.json",
                              "docs",
                              "emulator/state",
                              "workers",
                              "config",
                              "policy",
                              "debug/ledger",
                              "debug/explain"}) {
    paths.push_back("/" + std::string{control});
  }
  for (const char* odd : {"//v1/completions",
                          "/v1//completions",
                          "/./v1/completions",
                          "/v1/./completions",
                          "/v1/x/../completions",
                          "/v1/completions/../../sleep",
                          "/v1/completions//",
                          "/v1/completions/x",
                          "/V1/completions",
                          "/v1/Completions",
                          "/v1/completion%73",
                          "/%76%31/completions",
                          "/v1%2fcompletions",
                          "/v1/completions%2f",
                          "/v1/completions%00",
                          "/v1/completions;x",
                          "/v1/completions/%2e%2e/%2e%2e/sleep",
                          "/%2e/sleep",
                          "/sl%65ep",
                          "//sleep",
                          "/health/../sleep",
                          "/v1/models/../sleep",
                          "/version/..%2fsleep"}) {
    paths.emplace_back(odd);
  }
  for (const std::string& path : paths) {
    for (const std::string& request : {post(path, R"({"model":"m","prompt":"x"})"), get(path)}) {
      const std::string answer = ask(service_->client_port(), request);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << request << answer;
      EXPECT_NE(answer.find("unknown_path"), std::string::npos) << request << answer;
    }
  }
  EXPECT_TRUE(worker.requests().empty());
}

// Law: a redirect of an engine is neither followed nor passed on: nobody learns where it points.
TEST_F(RouterService, RedirectsOfEnginesEndAtTheRouter) {
  FakeWorker elsewhere{streams({kDone})};
  const std::string place = "http://127.0.0.1:" + std::to_string(elsewhere.port()) + "/stolen";
  FakeWorker worker{[place](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    net::HttpResponse answer = net::text_response(307, "");
    answer.headers.add("Location", place);
    co_await exchange.respond(std::move(answer));
  }};
  serve({worker.port()});
  for (const std::string& request : {post("/v1/completions", R"({"model":"m","prompt":"x"})"),
                                     post("/v1/embeddings", R"({"model":"m","input":"x"})"), get("/version")}) {
    const std::string answer = ask(service_->client_port(), request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_EQ(answer.find("stolen"), std::string::npos) << answer;
  }
  EXPECT_TRUE(elsewhere.requests().empty());
}

// Law: a trusted listener's clients reach into engines of an aggregated fleet, as they would without the router; a
// header that the router sets itself is there once.
TEST_F(RouterService, TrustedClientsReachIntoEngines) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(200, "{}"));
  }};
  serve({worker.port()}, 2, [](ServeParams& params) { params.trusted = true; });
  const std::string body = R"({"model":"m","prompt":"x","kv_transfer_params":{"do_remote_decode":true},"rid":"r"})";
  ask(service_->client_port(), post("/v1/completions", body, "X-Data-Parallel-Rank: 1\r\n"));
  ask(service_->client_port(), post("/tokenize", R"({"model":"m","rid":"r"})", "X-Data-Parallel-Rank: 1\r\n"));
  ASSERT_EQ(worker.requests().size(), 2u);
  EXPECT_EQ(worker.requests()[0].body, body);
  for (const auto& request : worker.requests()) {
    EXPECT_EQ(request.headers.count("X-Data-Parallel-Rank"), 1u);
    EXPECT_EQ(request.headers.find("X-Data-Parallel-Rank"), "1");
  }
}

// Law: a worker outside of the allowed networks is never connected to, whoever named it.
TEST_F(RouterService, WorkersOutsideOfTheAllowedNetworksAreNeverAsked) {
  FakeWorker worker{streams({kDone})};
  serve({worker.port()}, 2, [](ServeParams& params) {
    params.worker_networks = {"10.0.0.0/8"};
    auto& url = params.fleets[0].groups[0].workers[0].url;
    EXPECT_FALSE(problems_of(params).empty());
    url = "http://localhost" + url.substr(url.rfind(':'));  // of a name nothing is known before it is looked up
  });
  const std::string answer = ask(service_->client_port(), post("/v1/completions", R"({"model":"m","prompt":"x"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 50")) << answer;
  EXPECT_TRUE(worker.requests().empty());
}

// Law: an alias changes the model's name on the way to the worker and nothing else.
TEST_F(RouterService, AliasIsReplacedByTheEnginesName) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(200, "{}"));
  }};
  serve({worker.port()}, 2,
        [](ServeParams& params) { params.fleets[0].models.push_back({.name = "real/m", .aliases = {"short"}}); });
  ask(service_->client_port(), post("/v1/completions", R"({"prompt":"x", "model" : "short","y":1e3})"));
  ASSERT_EQ(worker.requests().size(), 1u);
  EXPECT_EQ(worker.requests()[0].body, R"({"prompt":"x", "model" : "real/m","y":1e3})");
  const auto models = nlohmann::json::parse(body_of(ask(service_->client_port(), get("/v1/models/"))));
  EXPECT_EQ(models["data"][0]["id"], "real/m");
  EXPECT_EQ(models["data"][1]["id"], "short");
}

// Law: a fleet without a list of models answers with its engine's; a final slash is not passed on.
TEST_F(RouterService, EnginesListModelsWhereTheSettingsDoNot) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(200, R"({"object":"list","data":[{"id":"theirs"}]})"));
  }};
  serve({worker.port()});
  const auto models = nlohmann::json::parse(body_of(ask(service_->client_port(), get("/v1/models/"))));
  EXPECT_EQ(models["data"][0]["id"], "theirs");
  ask(service_->client_port(), get("/v1/models/?limit=1"));
  ASSERT_EQ(worker.requests().size(), 2u);
  EXPECT_EQ(worker.requests()[0].target, "/v1/models");
  EXPECT_EQ(worker.requests()[1].target, "/v1/models?limit=1");
}

// Law: a worker that cannot be reached, answers nonsense or breaks off gives an error that says so, never 200 and
// nothing; the slots come back.
TEST_F(RouterService, BrokenWorkersGiveErrors) {
  std::uint16_t closed_port = 0;
  {
    FakeWorker gone{streams({})};
    closed_port = gone.port();
  }
  serve({closed_port});
  const std::string refused = ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 502 ")) << refused;
  EXPECT_NE(refused.find("worker_unreachable"), std::string::npos);
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

TEST_F(RouterService, FailureBeforeTheFirstEventIsAStatus) {
  FakeWorker worker{streams({"data: {\"error\":{\"message\":\"no memory\",\"code\":500}}\n\n" + kDone})};
  serve({worker.port()});
  const std::string answer = ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

TEST_F(RouterService, EmptyAnswersAreErrors) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    if (exchange.request().body.find("stream\":true") == std::string::npos) {
      co_await exchange.respond(net::json_response(200, ""));
    } else {
      start_stream(exchange);
      co_await exchange.finish();
    }
  }};
  serve({worker.port()});
  EXPECT_TRUE(ask(service_->client_port(), post("/v1/completions", R"({"model":"m"})")).starts_with("HTTP/1.1 502 "));
  EXPECT_TRUE(ask(service_->client_port(), post("/v1/chat/completions", kStreamBody)).starts_with("HTTP/1.1 502 "));
}

// Law: a stream that breaks off ends with an error event and without the proper end of the body.
TEST_F(RouterService, BrokenStreamNeverLooksWhole) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    exchange.write(chunk("a") + chunk("b").substr(0, 10));
    co_await exchange.flushed();
  }};
  serve({worker.port()});
  const std::string answer = ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find(chunk("a")), std::string::npos);
  EXPECT_EQ(answer.find(chunk("b").substr(0, 10) + "\r"), std::string::npos) << "half an event was passed on";
  EXPECT_NE(answer.find("\"code\":\"worker_broken\""), std::string::npos) << answer;
  EXPECT_EQ(answer.find("[DONE]"), std::string::npos);
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
  EXPECT_TRUE(soon([&] { return ledger_is_empty() && final_lines() == 1; }));
}

// Law: an answer of the worker that is an error is the client's answer.
TEST_F(RouterService, WorkersErrorsArePassedOn) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(422, R"({"error":{"message":"too long"}})"));
  }};
  serve({worker.port()});
  const std::string answer = ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 422 ")) << answer;
  EXPECT_EQ(body_of(answer), R"({"error":{"message":"too long"}})");
}

// Law: every deadline ends a request with a status of its own.
TEST_F(RouterService, DeadlinesEndRequests) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    net::Event never{exchange.thread()};
    co_await never.wait();
  }};
  serve({worker.port()}, 1, [](ServeParams& params) {
    params.timeouts.first_byte_ms = 300;
    params.timeouts.admission_ms = 20;
  });
  auto first = std::async(std::launch::async,
                          [&] { return ask(service_->client_port(), post("/v1/completions", R"({"model":"m"})")); });
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 1; }));
  const std::string second = ask(service_->client_port(), post("/v1/completions", R"({"model":"m"})"));
  EXPECT_TRUE(second.starts_with("HTTP/1.1 504 ")) << second;
  EXPECT_NE(second.find("admission_timeout"), std::string::npos);
  EXPECT_NE(second.find("x-should-retry: false"), std::string::npos);
  EXPECT_TRUE(first.get().starts_with("HTTP/1.1 504 "));
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

TEST_F(RouterService, FullQueueIsRefused) {
  FakeWorker worker{hangs_after("")};
  serve({worker.port()}, 1, [](ServeParams& params) { params.limits.waiting_requests = 1; });
  RawClient running{service_->client_port()};
  running.send(post("/v1/completions", R"({"model":"m"})"));
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 1; }));
  RawClient waiting{service_->client_port()};
  waiting.send(post("/v1/completions", R"({"model":"m"})"));
  EXPECT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  const std::string refused = ask(service_->client_port(), post("/v1/completions", R"({"model":"m"})"));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 ")) << refused;
}

// Law: draining fails readiness, lets running requests end, and says when they have.
TEST_F(RouterService, DrainWaitsForRunningRequests) {
  std::atomic<bool> open{false};
  FakeWorker worker{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    net::Event tick{exchange.thread()};
    while (!open) co_await tick.wait(std::chrono::steady_clock::now() + 1ms);
    co_await exchange.respond(net::json_response(200, "{}"));
  }};
  serve({worker.port()});
  EXPECT_TRUE(ask(service_->admin_port(), get("/health/ready")).starts_with("HTTP/1.1 200 "));
  auto running = std::async(std::launch::async,
                            [&] { return ask(service_->client_port(), post("/v1/completions", R"({"model":"m"})")); });
  EXPECT_TRUE(soon([&] { return worker.requests().size() == 1; }));
  EXPECT_FALSE(service_->drain(1ms));
  EXPECT_TRUE(ask(service_->admin_port(), get("/health/ready")).starts_with("HTTP/1.1 503 "));
  open = true;
  EXPECT_TRUE(service_->drain(5s));
  EXPECT_TRUE(running.get().starts_with("HTTP/1.1 200 "));
}

// Law: a router that stops before its requests have ended tells their clients, and none is told that its answer is
// whole.
TEST_F(RouterService, WhoIsCutOffByTheEndOfTheRouterIsTold) {
  FakeWorker worker{hangs_after(chunk("a"))};
  serve({worker.port()}, 1);
  RawClient streaming{service_->client_port()};
  streaming.send(post("/v1/chat/completions", kStreamBody));
  streaming.read_until(chunk("a"));
  RawClient waiting{service_->client_port()};
  waiting.send(post("/v1/completions", R"({"model":"m"})"));
  ASSERT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  service_.reset();
  const std::string cut = streaming.read_to_end();
  EXPECT_NE(cut.find("router_stopping"), std::string::npos) << cut;
  EXPECT_EQ(cut.find("[DONE]"), std::string::npos);
  EXPECT_FALSE(cut.ends_with("0\r\n\r\n"));
  const std::string refused = waiting.read_to_end();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
  EXPECT_NE(refused.find("router_stopping"), std::string::npos);
  EXPECT_NE(refused.find("Retry-After"), std::string::npos);
  EXPECT_EQ(final_lines(), 2u);
  EXPECT_TRUE(sink_->has("outcome=rejected status=200") && sink_->has("outcome=rejected status=503"));
}

// Law: a redirect of an engine is neither followed nor passed on.
TEST_F(RouterService, RedirectsStayInside) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    net::HttpResponse redirect{.status = 307, .headers = {}, .body = {}};
    redirect.headers.add("Location", "http://elsewhere/v1/completions");
    co_await exchange.respond(std::move(redirect));
  }};
  serve({worker.port()}, 4, [](ServeParams& params) { params.retries.most = 0; });
  for (const std::string_view path : {"/v1/completions", "/v1/embeddings"}) {
    const std::string answer = ask(service_->client_port(), post(path, R"({"model":"m"})"));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_EQ(answer.find("Location"), std::string::npos) << answer;
  }
  EXPECT_TRUE(sink_->has("status 307"));
}

// Law: with one thread that decides and carries connections, everything works the same.
TEST_F(RouterService, OneThreadDoesAll) {
  FakeWorker worker{streams({chunk("a") + kFinish + kUsage + kDone})};
  serve({worker.port()}, 1, [](ServeParams& params) { params.io_threads = 1; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(unchunked(ask(service_->client_port(), post("/v1/chat/completions", kStreamBody))),
              chunk("a") + kFinish + kDone);
  }
  EXPECT_TRUE(soon([&] { return ledger_is_empty() && final_lines() == 3; }));
}

// Law: requests cancelled at random moments each leave one final line and nothing in the ledger.
TEST_F(RouterService, RandomCancelsLeaveOneLineEach) {
  FakeWorker worker{[](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    net::Event tick{exchange.thread()};
    for (int i = 0; i < 5; ++i) {
      co_await tick.wait(std::chrono::steady_clock::now() + 1ms);
      exchange.write(chunk("t"));
    }
    exchange.write(kFinish + kDone);
    co_await exchange.finish();
  }};
  serve({worker.port()}, 3, [](ServeParams& params) { params.fleets[0].policy.name = "least_tokens"; });
  constexpr std::size_t kRequests = 150;
  std::mt19937_64 random{5};
  for (std::size_t i = 0; i < kRequests; ++i) {
    RawClient client{service_->client_port()};
    client.send(post("/v1/chat/completions", kStreamBody));
    switch (random() % 4) {
      case 0:
        break;
      case 1:
        client.read_until("\"t\"");
        break;
      case 2:
        client.read_until("finish_reason");
        break;
      default:
        client.read_to_end();
    }
    client.close();
  }
  EXPECT_TRUE(soon([&] { return final_lines() == kRequests; })) << final_lines();
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

// Law: once a fleet's events are seen to carry several tokens each, workers are asked for usage in every event, and the
// client gets the stream as it would be without.
TEST_F(RouterService, UsageInEventsIsAskedForWhereNeededAndTakenOut) {
  const auto with_usage = [](const std::string& event, int tokens) {
    std::string out = event;
    return out.insert(out.rfind('}'), R"(,"usage":{"prompt_tokens":9,"completion_tokens":)" + std::to_string(tokens) +
                                          R"(,"prompt_tokens_details":{"cached_tokens":1}})");
  };
  const std::string usage = with_usage("data: {\"id\":\"c\",\"choices\":[]}\n\n", 16);
  std::atomic<int> streams_served{0};
  FakeWorker worker{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    const bool first = streams_served++ == 0;
    start_stream(exchange);
    exchange.write(first ? chunk("a") + chunk("b") + kFinish
                         : with_usage(chunk("a"), 8) + with_usage(chunk("b"), 16) + with_usage(kFinish, 16));
    exchange.write(usage + kDone);
    co_await exchange.finish();
  }};
  serve({worker.port()});
  const std::string expected = chunk("a") + chunk("b") + kFinish + kDone;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(unchunked(ask(service_->client_port(), post("/v1/chat/completions", kStreamBody))), expected);
  }
  ASSERT_EQ(worker.requests().size(), 2u);
  EXPECT_EQ(worker.requests()[0].body.find("continuous_usage_stats"), std::string::npos);
  EXPECT_NE(worker.requests()[1].body.find(R"("stream_options":{"include_usage":true,"continuous_usage_stats":true}})"),
            std::string::npos)
      << worker.requests()[1].body;
  // Who asks for it gets it.
  const std::string body =
      R"({"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}})";
  EXPECT_EQ(unchunked(ask(service_->client_port(), post("/v1/chat/completions", body))),
            with_usage(chunk("a"), 8) + with_usage(chunk("b"), 16) + with_usage(kFinish, 16) + usage + kDone);
  EXPECT_EQ(worker.requests()[2].body, body);
}

TEST_F(RouterService, TokenProgressIsAsConfigured) {
  for (const char* mode : {"events", "usage"}) {
    FakeWorker worker{streams({chunk("a") + kFinish + kUsage + kDone})};
    serve({worker.port()}, 4, [mode](ServeParams& params) { params.fleets[0].token_progress = mode; });
    for (int i = 0; i < 2; ++i) ask(service_->client_port(), post("/v1/chat/completions", kStreamBody));
    const bool asked = worker.requests().at(1).body.find("continuous_usage_stats") != std::string::npos;
    EXPECT_EQ(asked, mode == std::string_view{"usage"});
    service_.reset();
  }
}

// Law: wherever the network cuts a stream, the client gets the same bytes and the same tokens are counted.
TEST_F(RouterService, CutsOfTheNetworkChangeNothing) {
  const std::string whole = ": hello\n\n" + chunk("a\\u00e9") + chunk("b") + kFinish + kUsage + kDone;
  std::atomic<std::size_t> cut{0};
  FakeWorker worker{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    const std::size_t at = ++cut;
    exchange.write(std::string_view{whole}.substr(0, at));
    co_await exchange.flushed();
    // The rest in a turn of the loop of its own.
    net::Event tick{exchange.thread()};
    co_await tick.wait(std::chrono::steady_clock::now());
    exchange.write(std::string_view{whole}.substr(at));
    co_await exchange.finish();
  }};
  serve({worker.port()});
  const std::string expected = ": hello\n\n" + chunk("a\\u00e9") + chunk("b") + kFinish + kDone;
  for (std::size_t i = 1; i < whole.size(); ++i) {
    ASSERT_EQ(unchunked(ask(service_->client_port(), post("/v1/chat/completions", kStreamBody))), expected) << i;
  }
  EXPECT_TRUE(soon([&] { return final_lines() == whole.size() - 1; }));
  EXPECT_NE(metrics().find("balanceroute_stream_tokens_total " + std::to_string(2 * (whole.size() - 1)) + "\n"),
            std::string::npos);
  EXPECT_TRUE(soon([&] { return ledger_is_empty(); }));
}

// Law: a policy that binds before the pool serves too.
TEST_F(RouterService, BypassPolicyServes) {
  FakeWorker first{streams({chunk("a") + kFinish + kUsage + kDone})};
  FakeWorker second{streams({chunk("a") + kFinish + kUsage + kDone})};
  serve({first.port(), second.port()}, 1, [](ServeParams& params) { params.fleets[0].policy.name = "br_0_bypass"; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(unchunked(ask(service_->client_port(), post("/v1/chat/completions", kStreamBody))),
              chunk("a") + kFinish + kDone);
  }
  EXPECT_EQ(ledger()["policy"], "br_0_bypass");
}

}  // namespace
}  // namespace balanceroute::proxy
