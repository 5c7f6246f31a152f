// Workers that come, go, fail and are sent away, behind the whole router on real sockets.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proxy/service.hpp"
#include "support/log_lines.hpp"
#include "support/raw_client.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing_support::body_of;
using testing_support::http_exchange;
using testing_support::LogLines;
using testing_support::RawClient;
using testing_support::soon;

// An engine whose pages the test writes, and which can die and come back at its address. A completion is answered with
// `status`, or held until the engine dies if that is 0.
class FakeEngine {
 public:
  FakeEngine() { revive(); }
  ~FakeEngine() { die(); }

  void revive() {
    threads_ = std::make_unique<net::IoThreads>(1, "engine", clock_);
    server_ = std::make_unique<net::HttpServer>(*threads_, net::ServerOptions{},
                                                [this](net::HttpExchange& exchange) { return answer(exchange); });
    port_ = *server_->listen("127.0.0.1", port_);
    threads_->start();
  }
  void die() {
    if (!server_) return;
    server_->stop();
    server_.reset();
    threads_->stop();
    threads_.reset();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void set_metrics(std::string page) {
    const std::scoped_lock lock{mutex_};
    metrics_ = std::move(page);
  }
  // Sequences that the engine says it runs and lets wait, and tokens it has generated since its start.
  void says(int running, int waiting, int tokens) {
    set_metrics("vllm:num_requests_running{engine=\"0\"} " + std::to_string(running) +
                "\nvllm:num_requests_waiting{engine=\"0\"} " + std::to_string(waiting) +
                "\nvllm:generation_tokens_total{engine=\"0\"} " + std::to_string(tokens) + "\n");
  }
  std::atomic<int> health{200};
  std::atomic<int> status{200};
  std::atomic<int> completions{0};

 private:
  net::asio::awaitable<void> answer(net::HttpExchange& exchange) {
    const std::string path{exchange.request().path()};
    if (path == "/health") {
      co_await exchange.respond(net::text_response(health, ""));
    } else if (path == "/metrics") {
      std::string page;
      {
        const std::scoped_lock lock{mutex_};
        page = metrics_;
      }
      co_await exchange.respond(net::text_response(page.empty() ? 404 : 200, page));
    } else if (status == 0) {
      ++completions;
      net::Event never{exchange.thread()};
      co_await never.wait();
    } else {
      ++completions;
      co_await exchange.respond(
          net::json_response(status, R"({"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})"));
    }
  }

  std::mutex mutex_;
  std::string metrics_;
  net::SteadyClock clock_;
  std::unique_ptr<net::IoThreads> threads_;
  std::unique_ptr<net::HttpServer> server_;
  std::uint16_t port_ = 0;
};

class MembershipTest : public testing::Test {
 protected:
  void serve(
      const std::vector<std::vector<std::string>>& groups, bool barrier = true,
      const std::function<void(ServeParams&)>& change = [](ServeParams&) {}) {
    ServeParams params;
    params.listen = "127.0.0.1:0";
    params.admin.listen = "127.0.0.1:0";
    params.io_threads = 2;
    params.health = {.interval_ms = 5, .unhealthy_after = 2, .healthy_after = 2, .hold_after = 2, .hold_ms = 30};
    params.fleets.resize(1);
    params.fleets[0].barrier = barrier;
    params.fleets[0].policy.name = "join_shortest_queue";
    for (const auto& urls : groups) {
      auto& group = params.fleets[0].groups.emplace_back();
      group.name = "g" + std::to_string(params.fleets[0].groups.size() - 1);
      group.slots = 8;
      for (const std::string& url : urls) group.workers.push_back({.url = url});
    }
    change(params);
    ASSERT_EQ(problems_of(params), std::vector<std::string>{});
    auto started = Service::start(params, std::make_shared<spdlog::logger>("test", log_));
    ASSERT_TRUE(started) << started.error();
    service_ = std::move(*started);
  }
  std::string admin(std::string_view method, std::string_view path, const nlohmann::json& body = nullptr) {
    return http_exchange(service_->admin_port(), method, path, body.is_null() ? "" : body.dump());
  }
  nlohmann::json workers() { return nlohmann::json::parse(body_of(admin("GET", "/workers")))["workers"]; }
  nlohmann::json worker(std::size_t at) { return workers().at(at); }
  std::string ask() {
    return http_exchange(service_->client_port(), "POST", "/v1/completions", R"({"model":"m","prompt":"x"})");
  }
  std::string ask_ready() { return http_exchange(service_->client_port(), "GET", "/health/ready"); }
  bool becomes(std::size_t at, std::string_view state) {
    return soon([&] { return worker(at)["state"] == state; });
  }

