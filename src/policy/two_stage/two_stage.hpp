// two_stage.hpp - the round shared by the BR policies: who takes which waiting requests, given a way to score a set.
//
// Stage 1, while many slots are free: the first worker in order takes the best single candidate. Stage 2: the first
// worker in order takes the best set of the first r_max candidates; if no set helps it takes the least harmful one, so
// no slot stays empty while a request waits that fits it. A worker goes back in order while it has slots. Source:
// BalanceRoute (arXiv 2605.06113), section 4.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "policy/policy.hpp"
#include "policy/two_stage/best_subset.hpp"
#include "policy/two_stage/settings.hpp"

namespace balanceroute {

// SetScore projects the loads of one group over a round and scores sets of admissions on them.
template <class T>
concept SetScore = requires(T& score, const T& now, const GroupView& group, std::size_t worker, Tokens weight,
                            std::int32_t sequences) {
  score.begin(group);                                                // start of a round
  score.admit(worker, weight, sequences);                            // raise the projection
  { now.score(worker, weight, sequences) } -> std::same_as<double>;  // higher is better
  { now.load(worker) } -> std::same_as<Tokens>;                      // projected, for the order of workers
  { now.margin(worker) } -> std::same_as<Tokens>;                    // room below the projected envelope
};

// TwoStage carries out rounds.
//   Invariants  a choice never exceeds a worker's free slots; k sequences of a request stay together.
//   Overdue     a candidate passed over by max_passes later ones is first and alone. If it is too wide for every worker
//               now, the worker with most free slots takes nothing else until it fits; the others go on.
//   Cost        a round: O(G) + O(log G + window + sets tried) an admission; no allocation once warm.
template <SetScore Score>
class TwoStage {
 public:
  explicit TwoStage(const TwoStageSettings& settings) : settings_{settings} {}

  void decide(const RoundInput& input, std::vector<Choice>& choices) {
    begin(input);
    while (!order_.empty() && !window_.empty()) {
      if (window_.front().passes >= settings_.max_passes) {
        place_overdue(choices);
        continue;
      }
      const std::size_t worker = pop_worker();
      const bool placed =
          free_total_ > settings_.greedy_threshold ? place_single(worker, choices) : place_set(worker, choices);
      if (!placed) idle_.push_back(worker);
    }
  }

 private:
  // A candidate in sight: its place in the pool, and its passes with this round's admissions.
  struct Waiting {
    std::size_t position;
    std::int32_t passes;
  };

  void begin(const RoundInput& input) {
    group_ = &input.group;
    pool_ = input.pool;
    explain_ = input.explain;
    score_.begin(input.group);
    free_.assign(input.group.free_slots.begin(), input.group.free_slots.end());
    free_total_ = 0;
    order_.clear();
    idle_.clear();
    holding_ = false;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      if (!group_->has_room(worker, 1)) continue;
      free_total_ += free_[worker];
      order_.push_back(worker);
    }
    std::ranges::make_heap(order_, after());
    window_.clear();
    next_ = 0;
    refill_window();
  }

  [[nodiscard]] const Candidate& candidate(const Waiting& waiting) const { return pool_[waiting.position]; }
  [[nodiscard]] std::int32_t width(const Waiting& waiting) const { return candidate(waiting).request.sequences; }
  [[nodiscard]] bool fits(const Waiting& waiting, std::size_t worker) const { return width(waiting) <= free_[worker]; }

  // --- workers, first in order first ---

  // Whether a worker comes after another. Margin is envelope - load, so the larger margin is the lesser load.
  [[nodiscard]] bool comes_after(std::size_t a, std::size_t b) const {
    if (settings_.worker_order == WorkerOrder::capacity && free_[a] != free_[b]) return free_[a] < free_[b];
    if (score_.load(a) != score_.load(b)) return score_.load(a) > score_.load(b);
    return a > b;
  }
  [[nodiscard]] auto after() const {
    return [this](std::size_t a, std::size_t b) { return comes_after(a, b); };
  }
  [[nodiscard]] std::size_t pop_worker() {
    std::ranges::pop_heap(order_, after());
    const std::size_t worker = order_.back();
    order_.pop_back();
    return worker;
  }
  void push_worker(std::size_t worker) {
    order_.push_back(worker);
    std::ranges::push_heap(order_, after());
  }

  // --- candidates in sight: the oldest that are still waiting ---

  // Looks further down the pool; workers that found nothing to fit look again if something in sight does.
  void refill_window() {
    const std::size_t wanted = std::max(settings_.stage1_window, settings_.r_max);
    for (; window_.size() < wanted && next_ < pool_.size(); ++next_) {
      window_.push_back({next_, pool_[next_].passes});
    }
    if (!idle_.empty()) wake_idle();
  }

  void wake_idle() {
    std::int32_t narrowest = std::numeric_limits<std::int32_t>::max();
    for (const Waiting& waiting : window_) narrowest = std::min(narrowest, width(waiting));
    const auto [woken, end] =
        std::ranges::partition(idle_, [&](std::size_t worker) { return free_[worker] < narrowest; });
    for (auto worker = woken; worker != end; ++worker) push_worker(*worker);
    idle_.erase(woken, end);
  }

