// horizon_score.hpp - sets of admissions scored on projected loads, for the two-stage round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/group_view.hpp"
#include "core/units.hpp"
#include "policy/br_h/horizon_formula.hpp"
#include "policy/br_h/projection.hpp"

namespace balanceroute {

// HorizonScore scores on the loads that are projected at the start of a round, raised by the round's own admissions.
//   Shape     workers by position in the group; h = 0 .. horizon steps from now.
//   Cost      begin O(workers * horizon), the others O(horizon). No allocation once warm.
class HorizonScore {
 public:
  // No projection: only present loads count, and the horizon is 0.
  HorizonScore(const HorizonWeights& weights, const Projection* projection);

  void begin(const GroupView& group);
  void admit(std::size_t worker, Tokens weight, std::int32_t sequences);

  [[nodiscard]] double score(std::size_t worker, Tokens weight, std::int32_t sequences) const;
  [[nodiscard]] Tokens peak(std::size_t worker, std::int32_t sequences) {
    return formula_.peak(row(worker), sequences);
  }
  // About so many scores for this worker and number of sequences follow: makes a table if that pays.
  void expect(std::size_t worker, std::int32_t sequences, std::size_t count);

  // Of the present step.
  [[nodiscard]] Tokens load(std::size_t worker) const { return loads_[worker * formula_.steps()]; }
  [[nodiscard]] Tokens margin(std::size_t worker) const { return envelope_.front() - load(worker); }

 private:
  [[nodiscard]] std::span<Tokens> loads_of(std::size_t worker) {
    return std::span{loads_}.subspan(worker * formula_.steps(), formula_.steps());
  }
  [[nodiscard]] LoadRow row(std::size_t worker) const {
    return {envelope_, std::span{loads_}.subspan(worker * formula_.steps(), formula_.steps())};
  }

  // What the table was made of. Any admission may lift the envelope, so it voids all tables.
  struct TableKey {
    std::size_t worker = 0;
    std::int32_t sequences = 0;
    std::uint64_t version = 0;

    friend bool operator==(const TableKey&, const TableKey&) = default;
  };

  HorizonFormula formula_;
  const Projection* projection_;
  std::vector<Tokens> loads_;     // a row of steps a worker
  std::vector<Tokens> envelope_;  // by step
  std::uint64_t version_ = 1;
  TableKey table_key_;
  SortedRooms table_;
};

}  // namespace balanceroute
