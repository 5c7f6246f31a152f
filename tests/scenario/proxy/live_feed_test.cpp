// The stream of the router's state and the pages that show it, asked as a browser does.
#include <gtest/gtest.h>

#include <list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/raw_client.hpp"
#include "support/routed_fleet.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {
namespace {

using nlohmann::json;
using testing_support::body_of;
using testing_support::http_exchange;
using testing_support::http_request;
using testing_support::RawClient;
using testing_support::soon;

// A dashboard: reads the stream and keeps the state as it says.
class Watcher {
 public:
  explicit Watcher(std::uint16_t port) : client_{port} {
    client_.send("GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }

  // Reads one event; its name, or nothing if the stream has ended.
  std::string read() {
    const std::string& all = client_.read_from(read_, "\n\n");
    const auto begin = all.find("event: ", read_);
    const auto end = all.find("\n\n", begin);
    if (begin == std::string::npos || end == std::string::npos) return "";
    read_ = end + 2;
    const auto line_end = all.find('\n', begin);
    const std::string name = all.substr(begin + 7, line_end - begin - 7);
    const json message = json::parse(all.substr(line_end + 7, end - line_end - 7));
    if (name == "state") {
      state = message["state"];
      history = message["history"];
    } else {
      state.merge_patch(message["patch"]);
    }
    for (const json& one : message.value("decisions", json::array())) decisions.push_back(one);
    return name;
  }
  // Reads on until the state is as said; false if it never is.
  template <class Condition>
  bool read_until(Condition condition) {
    for (int events = 0; events < 200; ++events) {
      if (read().empty()) return false;
      if (condition()) return true;
    }
    return false;
  }
  const std::string& head() { return client_.read_until("\r\n\r\n"); }

  json state;
  json history;
  std::vector<json> decisions;

 private:
  RawClient client_;
  std::size_t read_ = 0;
};

class LiveFeedTest : public RoutedFleet {
 protected:
  std::string completion(int tokens) {
    return post("/v1/completions",
                R"({"model":"emulated","prompt":"tell me","stream":true,"max_tokens":)" + std::to_string(tokens) + "}");
  }
};

// Law: the state comes first and whole; what follows are changes that lead to what the admin paths say.
TEST_F(LiveFeedTest, ChangesLeadToTheStateThatOthersSee) {
  start(quick("aggregated"));
  Watcher watcher{service_->admin_port()};
  ASSERT_EQ(watcher.read(), "state");
  EXPECT_NE(watcher.head().find("Content-Type: text/event-stream"), std::string::npos);
  const json before = watcher.state["fleets"]["default"];
  EXPECT_EQ(before["admissions"], 0);
  EXPECT_EQ(before["groups"]["0"]["workers"], json::parse("[0, 1]"));
  EXPECT_EQ(before["workers"]["1"]["state"], "ready");

  completion(30);
  ASSERT_TRUE(watcher.read_until([&] { return watcher.state["requests"]["ok"] == 1; })) << watcher.state.dump(1);
  const json& fleet = watcher.state["fleets"]["default"];
  EXPECT_EQ(fleet["admissions"], 1);
  EXPECT_EQ(watcher.state["output_tokens"], 30);
  EXPECT_TRUE(watcher.read_until([&] { return fleet["groups"]["0"]["load_tokens"] == json::parse("[0, 0]"); }));
  EXPECT_GE(fleet["groups"]["0"]["steps"], 29);
  EXPECT_EQ(watcher.history["columns"]["default/0/envelope"][0], 0);
}

// Law: each decision is told once, with its reasons.
TEST_F(LiveFeedTest, DecisionsComeWithTheirReasons) {
  start(quick("aggregated"));
  completion(3);  // while nobody looks
  Watcher watcher{service_->admin_port()};
  ASSERT_EQ(watcher.read(), "state");
  ASSERT_EQ(watcher.decisions.size(), 1U);
  completion(3);
  completion(3);
  ASSERT_TRUE(watcher.read_until([&] { return watcher.decisions.size() >= 3; }));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(watcher.decisions[i]["serial"], i + 1);
  const json& last = watcher.decisions[2];
  EXPECT_GT(last["prompt_tokens"], 0);
  EXPECT_FALSE(last["stage"].get<std::string>().empty());
  EXPECT_TRUE(last.contains("runner_up")) << last;
}

// Law: what an operator does shows at everybody's.
TEST_F(LiveFeedTest, ADrainShowsAtEveryViewer) {
  start(quick("aggregated"));
  Watcher first{service_->admin_port()};
  Watcher second{service_->admin_port()};
  http_exchange(service_->admin_port(), "POST", "/workers/drain", R"({"id": 1})");
  for (Watcher* watcher : {&first, &second}) {
    EXPECT_TRUE(watcher->read_until([&] {
      const json& worker = watcher->state["fleets"]["default"]["workers"]["1"];
      return worker["state"] == "draining" && worker["drain_asked"] == true && worker["takes_requests"] == false;
    }));
  }
}

// Law: the prefill side is in the state where there is one.
TEST_F(LiveFeedTest, PrefillInstancesAreShown) {
  start(quick("vllm_nixl"));
  completion(3);
  Watcher watcher{service_->admin_port()};
  ASSERT_EQ(watcher.read(), "state");
  const json& prefill = watcher.state["fleets"]["default"]["prefill"];
  EXPECT_EQ(prefill["instances"].size(), 2U);
  EXPECT_EQ(prefill["instances"]["0"]["ready"], true);
  EXPECT_GT(prefill["pool_target_requests"], 0);
}

// Law: the stream, and nothing of the pages, needs the token.
TEST_F(LiveFeedTest, TheStreamNeedsTheToken) {
  start(quick("aggregated"), [](ServeParams& params) { params.admin.token = "secret"; });
  const std::uint16_t port = service_->admin_port();
  EXPECT_EQ(status_of(http_exchange(port, "GET", "/live")), 401);
  EXPECT_EQ(status_of(http_exchange(port, "GET", "/")), 200);
  RawClient client{port};
  client.send("GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_NE(client.read_until("event: state").find("200 OK"), std::string::npos);
}

// Law: so many may look, the next one is told; who leaves makes room.
TEST_F(LiveFeedTest, ThePlacesOfViewersAreLimited) {
  start(quick("aggregated"));
  std::list<Watcher> watchers;
  for (std::size_t i = 0; i < LiveFeed::kMostViewers; ++i) {
    EXPECT_EQ(watchers.emplace_back(service_->admin_port()).read(), "state");
  }
  EXPECT_EQ(status_of(http_exchange(service_->admin_port(), "GET", "/live")), 503);
  watchers.pop_back();
  EXPECT_TRUE(soon([this] { return Watcher{service_->admin_port()}.read() == "state"; }));
}

// Law: pages of others cannot do what the operator can.
TEST_F(LiveFeedTest, PagesOfOthersAreRefused) {
  start(quick("aggregated"));
  const auto answer = http_exchange(service_->admin_port(), http_request("POST", "/workers/drain", R"({"id": 0})",
                                                                         "Origin: http://evil.example\r\n"));
  EXPECT_EQ(status_of(answer), 403);
  EXPECT_NE(answer.find("foreign_page"), std::string::npos);
  EXPECT_EQ(ledger()["workers"][0]["state"], "ready");
}

// Law: the files of the dashboard come with their types, run nothing of others, and are not sent again unchanged.
TEST_F(LiveFeedTest, TheDashboardIsServed) {
  start(quick("aggregated"));
  const std::uint16_t port = service_->admin_port();
  const std::string page = http_exchange(port, "GET", "/");
  if (page.find("Content-Type: text/plain") != std::string::npos) GTEST_SKIP() << "built without the dashboard";
  EXPECT_NE(page.find("Content-Type: text/html; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(page.find("Content-Security-Policy: default-src 'none'; script-src 'self'"), std::string::npos);
  EXPECT_NE(page.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_NE(http_exchange(port, "GET", "/dashboard.js").find("Content-Type: text/javascript"), std::string::npos);
  EXPECT_NE(http_exchange(port, "GET", "/dashboard.css").find("Content-Type: text/css"), std::string::npos);
  EXPECT_NE(http_exchange(port, "GET", "/icon.svg").find("Content-Type: image/svg+xml"), std::string::npos);
  EXPECT_EQ(status_of(http_exchange(port, "POST", "/")), 405);

  const auto tag_begin = page.find("ETag: ") + 6;
  const std::string tag = page.substr(tag_begin, page.find("\r\n", tag_begin) - tag_begin);
  const std::string again = http_exchange(port, http_request("GET", "/", "", "If-None-Match: " + tag + "\r\n"));
  EXPECT_EQ(status_of(again), 304);
  EXPECT_EQ(body_of(again), "");
}

}  // namespace
}  // namespace balanceroute::proxy