  // Takes one out of sight; when it is admitted the older ones have been passed over.
  void drop(std::size_t index, std::int32_t passes) {
    for (std::size_t older = 0; older < index; ++older) window_[older].passes += passes;
    window_.erase(window_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // --- placing ---

  // Stage 1.
  bool place_single(std::size_t worker, std::vector<Choice>& choices) {
    const std::size_t sight = std::min(settings_.stage1_window, window_.size());
    std::optional<std::size_t> best;
    double best_score = 0;
    for (std::size_t i = 0; i < sight; ++i) {
      if (!fits(window_[i], worker)) continue;
      const double its_score = score_.score(worker, candidate(window_[i]).weight, width(window_[i]));
      if (best && its_score <= best_score) continue;
      best = i;
      best_score = its_score;
    }
    if (!best) return false;
    admit(worker, std::span{&*best, 1}, Stage::single, choices);
    return true;
  }

  // Stage 2.
  bool place_set(std::size_t worker, std::vector<Choice>& choices) {
    std::array<std::size_t, kMaxSubsetItems> in_window;
    std::array<SubsetItem, kMaxSubsetItems> items;
    std::size_t count = 0;
    for (std::size_t i = 0; i < window_.size() && count < settings_.r_max; ++i) {
      if (!fits(window_[i], worker)) continue;
      in_window[count] = i;
      items[count++] = {candidate(window_[i]).weight, width(window_[i])};
    }
    if (count == 0) return false;
    const auto score = [&](Tokens weight, std::int32_t sequences) { return score_.score(worker, weight, sequences); };
    const Subset best = SubsetSearch{std::span{items}.first(count), free_[worker], score}.best();
    if (best.score <= 0) {
      admit(worker, std::span{&in_window[least_harmful(worker, std::span{items}.first(count))], 1},
            Stage::work_conserving, choices);
      return true;
    }
    std::size_t members = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if ((best.members >> i & 1) != 0) in_window[members++] = in_window[i];
    }
    admit(worker, std::span{in_window}.first(members), Stage::subset, choices);
    return true;
  }

  [[nodiscard]] std::size_t least_harmful(std::size_t worker, std::span<const SubsetItem> items) const {
    const auto best = std::ranges::max_element(
        items, {}, [&](const SubsetItem& item) { return score_.score(worker, item.weight, item.sequences); });
    return static_cast<std::size_t>(best - items.begin());
  }

  // The oldest candidate goes first and alone, on the first worker in order that has room for it.
  void place_overdue(std::vector<Choice>& choices) {
    std::optional<std::size_t> taker;
    for (const std::size_t worker : order_) {
      if (!fits(window_.front(), worker)) continue;
      if (!taker || comes_after(*taker, worker)) taker = worker;
    }
    if (taker) {
      take_out(*taker);
      const std::size_t oldest = 0;
      admit(*taker, std::span{&oldest, 1}, Stage::overdue, choices);
      return;
    }
    if (!holding_) hold_for(window_.front());
    drop(0, 0);
    refill_window();
  }

  // Keeps the worker that will soonest have room for a wide overdue candidate from taking others this round.
  void hold_for(const Waiting& waiting) {
    std::optional<std::size_t> held;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      if (group_->eligible[worker] == 0 || group_->slots[worker] < width(waiting)) continue;
      if (!held || free_[worker] > free_[*held] ||
          (free_[worker] == free_[*held] && score_.load(worker) < score_.load(*held))) {
        held = worker;
      }
    }
    if (!held) return;
    holding_ = true;
    take_out(*held);
    std::erase(idle_, *held);
  }

  void take_out(std::size_t worker) {
    if (std::erase(order_, worker) > 0) std::ranges::make_heap(order_, after());
  }

  // Gives the candidates at `indices` (ascending) of the window to a worker that is out of the order, and puts it back
  // while it has slots.
  void admit(std::size_t worker, std::span<const std::size_t> indices, Stage stage, std::vector<Choice>& choices) {
    Tokens weight{0};
    std::int32_t sequences = 0;
    for (const std::size_t i : indices) {
      weight += candidate(window_[i]).weight;
      sequences += width(window_[i]);
    }
    Choice choice{.candidate = 0,
                  .worker = worker,
                  .stage = stage,
                  .set_size = static_cast<std::int32_t>(indices.size()),
                  .score = score_.score(worker, weight, sequences),
                  .margin = score_.margin(worker)};
    if (explain_) choice.runner_up = runner_up(worker, weight, sequences);
    for (const std::size_t i : indices) {
      choice.candidate = window_[i].position;
      choices.push_back(choice);
    }
    for (std::size_t i = indices.size(); i-- > 0;) drop(indices[i], 1);
    score_.admit(worker, weight, sequences);
    free_[worker] -= sequences;
    free_total_ -= sequences;
    if (free_[worker] > 0) push_worker(worker);
    refill_window();
  }

  // The other worker with room for the same set that scores best; equal ones: least load, then lowest position.
  [[nodiscard]] std::optional<RunnerUp> runner_up(std::size_t taker, Tokens weight, std::int32_t sequences) const {
    std::optional<RunnerUp> best;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      if (worker == taker || group_->eligible[worker] == 0 || free_[worker] < sequences) continue;
      const double its_score = score_.score(worker, weight, sequences);
      const bool better = !best || its_score > best->score ||
                          (its_score == best->score && score_.load(worker) < score_.load(best->worker));
      if (better) best = RunnerUp{worker, its_score};
    }
    return best;
  }

  TwoStageSettings settings_;
  Score score_;

  // One round's state; the memory stays.
  const GroupView* group_ = nullptr;
  std::span<const Candidate> pool_;
  bool explain_ = false;
  bool holding_ = false;            // a worker is kept for a wide overdue candidate
  std::vector<std::int32_t> free_;  // by worker position
  std::int64_t free_total_ = 0;     // over eligible workers
  std::vector<std::size_t> order_;  // heap of workers with free slots
  std::vector<std::size_t> idle_;   // workers with free slots that nothing in sight fits
  std::vector<Waiting> window_;     // oldest first
  std::size_t next_ = 0;            // first candidate not yet in sight
};

}  // namespace balanceroute
