// fleet_fixture.hpp - an emulated fleet on real sockets, and what tests ask it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "emulator/emulator.hpp"
#include "net/clock.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::emulator {

inline std::int64_t occurrences(const std::string& text, std::string_view part) {
  std::int64_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// One answer with its status.
struct Reply {
  std::string raw;

  [[nodiscard]] int status() const { return raw.size() < 12 ? 0 : std::stoi(raw.substr(9, 3)); }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(testing_support::body_of(raw)); }
  [[nodiscard]] std::string error() const { return json()["error"]["message"]; }
};

class FleetFixture : public testing::Test {
 protected:
  // Steps of a millisecond and one rank, unless `params` say otherwise.
  static EmulatorParams quick() {
    EmulatorParams params;
    params.ranks = 1;
    params.slots = 4;
    params.step_time = {.fixed_ms = 1, .per_token_ms = 0};
    return params;
  }

  void start(const EmulatorParams& params) {
    emulator = std::make_unique<Emulator>(params, clock);
    const auto started = emulator->start();
    ASSERT_TRUE(started) << started.error();
  }

  [[nodiscard]] std::uint16_t port(std::size_t index = 0, std::size_t group = 0) const {
    return emulator->ports()[group][index];
  }
  [[nodiscard]] std::uint16_t prefill_port(std::size_t instance = 0) const {
    return emulator->prefill_ports()[instance];
  }

  static Reply get(std::uint16_t to, std::string_view path) {
    return {testing_support::http_exchange(to, "GET", path)};
  }
  static Reply post(std::uint16_t to, std::string_view path, const std::string& body, std::string_view headers = "") {
    return {testing_support::http_exchange(to, testing_support::http_request("POST", path, body, headers))};
  }
  static Reply complete(std::uint16_t to, const std::string& body, std::string_view headers = "") {
    return post(to, "/v1/completions", body, headers);
  }

  [[nodiscard]] nlohmann::json stats() const { return get(port(), "/emulator/stats").json(); }
  [[nodiscard]] nlohmann::json state() const { return get(port(), "/emulator/state").json(); }
  [[nodiscard]] std::int64_t kv(const char* counter) const { return stats()["kv"][counter]; }

  // Asks again until `done` holds; a fleet that never gets there runs into the test's time limit.
  template <class Ask, class Condition>
  static nlohmann::json when(Ask ask, Condition done) {
    nlohmann::json now = ask();
    while (!done(now)) now = ask();
    return now;
  }
  template <class Condition>
  nlohmann::json stats_when(Condition done) const {
    return when([this] { return stats(); }, done);
  }
  template <class Condition>
  nlohmann::json state_when(Condition done) const {
    return when([this] { return state(); }, done);
  }
  void expect_nothing_held() const {
    state_when([](const nlohmann::json& now) { return now["holds_nothing"] == true; });
  }

  net::SteadyClock clock;
  std::unique_ptr<Emulator> emulator;
};

}  // namespace balanceroute::emulator
