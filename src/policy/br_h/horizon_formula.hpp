// horizon_formula.hpp - the score of BR-H: what an admission gains over the coming steps, less what it lifts.
//
// Two ways to the same value, to the bit: a plain sum over the steps, and sorted rooms with prefix sums, in which one
// binary search finds it. Source: BalanceRoute (arXiv 2605.06113), section 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace balanceroute {

// Wide enough for every discounted sum of token counts that the core takes.
__extension__ using WideInteger = __int128;

struct HorizonWeights {
  double alpha = 1;
  double beta = 43;
  double gamma = 0.86;
  Steps horizon{80};
  Tokens growth{1};  // what each sequence of an admission grows by in a step; 0: it counts as it is now
};

// LoadRow is one worker among its group, h = 0 .. horizon steps from now: the group's largest loads, and its own.
struct LoadRow {
  std::span<const Tokens> envelope;
  std::span<const Tokens> loads;
};

// SortedRooms is the table for one worker and one number of sequences: at each step the room that its margin leaves
// beside what they grow until then, by rising room, with prefix sums of discounts and of discount * room.
class SortedRooms {
 public:
  // Sum over the steps of discount * (size - room)+. O(log horizon).
  [[nodiscard]] WideInteger overflow(Tokens size) const;

 private:
  friend class HorizonFormula;
  struct Step {
    Tokens room;
    std::int64_t discount;
  };
  struct Prefix {
    WideInteger discounts = 0;
    WideInteger rooms = 0;
  };
  std::vector<Step> steps_;
  std::vector<Prefix> prefixes_;  // of the first 0, 1, ... steps
};

// HorizonFormula is F = alpha * sum of d_h * D_h - beta * sum of d_h * (D_h - m_h)+ over h = 0 .. horizon, for an
// admission of D tokens in n sequences: D_h is D + growth * n * h, m_h is the margin of its
// worker, d_h = gamma^h.
//   Exact     discounts are whole multiples of 2^-40, so both sums are exact whole numbers in any order; they are
//             rounded once each, then weighted. With horizon 0, alpha 1 and beta G it is the one-step score, to the
//             bit.
//   Concave   in D for each n, so that only sums next to peak() can be best.
//   Cost      score by rows O(horizon), peak as much and O(n log n) for the n rooms that come into question, sort
//             O(horizon log horizon), score by table O(log horizon). No allocation once warm.
class HorizonFormula {
 public:
  // Scores of one worker and number of sequences from which on a table is the cheaper way.
  static constexpr std::size_t kTablePays = 8;
  // Where the score never falls.
  static constexpr Tokens kNoPeak{std::int64_t{1} << 62};

  explicit HorizonFormula(const HorizonWeights& weights);

  // Of present loads alone the weights are 1 and the number of workers.
  void weigh_for_group(std::size_t workers);

  [[nodiscard]] std::size_t steps() const { return discounts_.size(); }
  [[nodiscard]] Tokens growth() const { return weights_.growth; }

  [[nodiscard]] double score(const LoadRow& row, Tokens size, std::int32_t sequences) const;
  void sort(const LoadRow& row, std::int32_t sequences, SortedRooms& table) const;
  [[nodiscard]] double score(const SortedRooms& table, Tokens size, std::int32_t sequences) const;

  // The least size at which the score is highest, but not below zero.
  [[nodiscard]] Tokens peak(const LoadRow& row, std::int32_t sequences);

 private:
  static constexpr int kBits = 40;

  [[nodiscard]] Tokens room(const LoadRow& row, std::size_t step, Tokens growth) const {
    return row.envelope[step] - row.loads[step] - growth * static_cast<std::int64_t>(step);
  }
  void count_heavy_steps();
  [[nodiscard]] double weighted(Tokens size, std::int32_t sequences, WideInteger overflow) const;

  HorizonWeights weights_;
  std::vector<std::int64_t> discounts_;
  WideInteger sum_ = 0;
  WideInteger ramp_ = 0;         // sum of d_h * h
  std::size_t heavy_steps_ = 0;  // the first ones, of which each outweighs all gain when its room is full

  // Scratch.
  std::vector<Tokens> rooms_;
  std::vector<SortedRooms::Step> first_rooms_;
};

}  // namespace balanceroute
