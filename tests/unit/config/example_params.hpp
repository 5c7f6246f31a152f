// example_params.hpp - settings of every kind, for the tests of what reads and writes settings.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"

namespace balanceroute::example {

struct WorkerParams {
  std::string url;
  std::int64_t start_rank = 0;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({.name = "url", .doc = "Where the worker listens.", .required = true}, url);
    visitor.integer({"start_rank", "First rank."}, start_rank, {0, 65'535});
  }
  friend bool operator==(const WorkerParams&, const WorkerParams&) = default;
};

struct PolicyParams {
  static constexpr std::int64_t kAuto = -1;
  std::string order = "load";
  std::int64_t r_max = 4;
  std::int64_t threshold = kAuto;

  void visit_params(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kOrders{"load", "capacity"};
    visitor.choice({"order", "Who chooses first."}, order, kOrders);
    visitor.integer({"r_max", "Requests looked at."}, r_max, {1, 64});
    visitor.integer_or_auto({"threshold", "Free slots above which requests are placed one at a time."}, threshold,
                            kAuto, {0, 1000});
  }
  friend bool operator==(const PolicyParams&, const PolicyParams&) = default;
};

struct FleetParams {
  std::string name;
  std::vector<std::string> aliases;
  PolicyParams policy;
  std::vector<WorkerParams> workers;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({.name = "name", .doc = "The fleet's name.", .required = true}, name);
    visitor.texts({"aliases", "Other names."}, aliases);
    visitor.nested({"policy", "The policy."}, policy);
    visitor.nested_list({.name = "workers", .doc = "The workers.", .required = true}, workers);
  }
  friend bool operator==(const FleetParams&, const FleetParams&) = default;
};

struct LimitParams {
  std::int64_t body_bytes = 1024;
  double timeout_ms = 250;
  bool strict = true;

  void visit_params(ParamVisitor& visitor) {
    visitor.integer({"body_bytes", "Largest body."}, body_bytes, {1, 1'000'000});
    visitor.real({"timeout_ms", "Longest wait."}, timeout_ms, {0, 60'000});
    visitor.flag({"strict", "Whether unknown members are refused."}, strict);
  }
  friend bool operator==(const LimitParams&, const LimitParams&) = default;
};

struct Params {
  std::string listen = "127.0.0.1:8080";
  std::string token;
  LimitParams limits;
  std::vector<FleetParams> fleets;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({"listen", "Where clients connect."}, listen);
    visitor.text({.name = "token", .doc = "The admin's password.", .secret = true}, token);
    visitor.nested({"limits", "Bounds of a request."}, limits);
    visitor.nested_list({"fleets", "What is routed to."}, fleets);
  }
  friend bool operator==(const Params&, const Params&) = default;
};

}  // namespace balanceroute::example