  std::shared_ptr<LogLines> log_ = std::make_shared<LogLines>();
  std::unique_ptr<Service> service_;
};

// Law: what a router says when it starts is true at once: every worker that is there takes requests.
TEST_F(MembershipTest, WorkersThatAnswerAreReadyAtTheStart) {
  FakeEngine engine;
  serve({{engine.url()}});
  EXPECT_EQ(worker(0)["state"], "ready");
  EXPECT_EQ(worker(0)["incarnation"], 0);
  EXPECT_TRUE(ask_ready().starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(log_->has("all 1 workers take requests"));
}

// Law: a worker that is not there yet stops nobody, not even under a barrier; it is picked up when it comes.
TEST_F(MembershipTest, StartsDegradedAndPicksWorkersUp) {
  FakeEngine here;
  FakeEngine late;
  late.die();
  serve({{here.url(), late.url()}});
  EXPECT_EQ(worker(1)["state"], "absent");
  EXPECT_NE(worker(1)["last_fault"].get<std::string>().find("connect to 127.0.0.1"), std::string::npos);
  EXPECT_TRUE(log_->has("starts degraded: 1 of 2 workers"));
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
  late.revive();
  EXPECT_TRUE(becomes(1, "ready"));
}

// Law: without any worker the router starts, says so, is not ready, and answers 503 until one comes.
TEST_F(MembershipTest, WithoutWorkersItWaitsForOne) {
  FakeEngine late;
  late.die();
  serve({{late.url()}});
  EXPECT_TRUE(log_->has("no decode worker takes requests"));
  EXPECT_TRUE(ask_ready().starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 503 "));
  late.revive();
  EXPECT_TRUE(becomes(0, "ready"));
  EXPECT_TRUE(ask_ready().starts_with("HTTP/1.1 200 "));
}

// Law: a worker that dies stops its group, which waits for it in every step, and no other; when it is back its leases
// of before are void and the group goes on.
TEST_F(MembershipTest, DeadWorkerStopsItsGroupUntilItIsBack) {
  FakeEngine dies;
  FakeEngine mate;
  FakeEngine other;
  serve({{dies.url(), mate.url()}, {other.url()}});
  dies.die();
  ASSERT_TRUE(becomes(0, "dead"));
  EXPECT_EQ(worker(1)["state"], "ready");
  EXPECT_EQ(worker(1)["takes_requests"], false);
  EXPECT_TRUE(log_->has("group g0 takes no requests: its workers wait for " + dies.url()));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(other.completions, 4);
  dies.revive();
  EXPECT_TRUE(becomes(0, "ready"));
  EXPECT_EQ(worker(0)["incarnation"], 1);
  EXPECT_EQ(worker(1)["takes_requests"], true);
}

// Law: a dead worker that will not come back is removed, and its group goes on without it.
TEST_F(MembershipTest, RemovingADeadWorkerFreesItsGroup) {
  FakeEngine dies;
  FakeEngine mate;
  serve({{dies.url(), mate.url()}});
  dies.die();
  ASSERT_TRUE(becomes(0, "dead"));
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(admin("DELETE", "/workers?url=" + dies.url()).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(workers().size(), 1u);
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
}

// Law: without a barrier a death concerns one worker.
TEST_F(MembershipTest, WithoutBarrierOthersGoOn) {
  FakeEngine dies;
  FakeEngine other;
  serve({{dies.url(), other.url()}}, false);
  dies.die();
  ASSERT_TRUE(becomes(0, "dead"));
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
}

// Law: an engine that fails its health page is dead too, though it takes connections.
TEST_F(MembershipTest, SickHealthPageIsDeath) {
  FakeEngine engine;
  serve({{engine.url()}});
  engine.health = 503;
  ASSERT_TRUE(becomes(0, "dead"));
  EXPECT_EQ(worker(0)["last_fault"], "GET /health: status 503");
  engine.health = 404;  // no such page: that is no sickness
  EXPECT_TRUE(becomes(0, "ready"));
}

// Law: a worker that answers probes but fails requests is held back while there are others, and tried again.
TEST_F(MembershipTest, WorkerThatFailsRequestsIsHeldBack) {
  FakeEngine bad;
  FakeEngine good;
  serve({{bad.url()}, {good.url()}}, false, [](ServeParams& params) {
    params.health.hold_ms = 3'600'000;
    params.retries.most = 0;
  });
  bad.status = 500;
  while (worker(0)["health"] != "held") ask();
  EXPECT_EQ(worker(0)["state"], "draining");
  EXPECT_EQ(bad.completions, 2);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(bad.completions, 2);
}

TEST_F(MembershipTest, HeldWorkerIsTriedAgain) {
  FakeEngine bad;
  FakeEngine good;
  serve({{bad.url()}, {good.url()}}, false);
  bad.status = 500;
  while (worker(0)["health"] != "held") ask();
  bad.status = 200;
  ASSERT_TRUE(becomes(0, "ready"));
  while (worker(0)["on_trial"] == true) ask();
  EXPECT_EQ(worker(0)["state"], "ready");
}

// Law: requests that fail at the only worker that is left do not close the router.
TEST_F(MembershipTest, LastWorkerIsNeverHeldBack) {
  FakeEngine engine;
  serve({{engine.url()}}, true, [](ServeParams& params) { params.retries.most = 0; });
  engine.status = 500;
  for (int i = 0; i < 10; ++i) ask();
  EXPECT_EQ(engine.completions, 10);
  EXPECT_EQ(worker(0)["state"], "ready");
}

// Law: a drained worker keeps what it runs, takes no more, and is ready again when told so. Commands may be repeated.
TEST_F(MembershipTest, DrainAndReady) {
  FakeEngine drained;
  FakeEngine other;
  serve({{drained.url()}, {other.url()}});
  for (int i = 0; i < 2; ++i) {
    const std::string answer = admin("POST", "/workers/drain", {{"url", drained.url()}});
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_EQ(nlohmann::json::parse(body_of(answer))["workers"][0]["state"], "draining");
  }
  for (int i = 0; i < 4; ++i) ask();
  EXPECT_EQ(drained.completions, 0);
  admin("POST", "/workers/ready", {{"id", 0}});
  EXPECT_EQ(worker(0)["state"], "ready");
  const std::string metrics = admin("GET", "/metrics");
  EXPECT_NE(metrics.find("rank=\"0\",state=\"draining\"} 1"), std::string::npos);
}

// Law: a drain outlives the death of its worker.
TEST_F(MembershipTest, DrainedWorkerComesBackDrained) {
  FakeEngine engine;
  serve({{engine.url()}});
  admin("POST", "/workers/drain", {{"url", engine.url()}});
  engine.die();
  ASSERT_TRUE(becomes(0, "dead"));
  engine.revive();
  EXPECT_TRUE(becomes(0, "draining"));
}

// Law: a worker that is removed leaves with its last request.
TEST_F(MembershipTest, RemovedWorkerLeavesWithItsLastRequest) {
  FakeEngine leaving;
  FakeEngine other;
  leaving.status = 0;
  serve({{leaving.url()}});
  RawClient client{service_->client_port()};
  client.send(testing_support::http_request("POST", "/v1/completions", R"({"model":"m","prompt":"x"})"));
  ASSERT_TRUE(soon([&] { return leaving.completions == 1; }));
  const auto added = admin("POST", "/workers", {{"group", "g0"}, {"url", other.url()}});
  EXPECT_TRUE(added.starts_with("HTTP/1.1 201 ")) << added;
  ASSERT_TRUE(becomes(1, "ready"));
  admin("DELETE", "/workers?url=" + leaving.url());
  EXPECT_EQ(worker(0)["state"], "draining");
  EXPECT_EQ(worker(0)["removing"], true);
  EXPECT_TRUE(ask().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(other.completions, 1);
  client.close();
  EXPECT_TRUE(soon([&] { return workers().size() == 1; }));
  EXPECT_EQ(worker(0)["id"], 1);  // ids are not given twice
  EXPECT_TRUE(admin("DELETE", "/workers?url=" + leaving.url()).starts_with("HTTP/1.1 404 "));
}

// Law: adding what is there changes nothing; what cannot be done is said.
TEST_F(MembershipTest, CommandsAreCheckedAndIdempotent) {
  FakeEngine engine;
  serve({{engine.url()}, {"http://127.0.0.1:1"}});
  EXPECT_TRUE(admin("POST", "/workers", {{"group", "g0"}, {"url", engine.url()}}).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(workers().size(), 2u);
  const auto refused = [&](const std::string& answer, int status, std::string_view message) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(status))) << answer;
    EXPECT_NE(answer.find(message), std::string::npos) << answer;
  };
  refused(admin("POST", "/workers", {{"group", "g9"}, {"url", engine.url()}}), 404, "has no group 'g9'");
  refused(admin("POST", "/workers", {{"group", "g1"}, {"url", engine.url()}}), 409, "already a worker of group 'g0'");
  refused(admin("POST", "/workers", {{"group", "g0"}, {"url", "127.0.0.1"}}), 400, "expected http://host:port");
  refused(admin("POST", "/workers", {{"group", "g0"}, {"urls", "x"}}), 400, "did you mean url?");
  refused(admin("POST", "/workers/drain", {{"url", "http://nobody:1"}}), 404, "has no worker url http://nobody:1");
  refused(admin("POST", "/workers/drain"), 400, "neither url nor id is given");
  refused(admin("DELETE", "/workers"), 400, "neither url nor id is given");
  refused(admin("PUT", "/workers"), 405, "GET, POST, DELETE");
  refused(admin("POST", "/workers/drain", {{"fleet", "f"}, {"id", 0}}), 404, "there is no fleet 'f'");
}

// Law: a group follows a file: what is new joins, what is gone leaves, and what cannot be read changes nothing.
TEST_F(MembershipTest, GroupFollowsAFile) {
  FakeEngine first;
  FakeEngine second;
  const std::string path = testing::TempDir() + "workers-" + first.url().substr(17) + ".yaml";
  const auto write = [&](const std::string& text) { std::ofstream{path, std::ios::trunc} << text; };
  write("workers: [{url: \"" + first.url() + "\"}]");
  serve(std::vector<std::vector<std::string>>(1), true, [&](ServeParams& params) {
    params.fleets[0].groups[0].discovery = {.source = "file", .file = path, .dns_name = "", .interval_ms = 10};
  });
  ASSERT_TRUE(soon([&] { return workers().size() == 1 && worker(0)["state"] == "ready"; }));
  write("workers: [{url: \"" + second.url() + "\"}]");
  ASSERT_TRUE(soon([&] { return workers().size() == 1 && worker(0)["url"] == second.url(); }));
  ASSERT_TRUE(becomes(0, "ready"));
  write("workers: [{urls: x}]");
  ASSERT_TRUE(soon([&] { return log_->has("did you mean url?"); }));
  EXPECT_EQ(worker(0)["url"], second.url());
  write("workers: []");
  ASSERT_TRUE(soon([&] { return log_->has("no worker was found; its workers stay as they are"); }));
  EXPECT_EQ(workers().size(), 1u);
  std::filesystem::remove(path);
}

// Law: with a token nobody without it changes or reads anything; whether the router is well stays open.
TEST_F(MembershipTest, TokenGuardsTheAdminListener) {
  FakeEngine engine;
  serve({{engine.url()}}, true, [](ServeParams& params) { params.admin.token = "s3cret"; });
  const auto with = [&](std::string_view header) {
    return http_exchange(service_->admin_port(), testing_support::http_request("GET", "/workers", "", header));
  };
  EXPECT_TRUE(with("").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(with("Authorization: Bearer s3cres\r\n").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(with("Authorization: Bearer s3cret2\r\n").starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(with("Authorization: Bearer s3cret\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(admin("GET", "/health/ready").starts_with("HTTP/1.1 200 "));
  const std::string config = http_exchange(
      service_->admin_port(), testing_support::http_request("GET", "/config", "", "Authorization: Bearer s3cret\r\n"));
  EXPECT_EQ(config.find("s3cret"), std::string::npos);
  EXPECT_NE(config.find("(set)"), std::string::npos);
}

// Law: an engine whose counters begin anew has nothing of before: what the ledger held there is void.
TEST_F(MembershipTest, RestartBetweenProbesIsSeen) {
  FakeEngine engine;
  engine.says(1, 0, 1000);
  engine.status = 0;
  serve({{engine.url()}});
  RawClient client{service_->client_port()};
  client.send(testing_support::http_request("POST", "/v1/completions", R"({"model":"m","prompt":"x"})"));
  ASSERT_TRUE(soon([&] { return worker(0)["sequences"] == 1; }));
  engine.says(0, 0, 10);
  ASSERT_TRUE(soon([&] { return worker(0)["incarnation"] == 1; }));
  EXPECT_EQ(worker(0)["sequences"], 0);
  EXPECT_EQ(worker(0)["state"], "ready");
}

// Law: sequences that came around the router take slots of the ledger, until they are gone.
TEST_F(MembershipTest, OutsideTrafficBecomesBackgroundLoad) {
  FakeEngine engine;
  engine.says(5, 1, 10);
  serve({{engine.url()}});
  EXPECT_TRUE(soon([&] { return worker(0)["background_sequences"] == 6; }));
  EXPECT_EQ(worker(0)["sequences"], 6);
  engine.says(0, 0, 20);
  EXPECT_TRUE(soon([&] { return worker(0)["background_sequences"] == 0; }));
  EXPECT_EQ(worker(0)["sequences"], 0);
  EXPECT_TRUE(log_->has("did not come through this router"));
}

}  // namespace
}  // namespace balanceroute::proxy
