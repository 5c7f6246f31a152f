// projection.hpp - the load that each worker is expected to have in each of the next steps, from what it runs now.
//
// A running request counts with the chance, as last predicted, that it still runs then. Source: BalanceRoute (arXiv
// 2605.06113), section 4; weights by chance and growth are ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/ledger.hpp"
#include "core/load_model.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "policy/running/running_requests.hpp"
#include "predict/calibration.hpp"
#include "predict/predictor.hpp"

namespace balanceroute {

// point: a request counts until its expected end. survival: with its chance to run still.
enum class ProjectionShape : std::uint8_t { point, survival };

struct ProjectionSettings {
  Steps horizon{80};  // at least 1
  Steps refresh{10};
  ProjectionShape shape = ProjectionShape::survival;
  bool growth = true;  // whether what a request generates until then counts
};

// Projection keeps two sums a worker and coming step over the requests it runs, in fixed point (kCertain is 1): of
// chance * (weight - growth * present step) and of chance * growth. From them each load ahead follows by one
// multiplication, however old the sums are, and what was added is taken out again without a trace.
//   Refresh   a request is predicted anew each `refresh` steps, when its age is corrected and when it begins to run; in
//             between its chances move up a step with each step. Requests have their turns at different steps, so that
//             steps cost the same.
//   Limits    a weight is taken to grow as it does at the moment of prediction, so a load model that jumps (paged,
//             windowed) is followed from refresh to refresh only.
//   Cost      an event, and a step for each request whose turn it is, O(horizon + refresh); a step O(workers) besides;
//             project O(horizon). No allocation once warm.
//   Threads   not synchronised.
class Projection {
 public:
  Projection(const ProjectionSettings& settings, std::unique_ptr<Predictor> predictor, const LoadModel& model = {});

  // Of an earlier time: it is over with so many tokens.
  void learned(const Request& request, Tokens generated, LeaseEnd how);
  void admitted(const Request& request, GroupId group, WorkerId worker);
  void aged(RequestId request, Tokens generated);
  void narrowed(RequestId request, Tokens generated);
  void left(RequestId request, Tokens generated, LeaseEnd how);
  void stepped(GroupId group, Steps steps);

  // loads[h] is the worker's load h steps from now, for h = 0 .. loads.size() - 1 <= horizon; loads[0] is `now`, its
  // load in the ledger.
  void project(GroupId group, WorkerId worker, Tokens now, std::span<Tokens> loads) const;

  [[nodiscard]] const ProjectionSettings& settings() const { return settings_; }
  [[nodiscard]] const Predictor& predictor() const { return *predictor_; }
  // Of the predictions "it ends within the horizon", made once the predictor knew anything.
  [[nodiscard]] const Calibration& calibration() const { return check_.calibration(); }

 private:
  using Handle = RunningRequests::Handle;

  // What one request adds to the sums at step t of its group: chances[t - since] * (base + growth * t).
  struct Term {
    std::int64_t base = 0;
    std::int64_t growth = 0;
    Steps since{0};  // when it was predicted
    OpenPrediction open{};
    std::uint32_t place = 0;  // among those of its turn
    std::uint32_t turn = 0;
  };
  // Unsigned, because sums in between may wrap; what is read never does.
  struct Sums {
    std::uint64_t base = 0;
    std::uint64_t growth = 0;
  };
  struct Group {
    std::vector<std::vector<Handle>> turns;  // by step modulo refresh
  };

  [[nodiscard]] std::span<std::uint32_t> chances(Handle handle) {
    return std::span{chances_}.subspan(handle * span_, span_);
  }
  void make_room(Handle handle, GroupId group, WorkerId worker);
  [[nodiscard]] Term predicted(Handle handle);
  void fill_chances(Handle handle, Tokens age);
  void predict(Handle handle);
  void count(Handle handle, std::uint64_t sign);
  void refresh(Handle handle);
  void exchange_chances(Handle handle);
  void clear_passed(GroupId group, Steps from, Steps to);
  void join_turn(Handle handle);
  void leave_turn(Handle handle);

  ProjectionSettings settings_;
  std::size_t span_;  // steps that a prediction must reach: the horizon, seen until the next refresh
  std::unique_ptr<Predictor> predictor_;
  LoadModel model_;
  PredictionCheck check_;

  RunningRequests running_;
  std::vector<Term> terms_;              // by handle
  std::vector<std::uint32_t> chances_;   // span_ each, by handle
  std::vector<std::vector<Sums>> sums_;  // by WorkerId, then by step modulo span_
  std::vector<Group> groups_;            // by GroupId
  std::vector<std::uint32_t> fresh_;     // the newest prediction's chances
};

}  // namespace balanceroute
