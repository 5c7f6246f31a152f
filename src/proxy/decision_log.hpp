// decision_log.hpp - a live fleet's router written down, so that its decisions can be taken again and compared.
//
// One JSON object a line. The first has what a fresh router needs: seed and settings. Each other is one RouterEvent, in
// order: sizes and numbers, no word of any prompt or answer. Reading is decision_check.hpp's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "core/load_model_params.hpp"
#include "core/params.hpp"
#include "policy/policy_params.hpp"
#include "policy/router_event.hpp"

namespace balanceroute::proxy {

struct DecisionLogParams {
  std::string path;
  std::int64_t limit_mb = 1024;

  void visit_params(ParamVisitor& visitor);
};

// What a router is made of, beside what it hears.
struct RouterOrigin {
  std::string fleet;
  std::uint64_t seed = 0;
  std::int64_t kv_block = 1;
  PolicyParams policy;  // its name is that of a policy, not auto
  LoadModelParams load_model;
};

// DecisionLog writes what a Router hears and decides to a file.
//   Limits   ends with a line that says so at limit_mb, and at the first failed write; routing goes on.
//   Cost     a formatted line an event, on the deciding thread; a write to the file for each 64 KiB.
//   Threads  not synchronised: the deciding thread's, once made.
class DecisionLog final : public RouterListener {
 public:
  // Truncates the file. An error when it cannot be written.
  static std::expected<std::unique_ptr<DecisionLog>, std::string> open(const DecisionLogParams& params,
                                                                       const RouterOrigin& origin);
  ~DecisionLog() override;

  void heard(std::chrono::nanoseconds now, const RouterEvent& event) override;

 private:
  DecisionLog(std::ofstream file, std::size_t limit_bytes) : file_{std::move(file)}, left_bytes_{limit_bytes} {}

  void write(std::string_view line);

  std::ofstream file_;
  std::size_t left_bytes_;
  bool ended_ = false;
  std::string line_;  // scratch
};

}  // namespace balanceroute::proxy
