// Clients with keys before the whole router on real sockets: who is let in, who goes first, and what engines see of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "proxy/api_keys.hpp"
#include "proxy/service.hpp"
#include "support/log_lines.hpp"
#include "support/raw_client.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::body_of;
using testing_support::http_exchange;
using testing_support::http_request;
using testing_support::LogLines;
using testing_support::RawClient;
using testing_support::soon;

// An engine that keeps what it was sent, in order, and answers once it is told to.
class HoldingEngine {
 public:
  HoldingEngine() {
    port_ = *server_.listen("127.0.0.1", 0);
    threads_.start();
  }
  ~HoldingEngine() {
    server_.stop();
    threads_.stop();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<net::HttpRequest> requests() {
    const std::scoped_lock lock{mutex_};
    return requests_;
  }
  // The "user" of each completion, in the order in which they came.
  std::string order() {
    std::string users;
    for (const net::HttpRequest& request : requests()) {
      const auto body = nlohmann::json::parse(request.body, nullptr, false);
      if (body.is_object() && body.contains("user")) users += body["user"].get<std::string>();
    }
    return users;
  }
  // From now on answers come at once, to those that wait too.
  void open() {
    threads_.at(0).call([this] { set_open(true); });
  }
  void hold() {
    threads_.at(0).call([this] { set_open(false); });
  }

 private:
  void set_open(bool open) {
    open_ = open;
    for (net::Event* one : waiting_) {
      if (open) one->set();
    }
  }

  net::asio::awaitable<void> answer(net::HttpExchange& exchange) {
    {
      const std::scoped_lock lock{mutex_};
      requests_.push_back(exchange.request());
    }
    if (!open_) {
      net::Event opened{exchange.thread()};
      const auto place = waiting_.insert(waiting_.end(), &opened);
      const auto leave = [this, place](const net::Event*) { waiting_.erase(place); };
      const std::unique_ptr<net::Event, decltype(leave)> at_end{&opened, leave};
      co_await opened.wait();
    }
    co_await exchange.respond(
        net::json_response(200, R"({"object":"list","data":[],"kv_transfer_params":{"remote_engine_id":"e"},)"
                                R"("usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})"));
  }

  std::mutex mutex_;
  std::vector<net::HttpRequest> requests_;
  bool open_ = true;
  std::list<net::Event*> waiting_;
  net::SteadyClock clock_;
  net::IoThreads threads_{1, "engine", clock_};
  net::HttpServer server_{threads_, {}, [this](net::HttpExchange& exchange) { return answer(exchange); }};
  std::uint16_t port_ = 0;
};

// The secret of a name in these tests.
std::string key_of(std::string_view name) {
  return "br-secret-of-" + std::string{name};
}
std::string hash_of(std::string_view name) {
  return hex_of(sha256_of(key_of(name)));
}
std::string bearer(std::string_view name) {
  return "Authorization: Bearer " + key_of(name) + "\r\n";
}

class ApiKeysTest : public testing::Test {
 protected:
  ApiKeysTest() : keys_file_{testing::TempDir() + "/br-keys-" + std::to_string(::getpid()) + ".yaml"} {
    params_.health.interval_ms = 0;  // the engine sees nothing but what the test sends
  }
  ~ApiKeysTest() override {
    service_.reset();
    std::filesystem::remove(keys_file_);
  }

  // Entries as `name: more settings`, in the order given.
  void write_keys(const std::vector<std::pair<std::string, std::string>>& entries) const {
    std::ofstream file{keys_file_, std::ios::trunc};
    file << "keys:\n";
    for (const auto& [name, more] : entries) {
      file << "  - {name: " << name << ", sha256: " << hash_of(name) << (more.empty() ? "" : ", ") << more << "}\n";
    }
  }

  void serve(std::int64_t slots) {
    params_.listen = "127.0.0.1:0";
    params_.admin.listen = "127.0.0.1:0";
    params_.keys.file = keys_file_;
    params_.io_threads = 2;
    params_.fleets.resize(1);
    params_.fleets[0].policy.name = "least_tokens";
    params_.fleets[0].groups.resize(1);
    params_.fleets[0].groups[0].name = "g";
    params_.fleets[0].groups[0].slots = slots;
    params_.fleets[0].groups[0].workers.push_back({.url = engine_.url()});
    ASSERT_EQ(problems_of(params_), std::vector<std::string>{});
    auto started = Service::start(params_, std::make_shared<spdlog::logger>("test", log_));
    ASSERT_TRUE(started) << started.error();
    service_ = std::move(*started);
  }

