// simulate_params.hpp - the settings of `simulate`.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "core/kv_params.hpp"
#include "core/load_model_params.hpp"
#include "core/params.hpp"
#include "engine/step_time_params.hpp"
#include "policy/policy_params.hpp"
#include "sim/fleet.hpp"
#include "trace/history_source.hpp"

namespace balanceroute::sim {

// SimulateParams says which runs are made: every combination of its lists.
struct SimulateParams {
  static constexpr std::int64_t kAll = 0;  // "auto": no limit

  std::string trace;
  trace::HistorySource history;  // in its place
  std::vector<std::string> policies{"least_tokens", "br_fit"};
  std::vector<std::string> predictors{"survival"};  // each policy that predicts runs with each of them
  std::vector<std::int64_t> workers{8};
  std::vector<double> loads{1.1};
  std::vector<std::int64_t> seeds{1};

  std::int64_t groups = 1;
  std::int64_t slots = 72;
  std::int64_t slots_ahead = 0;
  std::int64_t repeat = 1;
  bool warm_start = true;
  std::string arrivals = "poisson";
  std::int64_t min_output = 1;
  std::int64_t limit = kAll;
  bool skip_bad_rows = false;
  engine::StepTimeParams step_time;
  double tokens_per_step = 1;
  std::string step_time_table;
  KvParams kv;
  LoadModelParams load_model;
  double recompute_per_token_ms = 0.05;
  double admission_delay_ms = 0;
  double transfer_per_token_ms = 0;
  std::int64_t prefill_instances = 0;
  double prefill_ms = 20;
  double prefill_per_token_ms = 0.05;
  std::int64_t prefill_kv_tokens = kAll;
  PolicyParams policy_settings;  // but for its name and predictor

  bool details = false;
  bool timings = false;
  std::string json;
  std::string html;

  void visit_params(ParamVisitor& visitor);
  // What all runs have in common, outputs aside.
  void visit_settings(ParamVisitor& visitor);

  // The file that the requests are from.
  [[nodiscard]] const std::string& source() const { return history.given() ? history.history : trace; }
  [[nodiscard]] Fleet fleet(std::size_t workers_of_group) const;

 private:
  void visit_model(ParamVisitor& visitor);
};

// What the settings ask of one another; one message, with flags named as on the command line.
[[nodiscard]] std::expected<void, std::string> validate(const SimulateParams& params);

}  // namespace balanceroute::sim
