// clocked_router.hpp - the whole router on real sockets and on a clock that the test moves.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/clock.hpp"
#include "proxy/service.hpp"
#include "support/log_lines.hpp"
#include "support/raw_client.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {

// A fleet of one group without a barrier; nothing is probed.
class ClockedRouter : public testing::Test {
 protected:
  using Change = std::function<void(ServeParams&)>;
  using Answer = std::future<std::string>;

  static constexpr std::string_view kChat = "/v1/chat/completions";
  static constexpr std::string_view kText = "/v1/completions";
  static inline const std::string kWhole = R"({"model":"m","prompt":"x"})";
  static inline const std::string kStream =
      R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})";

  static std::string url_at(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

  void serve(const std::vector<std::uint16_t>& workers, const Change& change = [](ServeParams&) {}) {
    ServeParams params;
    params.listen = "127.0.0.1:0";
    params.admin.listen = "127.0.0.1:0";
    params.io_threads = 2;
    params.health.interval_ms = 0;
    params.fleets.resize(1);
    params.fleets[0].barrier = false;
    params.fleets[0].policy.name = "round_robin";
    params.fleets[0].groups.resize(1);
    params.fleets[0].groups[0].name = "g";
    params.fleets[0].groups[0].slots = 4;
    for (const std::uint16_t port : workers) params.fleets[0].groups[0].workers.push_back({.url = url_at(port)});
    change(params);
    ASSERT_EQ(problems_of(params), std::vector<std::string>{});
    auto started = Service::start(params, std::make_shared<spdlog::logger>("test", log_), {}, &clock());
    ASSERT_TRUE(started) << started.error();
    service_ = std::move(*started);
  }

  // What the router reads.
  [[nodiscard]] virtual const net::Clock& clock() const { return clock_; }

  void pass(net::Duration time) {
    clock_.advance(time);
    service_->follow_clock();
  }
  // Whether it comes about while the clock stands.
  template <class Condition>
  bool soon(Condition condition) {
    return testing_support::soon([&] {
      service_->follow_clock();
      return condition();
    });
  }

  Answer ask_later(std::string_view path, const std::string& body) {
    std::packaged_task<std::string()> task{
        [port = service_->client_port(), request = testing_support::http_request("POST", path, body)] {
          return testing_support::http_exchange(port, request);
        }};
    Answer answer = task.get_future();
    clients_.emplace_back(std::move(task));
    return answer;
  }
  // The answer, while the clock goes on in steps.
  std::string of(Answer& answer, net::Duration step = std::chrono::milliseconds{1}) {
    while (answer.wait_for(std::chrono::microseconds{100}) != std::future_status::ready) pass(step);
    return answer.get();
  }
  std::string ask(std::string_view path, const std::string& body) {
    Answer answer = ask_later(path, body);
    return of(answer);
  }

  nlohmann::json ledger() { return admin_json("/debug/ledger")["fleets"][0]; }
  nlohmann::json worker(std::size_t at) { return admin_json("/workers")["workers"].at(at); }
  nlohmann::json admin_json(std::string_view path) {
    return nlohmann::json::parse(
        testing_support::body_of(testing_support::http_exchange(service_->admin_port(), "GET", path)));
  }
  // The value of a metric's only line with that beginning.
  double metric(const std::string& beginning) {
    const std::string page = testing_support::http_exchange(service_->admin_port(), "GET", "/metrics");
    const auto at = page.find("\n" + beginning);
    EXPECT_NE(at, std::string::npos) << beginning;
    return at == std::string::npos ? -1 : std::stod(page.substr(page.find(' ', at + 1 + beginning.size())));
  }
  bool all_is_given_back() {
    return soon([&] {
      const nlohmann::json state = ledger();
      return state["requests_live"] == 0 && state["leases_live"] == 0 && state["requests_waiting"] == 0;
    });
  }

  net::ManualClock clock_;
  std::shared_ptr<testing_support::LogLines> log_ = std::make_shared<testing_support::LogLines>();
  std::vector<std::jthread> clients_;  // go after the service, whose end is theirs
  std::unique_ptr<Service> service_;
};

// The status of an answer.
inline int status_in(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}

}  // namespace balanceroute::proxy