  std::string ask(std::string_view method, std::string_view path, std::string_view headers,
                  std::string_view body = "") const {
    return http_exchange(service_->client_port(), http_request(method, path, body, headers));
  }
  std::string complete(std::string_view name) const {
    return ask("POST", "/v1/completions", bearer(name), R"({"model":"m","prompt":"x"})");
  }
  // A completion that the test does not wait for. The engine sees the user.
  RawClient& begin(std::string_view name, char user, int sequences = 1) {
    RawClient& client = clients_.emplace_back(service_->client_port());
    const nlohmann::json body{{"model", "m"}, {"prompt", "x"}, {"user", std::string{user}}, {"n", sequences}};
    client.send(http_request("POST", "/v1/completions", body.dump(), bearer(name)));
    return client;
  }
  nlohmann::json fleet() const {
    return nlohmann::json::parse(body_of(http_exchange(service_->admin_port(), "GET", "/debug/ledger")))["fleets"][0];
  }
  nlohmann::json tenant(std::string_view name) const {
    const auto all = fleet()["tenants"];
    for (const auto& one : all) {
      if (one["name"] == name) return one;
    }
    return nullptr;
  }

  std::string keys_file_;
  HoldingEngine engine_;
  std::shared_ptr<LogLines> log_ = std::make_shared<LogLines>();
  ServeParams params_;
  std::unique_ptr<Service> service_;
  std::list<RawClient> clients_;
};

// Law: where keys are set, what reaches engines or tells of them needs one; health and metrics do not. Who is refused
// learns whether the key was missing or wrong, in the words of the API that was asked.
TEST_F(ApiKeysTest, ARequestNeedsAKnownKey) {
  write_keys({{"alice", ""}, {"bob", ""}});
  serve(4);
  const std::vector<std::pair<std::string, std::string>> guarded{
      {"POST", "/v1/completions"}, {"POST", "/v1/chat/completions"}, {"POST", "/v1/responses"},
      {"POST", "/v1/messages"},    {"POST", "/v1/embeddings"},       {"POST", "/tokenize"},
      {"GET", "/v1/models"},       {"GET", "/v1/models/"},           {"GET", "/version"}};
  const std::string body = R"({"model":"m","prompt":"x","messages":[],"input":"x"})";
  for (const auto& [method, path] : guarded) {
    const std::string_view sent = method == "POST" ? std::string_view{body} : "";
    const std::string missing = ask(method, path, "", sent);
    EXPECT_THAT(missing, StartsWith("HTTP/1.1 401 ")) << path;
    EXPECT_THAT(missing, HasSubstr("\r\nWWW-Authenticate: Bearer\r\n")) << path;
    EXPECT_THAT(ask(method, path, "Authorization: Bearer br-wrong\r\n", sent), StartsWith("HTTP/1.1 401 ")) << path;
    EXPECT_THAT(ask(method, path, "Authorization: Basic " + key_of("alice") + "\r\n", sent),
                StartsWith("HTTP/1.1 401 "))
        << path;
    EXPECT_THAT(ask(method, path, bearer("bob"), sent), StartsWith("HTTP/1.1 200 ")) << path;
  }
  const auto error = nlohmann::json::parse(body_of(ask("GET", "/v1/models", "")))["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["code"], "missing_api_key");
  const auto wrong = nlohmann::json::parse(body_of(ask("GET", "/v1/models", "authorization: bearer  x\r\n")))["error"];
  EXPECT_EQ(wrong["code"], "invalid_api_key");
  const auto anthropic = nlohmann::json::parse(body_of(ask("POST", "/v1/messages", "x-api-key: x\r\n", body)));
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "authentication_error");
  const std::string by_header = "x-api-key: " + key_of("alice") + "\r\n";
  EXPECT_THAT(ask("POST", "/v1/messages", by_header, body), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("POST", "/v1/completions", by_header, body), StartsWith("HTTP/1.1 401 "));
  for (const std::string_view path : {"/health", "/health/live", "/health/ready", "/metrics"}) {
    EXPECT_THAT(ask("GET", path, ""), StartsWith("HTTP/1.1 200 ")) << path;
  }
  EXPECT_THAT(ask("GET", "/metrics", ""), HasSubstr("\nbalanceroute_http_unauthorized_total 31\n"));
}

// Law: nobody sends a body before he is known: the answer does not wait for it, nor asks for it.
TEST_F(ApiKeysTest, BodiesOfStrangersAreNotRead) {
  write_keys({{"alice", ""}});
  serve(4);
  for (const std::string_view expect : {"", "Expect: 100-continue\r\n"}) {
    RawClient stranger{service_->client_port()};
    stranger.send("POST /v1/completions HTTP/1.1\r\nHost: test\r\n" + bearer("mallory") + std::string{expect} +
                  "Content-Length: 60000000\r\n\r\n{");
    EXPECT_THAT(stranger.read_until("}}"), StartsWith("HTTP/1.1 401 "));
    EXPECT_THAT(stranger.read_to_end(), HasSubstr("\r\nConnection: close\r\n"));
  }
  RawClient known{service_->client_port()};
  known.send("POST /v1/completions HTTP/1.1\r\nHost: test\r\n" + bearer("alice") +
             "Expect: 100-continue\r\nConnection: close\r\nContent-Length: 26\r\n\r\n");
  EXPECT_THAT(known.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  known.send(R"({"model":"m","prompt":"x"})");
  EXPECT_THAT(known.read_to_end(), HasSubstr("HTTP/1.1 200 "));
}

// Law: a key is seen by the router alone: not by engines, in log lines, metrics, settings or answers.
TEST_F(ApiKeysTest, KeysStayWhereTheyAre) {
  write_keys({{"alice", ""}});
  serve(4);
  const std::string both = bearer("alice") + "X-Api-Key: " + key_of("alice") + "\r\nX-Other: kept\r\n";
  const std::string body = R"({"model":"m","prompt":"x","messages":[],"input":"x"})";
  std::string told = ask("POST", "/v1/messages", both, body) + ask("POST", "/v1/embeddings", both, body) +
                     ask("GET", "/v1/models", both) + ask("GET", "/version", both) +
                     ask("POST", "/v1/completions", bearer("mallory"), body);
  ASSERT_EQ(engine_.requests().size(), 4U);
  for (const net::HttpRequest& request : engine_.requests()) {
    EXPECT_FALSE(request.headers.find("Authorization")) << request.target;
    EXPECT_FALSE(request.headers.find("X-Api-Key")) << request.target;
  }
  EXPECT_EQ(engine_.requests()[0].headers.find("X-Other"), "kept");
  for (const std::string_view page : {"/config", "/metrics", "/debug/ledger", "/workers"}) {
    told += http_exchange(service_->admin_port(), "GET", page);
  }
  ASSERT_TRUE(soon([&] { return log_->text().find("tenant=alice") != std::string::npos; }));
  told += log_->text();
  EXPECT_THAT(told, HasSubstr("unauthorized client=127.0.0.1 path=/v1/completions reason=invalid_api_key"));
  EXPECT_THAT(told, Not(HasSubstr("br-secret")));
  EXPECT_THAT(told, Not(HasSubstr(hash_of("alice"))));
}

// Law: without a keys file everybody is let in, and what a client sends for an engine to judge reaches it.
TEST_F(ApiKeysTest, WithoutAFileNobodyIsAsked) {
  keys_file_ = "";
  serve(4);
  EXPECT_THAT(complete("anybody"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(engine_.requests().at(0).headers.find("Authorization"), "Bearer " + key_of("anybody"));
}

// Law: of two keys that always have requests waiting each gets slots by its weight.
TEST_F(ApiKeysTest, SlotsAreSharedByWeight) {
  write_keys({{"heavy", "weight: 3"}, {"light", ""}});
  serve(1);
  engine_.hold();
  begin("light", '-');
  ASSERT_TRUE(soon([&] { return engine_.order() == "-"; }));
  for (int i = 0; i < 24; ++i) {
    begin("light", 'l');
    begin("heavy", 'h');
  }
  ASSERT_TRUE(soon([&] { return fleet()["requests_waiting"] == 48; }));
  engine_.open();
  ASSERT_TRUE(soon([&] { return engine_.order().size() == 49; }));
  const std::string order = engine_.order().substr(1);
  for (std::size_t served = 4; served <= 32; served += 4) {
    const auto heavy = std::ranges::count(order.substr(0, served), 'h');
    EXPECT_NEAR(static_cast<double>(heavy), 0.75 * static_cast<double>(served), 1.5) << order;
  }
}

// Law: a key's quota bounds its sequences on workers, whatever is free beside; others are not held up by it. What could
// never fit is refused at once.
TEST_F(ApiKeysTest, QuotasHold) {
  write_keys({{"bounded", "max_sequences: 2"}, {"free", ""}});
  serve(8);
  engine_.hold();
  for (int i = 0; i < 4; ++i) begin("bounded", 'b');
  ASSERT_TRUE(soon([&] { return tenant("bounded")["parked_requests"] == 2; }));
  for (int i = 0; i < 3; ++i) begin("free", 'f');
  ASSERT_TRUE(soon([&] { return engine_.order().size() == 5; })) << engine_.order();
  EXPECT_EQ(std::ranges::count(engine_.order(), 'b'), 2);
  EXPECT_EQ(tenant("bounded")["active_sequences"], 2);
  EXPECT_THAT(http_exchange(service_->admin_port(), "GET", "/metrics"),
              HasSubstr("balanceroute_tenant_parked_requests{fleet=\"default\",tenant=\"bounded\"} 2\n"));
  const std::string refused = begin("bounded", 'x', 3).read_to_end();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(refused, HasSubstr("exceeds_quota"));
  engine_.open();
  EXPECT_TRUE(soon([&] { return fleet()["requests_live"] == 0; }));
  EXPECT_EQ(engine_.order().substr(5), "bb");
  EXPECT_EQ(tenant("bounded")["active_sequences"], 0);
}

// Law: the requests of a higher class go first, whoever came first.
TEST_F(ApiKeysTest, AHigherClassGoesFirst) {
  write_keys({{"batch", "priority: -1"}, {"plain", ""}, {"urgent", "priority: 5"}});
  serve(1);
  engine_.hold();
  begin("plain", '-');
  ASSERT_TRUE(soon([&] { return engine_.order() == "-"; }));
  for (int i = 0; i < 3; ++i) begin("batch", 'b');
  for (int i = 0; i < 3; ++i) begin("plain", 'p');
  for (int i = 0; i < 3; ++i) begin("urgent", 'u');
  ASSERT_TRUE(soon([&] { return fleet()["requests_waiting"] == 9; }));
  engine_.open();
  ASSERT_TRUE(soon([&] { return engine_.order().size() == 10; }));
  EXPECT_EQ(engine_.order(), "-uuupppbbb");
}

// Law: another keys file holds for requests that come then; those of a key that is gone end as they would have, and
// count until they do.
TEST_F(ApiKeysTest, AnotherFileHoldsForWhatComes) {
  write_keys({{"old", "max_sequences: 1"}, {"kept", "max_sequences: 1"}});
  serve(8);
  engine_.hold();
  RawClient& running = begin("old", 'o');
  RawClient& parked = begin("old", 'o');
  begin("kept", 'k');
  begin("kept", 'k');
  ASSERT_TRUE(soon([&] { return engine_.order().size() == 2 && fleet()["requests_waiting"] == 2; }));
  write_keys({{"kept", "max_sequences: 2"}, {"fresh", ""}});
  const auto changed = service_->reload(params_, {});
  ASSERT_TRUE(changed) << changed.error();
  EXPECT_THAT(*changed, testing::ElementsAre("key kept (changed)", "key fresh (new)", "key old (removed)"));
  ASSERT_TRUE(soon([&] { return engine_.order().size() == 3; }));
  EXPECT_EQ(engine_.order().back(), 'k');
  EXPECT_THAT(complete("old"), StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(tenant("old")["active_sequences"], 1);
  EXPECT_EQ(tenant("old")["parked_requests"], 1);
  engine_.open();
  EXPECT_THAT(running.read_to_end(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(parked.read_to_end(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(complete("fresh"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(soon([&] { return fleet()["requests_live"] == 0 && tenant("old")["active_sequences"] == 0; }));
}

// Law: a faulty file changes nothing, and the router that is started with one does not start.
TEST_F(ApiKeysTest, AFaultyFileIsRefusedWhole) {
  write_keys({{"alice", ""}});
  serve(4);
  std::ofstream{keys_file_, std::ios::trunc} << "keys:\n  - {name: alice, sha256: " << key_of("alice") << "}\n";
  params_.log_level = "debug";
  const auto changed = service_->reload(params_, {});
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error(),
              HasSubstr("nothing was changed: keys.file: " + keys_file_ + ": keys[0].sha256: expected"));
  EXPECT_THAT(changed.error(), Not(HasSubstr("br-secret")));
  EXPECT_THAT(complete("alice"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(complete("bob"), StartsWith("HTTP/1.1 401 "));
  EXPECT_FALSE(Service::start(params_, std::make_shared<spdlog::logger>("test", log_)));
}

// Law: a key's requests are bounded at once and by the minute; who is refused is told when to come back, in the words
// of the API that was asked, and others are let in.
TEST_F(ApiKeysTest, LimitsOfAKeyHold) {
  write_keys({{"few", "max_requests: 2"}, {"slow", "requests_per_minute: 3"}});
  serve(8);
  engine_.hold();
  begin("few", 'f');
  begin("few", 'f');
  ASSERT_TRUE(soon([&] { return engine_.order() == "ff"; }));
  const std::string refused = complete("few");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(refused, HasSubstr("\r\nRetry-After: 1\r\n"));
  const auto error = nlohmann::json::parse(body_of(refused))["error"];
  EXPECT_EQ(error["type"], "rate_limit_error");
  EXPECT_EQ(error["code"], "rate_limit_exceeded");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("max_requests"));
  engine_.open();
  ASSERT_TRUE(soon([&] { return complete("few").starts_with("HTTP/1.1 200 "); }));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(complete("slow"), StartsWith("HTTP/1.1 200 "));
  const std::string late = ask("POST", "/v1/messages", bearer("slow"), "{}");
  EXPECT_THAT(late, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(late, testing::ContainsRegex("\r\nRetry-After: (59|60)\r\n"));
  EXPECT_EQ(nlohmann::json::parse(body_of(late))["error"]["type"], "rate_limit_error");
  EXPECT_THAT(complete("few"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET", "/metrics", ""),
              HasSubstr("balanceroute_tenant_limited_total{limit=\"requests_per_minute\",tenant=\"slow\"} 1\n"));
  EXPECT_THAT(log_->text(), HasSubstr("limited client=127.0.0.1 tenant=slow path=/v1/messages limit=requests_per_min"));
}

// Law: the engines' own key takes the place of what clients send, on every way to them, with keys and without; another
// content of its file holds after a reload.
TEST_F(ApiKeysTest, EnginesSeeTheirOwnKey) {
  const std::string file = keys_file_ + ".engine";
  std::ofstream{file} << "engine-secret\n";
  params_.fleets.resize(1);
  params_.fleets[0].engine_key.file = file;
  write_keys({{"alice", ""}});
  serve(4);
  const std::string body = R"({"model":"m","prompt":"x","input":"x"})";
  ask("POST", "/v1/completions", bearer("alice"), body);
  ask("POST", "/v1/embeddings", bearer("alice"), body);
  ask("GET", "/v1/models", bearer("alice"));
  for (const net::HttpRequest& request : engine_.requests()) {
    EXPECT_EQ(request.headers.find("Authorization"), "Bearer engine-secret") << request.target;
    EXPECT_EQ(request.headers.count("Authorization"), 1U);
  }
  std::ofstream{file} << "two words";
  const auto refused = service_->reload(params_, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), AllOf(HasSubstr("fleets[0].engine_key.file = "), Not(HasSubstr("two words"))));
  std::ofstream{file} << "other-secret";
  const auto changed = service_->reload(params_, {});
  ASSERT_TRUE(changed) << changed.error();
  EXPECT_THAT(*changed, testing::ElementsAre("engine key of fleet default"));
  ask("POST", "/v1/completions", bearer("alice"), body);
  EXPECT_EQ(engine_.requests().at(3).headers.find("Authorization"), "Bearer other-secret");
  EXPECT_THAT(http_exchange(service_->admin_port(), "GET", "/config") + log_->text(), Not(HasSubstr("-secret")));
  std::filesystem::remove(file);
}

// Law: probes bring the engines' key too.
TEST_F(ApiKeysTest, ProbesBringTheEnginesKey) {
  ::setenv("BR_TEST_ENGINE_KEY", "engine-secret", 1);
  params_.fleets.resize(1);
  params_.fleets[0].engine_key.variable = "BR_TEST_ENGINE_KEY";
  keys_file_ = "";
  params_.health.interval_ms = 1'000;
  serve(4);
  ASSERT_TRUE(soon([&] { return engine_.requests().size() >= 2; }));
  ask("POST", "/v1/completions", bearer("anybody"), R"({"model":"m","prompt":"x"})");
  std::set<std::string> paths;
  for (const net::HttpRequest& request : engine_.requests()) {
    paths.insert(request.target);
    EXPECT_EQ(request.headers.find("Authorization"), "Bearer engine-secret") << request.target;
  }
  EXPECT_THAT(paths, testing::ElementsAre("/health", "/metrics", "/v1/completions"));
  ::unsetenv("BR_TEST_ENGINE_KEY");
}

// A fleet whose prompts another engine computes.
class PrefilledKeysTest : public ApiKeysTest {
 protected:
  PrefilledKeysTest() {
    params_.fleets.resize(1);
    params_.fleets[0].dialect = "vllm_nixl";
    params_.fleets[0].prefill.instances.push_back({.url = prefill_.url()});
  }
  ~PrefilledKeysTest() override { service_.reset(); }

  HoldingEngine prefill_;
};

// Law: where requests wait for a prefill engine, they do so in the order of their classes too.
TEST_F(PrefilledKeysTest, AHigherClassIsPrefilledFirst) {
  write_keys({{"batch", "priority: -1"}, {"plain", ""}, {"urgent", "priority: 5"}});
  params_.fleets[0].prefill.kv_high_water_tokens = 1;  // one prompt at a time
  serve(1);
  prefill_.hold();
  begin("batch", '-');
  ASSERT_TRUE(soon([&] { return prefill_.order() == "-"; }));
  for (int i = 0; i < 3; ++i) begin("batch", 'b');
  for (int i = 0; i < 3; ++i) begin("plain", 'p');
  for (int i = 0; i < 3; ++i) begin("urgent", 'u');
  ASSERT_TRUE(soon([&] { return fleet()["prefill"]["requests_waiting"] == 9; }));
  prefill_.open();
  ASSERT_TRUE(soon([&] { return prefill_.order().size() == 10; }));
  EXPECT_EQ(prefill_.order(), "-uuupppbbb");
  EXPECT_TRUE(soon([&] { return fleet()["requests_live"] == 0 && fleet()["prefill"]["requests_live"] == 0; }));
}

// Law: a key's quota holds before prefill, so that no KV waits for what may not be decoded yet; who leaves meanwhile
// leaves nothing behind.
TEST_F(PrefilledKeysTest, QuotasHoldBeforePrefill) {
  write_keys({{"bounded", "max_sequences: 1"}, {"free", ""}});
  serve(4);
  engine_.hold();
  begin("bounded", 'b');
  ASSERT_TRUE(soon([&] { return engine_.order() == "b"; }));
  for (int i = 0; i < 3; ++i) begin("bounded", 'b');
  ASSERT_TRUE(soon([&] { return tenant("bounded")["parked_requests"] == 3; }));
  clients_.back().close();
  ASSERT_TRUE(soon([&] { return tenant("bounded")["parked_requests"] == 2; }));
  for (int i = 0; i < 3; ++i) begin("free", 'f');
  ASSERT_TRUE(soon([&] { return engine_.order() == "bfff"; })) << engine_.order();
  EXPECT_EQ(prefill_.order(), "bfff");
  const std::string refused = begin("bounded", 'x', 2).read_to_end();
  EXPECT_THAT(refused, HasSubstr("exceeds_quota"));
  engine_.open();
  EXPECT_TRUE(soon([&] { return fleet()["requests_live"] == 0 && fleet()["prefill"]["requests_live"] == 0; }));
  EXPECT_EQ(prefill_.order(), "bfffbb");
}

}  // namespace
}  // namespace balanceroute::proxy
