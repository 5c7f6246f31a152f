// policy.hpp - what a routing policy is: it reads views of the fleet and names workers for requests.
//
// A policy changes nothing; Router carries out what it names, and tells it what happens for what it wants to learn. Two
// kinds: an immediate policy binds a request to a worker as it arrives, a pooled one chooses from all that wait when
// slots are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/group_view.hpp"
#include "core/ids.hpp"
#include "core/ledger.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "core/units.hpp"
#include "predict/calibration.hpp"
#include "predict/predictor.hpp"

namespace balanceroute {

enum class Binding : std::uint8_t { immediate, pooled };

// Which rule made a choice.
enum class Stage : std::uint8_t {
  bound,            // bound on arrival; its turn came in its worker's queue
  single,           // stage 1: the best single candidate while many slots are free
  subset,           // stage 2: part of the best set for one worker
  work_conserving,  // stage 2: no set helps, the least harmful candidate fills the slot
  overdue,          // passed over too often: first and alone
  late,             // waited for too long: placed in its turn, before the policy chooses
  retried           // its worker failed it: the least loaded other one that has room, beside the policy
};

[[nodiscard]] std::string_view to_string(Binding binding);
[[nodiscard]] std::string_view to_string(Stage stage);

// The next best worker for the same requests, and their score there.
struct RunnerUp {
  std::size_t worker;  // position in the group
  double score;
};

// Choice gives one waiting request to one worker, and says why.
struct Choice {
  std::size_t candidate;  // position in the pool as the round saw it
  std::size_t worker;     // position in the group
  Stage stage;
  std::int32_t set_size = 1;  // requests chosen together, this one included
  double score = 0;           // of that set; higher is better
  Tokens margin{0};           // the worker's room below the envelope just before
  std::optional<RunnerUp> runner_up{};
};

// RoundInput is what a pooled policy decides on. Pool and group are read in place.
struct RoundInput {
  const GroupView& group;
  std::span<const Candidate> pool;  // oldest first
  bool explain = false;             // fill in the runners-up
  // All groups that are served from this pool; empty: only this one.
  std::span<const GroupView> groups{};
};

// PredictionReport is how well a policy's predictor foretold which answers end within the policy's horizon.
struct PredictionReport {
  std::string_view predictor;
  Steps horizon;
  Calibration calibration;
  KeyHits key_hits;
};

// Policy is the part common to both kinds.
//   Determinism  the same views and the same random numbers give the same answer.
//   Threads      not synchronised; owned by one Router.
class Policy {
 public:
  virtual ~Policy() = default;

  // One name everywhere: config value, flag value, metric label and folder.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Binding binding() const = 0;

  // How good it is to give `candidate` to this worker as things stand; higher is better.
  [[nodiscard]] virtual double score(const FleetView& fleet, GroupId group, std::size_t worker,
                                     const Candidate& candidate) const = 0;
  // What score() counts, in words for a person.
  [[nodiscard]] virtual std::string_view score_meaning() const = 0;

  // So far; none if it predicts nothing.
  [[nodiscard]] virtual std::optional<PredictionReport> prediction_report() const { return std::nullopt; }

  // Before anything else: a request of an earlier time that was over with so many tokens, in order of their ends.
  virtual void learned(const Candidate& /*candidate*/, Tokens /*generated*/, LeaseEnd /*how*/) {}

  // What happens, in order; nothing by default. A policy that takes over is told first of all that runs, then of all
  // that waits.
  virtual void arrived(const Candidate& /*candidate*/) {}
  virtual void withdrawn(RequestId /*request*/) {}  // it left before it had a worker
  // It is on that worker; `request.generated` tokens were generated before.
  virtual void admitted(const Request& /*request*/, GroupId /*group*/, WorkerId /*worker*/) {}
  // It runs, each sequence has generated so many tokens, and it grows with its group's steps.
  virtual void aged(RequestId /*request*/, Tokens /*generated*/) {}
  // One of its sequences has ended with so many tokens; the others go on.
  virtual void narrowed(RequestId /*request*/, Tokens /*generated*/) {}
  // The sequences that were left have.
  virtual void left(RequestId /*request*/, Tokens /*generated*/, LeaseEnd /*how*/) {}
  virtual void stepped(GroupId /*group*/, Steps /*steps*/) {}
};

class ImmediatePolicy : public Policy {
 public:
  [[nodiscard]] Binding binding() const final { return Binding::immediate; }

  // The worker whose queue the request joins; none if no eligible worker is large enough.
  [[nodiscard]] virtual std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                                     Random& random) = 0;
};

class PooledPolicy : public Policy {
 public:
  [[nodiscard]] Binding binding() const final { return Binding::pooled; }

  // Appends the round's admissions to `choices`: different candidates, within each worker's free slots. No heap
  // allocation once warm.
  virtual void decide(const RoundInput& input, Random& random, std::vector<Choice>& choices) = 0;
};

}  // namespace balanceroute
