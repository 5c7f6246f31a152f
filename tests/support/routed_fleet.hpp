// routed_fleet.hpp - tests of the router in front of an emulated fleet that checks every relay.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/emulator.hpp"
#include "net/clock.hpp"
#include "proxy/service.hpp"
#include "support/raw_client.hpp"
#include "support/soon.hpp"

namespace balanceroute::proxy {

inline std::string url_of(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

inline int status_of(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}

// " t1 t2 ... tN": what N numbered tokens say.
inline std::string numbered(int tokens, int first = 1) {
  std::string text;
  for (int i = first; i <= tokens; ++i) text += " t" + std::to_string(i);
  return text;
}

// The text of all events of a stream, and how often it ended properly.
struct Streamed {
  std::string text;
  int finishes = 0;
  int dones = 0;
  std::string errors;
  std::set<std::string> ids;
  nlohmann::json usage;
};

inline Streamed read_stream(const std::string& answer) {
  Streamed out;
  std::string body = testing_support::body_of(answer);
  for (auto at = body.find("data: "); at != std::string::npos; at = body.find("data: ", at + 1)) {
    const std::string data = body.substr(at + 6, body.find('\n', at) - at - 6);
    if (data == "[DONE]") {
      ++out.dones;
      continue;
    }
    const nlohmann::json event = nlohmann::json::parse(data, nullptr, false);
    if (event.is_discarded()) continue;
    if (event.contains("error")) out.errors += event["error"].dump();
    if (event.contains("id")) out.ids.insert(event["id"].get<std::string>());
    if (event.contains("usage") && event["usage"].is_object()) out.usage = event["usage"];
    for (const nlohmann::json& choice : event.value("choices", nlohmann::json::array())) {
      if (choice.contains("text")) out.text += choice["text"].get<std::string>();
      if (choice.contains("delta")) out.text += choice["delta"].value("content", "");
      if (choice.contains("finish_reason") && !choice["finish_reason"].is_null()) ++out.finishes;
    }
  }
  return out;
}

class RoutedFleet : public testing::Test {
 protected:
  using Emulator = emulator::Emulator;
  using EmulatorParams = emulator::EmulatorParams;
  using json = nlohmann::json;

  static EmulatorParams quick(const std::string& dialect) {
    EmulatorParams params;
    params.ranks = 2;
    params.slots = 4;
    params.step_time = {.fixed_ms = 1, .per_token_ms = 0};
    params.dialect = dialect;
    params.prefill_instances = dialect == "aggregated" ? 0 : 2;
    return params;
  }

  // The time of the engines.
  [[nodiscard]] virtual const net::Clock& engine_clock() const { return clock_; }

  static void no_change(ServeParams& /*params*/) {}

  // An emulated fleet, and a router in front of it.
  void start(const EmulatorParams& fleet, const std::function<void(ServeParams&)>& change = no_change) {
    emulator_ = std::make_unique<Emulator>(fleet, engine_clock());
    const auto started = emulator_->start();
    ASSERT_TRUE(started) << started.error();
    ServeParams params = serve_params(fleet);
    change(params);
    ASSERT_EQ(problems_of(params), std::vector<std::string>{});
    auto service = Service::start(params, std::make_shared<spdlog::logger>("test"));
    ASSERT_TRUE(service) << service.error();
    service_ = std::move(*service);
  }

  [[nodiscard]] ServeParams serve_params(const EmulatorParams& fleet) const {
    ServeParams params;
    params.listen = "127.0.0.1:0";
    params.admin.listen = "127.0.0.1:0";
    params.io_threads = 2;
    FleetParams& routed = params.fleets.emplace_back();
    routed.dialect = fleet.dialect;
    for (const auto& ports : emulator_->ports()) {
      GroupParams& group = routed.groups.emplace_back();
      group.name = "g" + std::to_string(routed.groups.size());
      group.slots = fleet.slots;
      for (const auto port : ports) {
        group.workers.push_back({.url = url_of(port),
                                 .ranks = fleet.ranks_per_port,
                                 .addressing = fleet.ranks_per_port > 1 ? "header" : "port"});
      }
    }
    for (std::size_t i = 0; i < emulator_->prefill_ports().size(); ++i) {
      PrefillInstanceParams& instance = routed.prefill.instances.emplace_back();
      instance.url = url_of(emulator_->prefill_ports()[i]);
      instance.ranks = fleet.prefill_ranks;
      if (i < emulator_->bootstrap_ports().size()) instance.bootstrap_port = emulator_->bootstrap_ports()[i];
    }
    routed.prefill.lease_ms = fleet.lease_seconds * 1000;
    routed.prefill.hold_limit_ms = fleet.lease_seconds * 600;
    return params;
  }

  std::string post(std::string_view path, const std::string& body) {
    return testing_support::http_exchange(service_->client_port(), testing_support::http_request("POST", path, body));
  }
  json ledger() {
    return json::parse(testing_support::body_of(
        testing_support::http_exchange(service_->admin_port(), "GET", "/debug/ledger")))["fleets"][0];
  }
  std::string metrics() { return testing_support::http_exchange(service_->admin_port(), "GET", "/metrics"); }
  json kv() { return json::parse(emulator_->stats_json())["kv"]; }

  // Nothing is held anywhere: no lease, no claim, no KV.
  bool all_is_given_back() {
    const json state = ledger();
    if (state["requests_live"] != 0 || state["leases_live"] != 0 || state["requests_waiting"] != 0) return false;
    if (state.contains("prefill")) {
      const json& prefill = state["prefill"];
      if (prefill["requests_live"] != 0 || prefill["requests_waiting"] != 0 || prefill["in_flight"] != 0) return false;
      for (const json& instance : prefill["instances"]) {
        if (instance["leases_live"] != 0 || instance["computing_tokens"] != 0 || instance["held_tokens"] != 0 ||
            instance["stranded_tokens"] != 0) {
          return false;
        }
      }
    }
    return json::parse(emulator_->state_json())["holds_nothing"] == true;
  }
  void expect_all_given_back() {
    EXPECT_TRUE(testing_support::soon([this] { return all_is_given_back(); }))
        << ledger().dump(1) << emulator_->state_json();
  }
  static bool http_is_up(std::uint16_t port) {
    try {
      return status_of(testing_support::http_exchange(port, "GET", "/health")) == 200;
    } catch (const std::exception&) {
      return false;  // refused
    }
  }
  void inject(std::uint16_t engine, const json& fault) {
    testing_support::http_exchange(engine, "POST", "/emulator/faults", fault.dump());
  }

  net::SteadyClock clock_;
  std::unique_ptr<Emulator> emulator_;
  std::unique_ptr<Service> service_;
};

}  // namespace balanceroute::proxy
