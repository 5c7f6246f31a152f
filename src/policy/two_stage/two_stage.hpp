// two_stage.hpp - the round shared by the BR policies: who takes which waiting requests, given a way to score a set.
//
// Stage 1, while many slots are free: the first worker in order takes the best single candidate. Stage 2: the first
// worker in order takes the best set of the first r_max candidates; if no set helps it takes the least harmful one, so
// no slot stays empty while a request waits that fits it. A worker goes back in order while it has slots. Source:
// BalanceRoute (arXiv 2605.06113), section 4.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policy/policy.hpp"
#include "policy/two_stage/best_subset.hpp"
#include "policy/two_stage/settings.hpp"

namespace balanceroute {

// SetScore projects the loads of one group over a round and scores sets of admissions on them.
template <class T>
concept SetScore = requires(T& score, const T& now, const GroupView& group, std::size_t worker, Tokens weight,
                            std::int32_t sequences, std::size_t count) {
  score.begin(group);                                                // start of a round
  score.admit(worker, weight, sequences);                            // raise the projection
  { now.score(worker, weight, sequences) } -> std::same_as<double>;  // higher is better; concave in weight
  { score.peak(worker, sequences) } -> std::same_as<Tokens>;         // the least weight where it is highest
  score.expect(worker, sequences, count);                            // so many scores follow
  { now.load(worker) } -> std::same_as<Tokens>;                      // projected, for the order of workers
  { now.margin(worker) } -> std::same_as<Tokens>;                    // room below the projected envelope
};

// TwoStage carries out rounds.
//   Invariants  a choice never exceeds a worker's free slots and KV space; k sequences of a request stay together.
//   Overdue     a candidate passed over by max_passes later ones is first and alone, whatever its class. While it is
//               too wide for every worker, the one with most free slots takes nothing else until it fits; the others go
//               on.
//   Cost        a round: O(G) + O(log G + window + search for a set) an admission; no allocation once warm.
template <SetScore Score>
class TwoStage {
 public:
  explicit TwoStage(const TwoStageSettings& settings, Score score = {})
      : settings_{settings}, score_{std::move(score)} {}

  void decide(const RoundInput& input, std::vector<Choice>& choices) {
    begin(input);
    while (!order_.empty() && !window_.empty()) {
      if (const auto overdue = first_overdue()) {
        place_overdue(*overdue, choices);
        continue;
      }
      const std::size_t worker = pop_worker();
      const bool placed = free_total_ > greedy_threshold_ ? place_single(worker, choices) : place_set(worker, choices);
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
    kv_free_.assign(input.group.kv_free.begin(), input.group.kv_free.end());
    free_total_ = 0;
    order_.clear();
    idle_.clear();
    holding_ = false;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      if (!group_->has_room(worker, 1)) continue;
      free_total_ += free_[worker];
      order_.push_back(worker);
    }
    greedy_threshold_ = settings_.greedy_threshold.value_or(auto_greedy_threshold(free_total_));
    std::ranges::make_heap(order_, after());
    window_.clear();
    next_ = 0;
    refill_window();
  }

  [[nodiscard]] const Candidate& candidate(const Waiting& waiting) const { return pool_[waiting.position]; }
  [[nodiscard]] std::int32_t width(const Waiting& waiting) const { return candidate(waiting).request.sequences; }
  [[nodiscard]] bool fits(const Waiting& waiting, std::size_t worker) const {
    return width(waiting) <= free_[worker] && candidate(waiting).kv <= kv_free_[worker];
  }

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
    const auto [woken, end] = std::ranges::partition(idle_, [&](std::size_t worker) {
      return free_[worker] < narrowest ||
             std::ranges::none_of(window_, [&](const Waiting& waiting) { return fits(waiting, worker); });
    });
    for (auto worker = woken; worker != end; ++worker) push_worker(*worker);
    idle_.erase(woken, end);
  }

  // Takes one out of sight; when it is admitted the older ones have been passed over.
  void drop(std::size_t index, std::int32_t passes) {
    for (std::size_t older = 0; older < index; ++older) window_[older].passes += passes;
    window_.erase(window_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // --- placing ---

  // The scores of one worker.
  struct OnWorker {
    Score& all;
    std::size_t worker;

    [[nodiscard]] double score(Tokens weight, std::int32_t sequences) const {
      return all.score(worker, weight, sequences);
    }
    [[nodiscard]] Tokens peak(std::int32_t sequences) { return all.peak(worker, sequences); }
    void expect(std::int32_t sequences, std::size_t count) { all.expect(worker, sequences, count); }
  };

  // What fits a worker, of the first `sight` candidates or the first `most` that do.
  void collect(std::size_t worker, std::size_t sight, std::size_t most) {
    in_window_.clear();
    items_.clear();
    for (std::size_t i = 0; i < std::min(sight, window_.size()) && items_.size() < most; ++i) {
      if (!fits(window_[i], worker)) continue;
      in_window_.push_back(i);
      items_.push_back(
          {.weight = candidate(window_[i]).weight, .sequences = width(window_[i]), .kv = candidate(window_[i]).kv});
    }
  }
  [[nodiscard]] Room room(std::size_t worker) const { return {.slots = free_[worker], .kv = kv_free_[worker]}; }

  // Stage 1.
  bool place_single(std::size_t worker, std::vector<Choice>& choices) {
    collect(worker, settings_.stage1_window, settings_.stage1_window);
    if (items_.empty()) return false;
    OnWorker scores{score_, worker};
    admit(worker, search_.best_single(items_, room(worker), scores), Stage::single, choices);
    return true;
  }

  // Stage 2.
  bool place_set(std::size_t worker, std::vector<Choice>& choices) {
    collect(worker, window_.size(), settings_.r_max);
    if (items_.empty()) return false;
    OnWorker scores{score_, worker};
    const Subset& best = search_.best(items_, room(worker), scores);
    if (best.score > 0) {
      admit(worker, best, Stage::subset, choices);
    } else {
      admit(worker, search_.best_single(items_, room(worker), scores), Stage::work_conserving, choices);
    }
    return true;
  }

  // In the window. Of one class it can only be the front one; those of a higher class may be before it.
  [[nodiscard]] std::optional<std::size_t> first_overdue() const {
    for (std::size_t i = 0; i < window_.size(); ++i) {
      if (window_[i].passes >= settings_.max_passes) return i;
    }
    return std::nullopt;
  }

  // It goes first and alone, on the first worker in order that has room for it.
  void place_overdue(std::size_t overdue, std::vector<Choice>& choices) {
    std::optional<std::size_t> taker;
    for (const std::size_t worker : order_) {
      if (!fits(window_[overdue], worker)) continue;
      if (!taker || comes_after(*taker, worker)) taker = worker;
    }
    if (taker) {
      take_out(*taker);
      in_window_.assign(1, overdue);
      admit(*taker, Stage::overdue, choices);
      return;
    }
    if (!holding_) hold_for(window_[overdue]);
    drop(overdue, 0);
    refill_window();
  }

  // Keeps the worker that will soonest have room for an overdue candidate from taking others this round: the one that
  // lacks fewest slots, then least KV space.
  void hold_for(const Waiting& waiting) {
    const auto slots_towards = [&](std::size_t worker) { return std::min(free_[worker], width(waiting)); };
    const auto sooner = [&](std::size_t a, std::size_t b) {
      if (slots_towards(a) != slots_towards(b)) return slots_towards(a) > slots_towards(b);
      if (kv_free_[a] != kv_free_[b]) return kv_free_[a] > kv_free_[b];
      return score_.load(a) < score_.load(b);
    };
    std::optional<std::size_t> held;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      if (group_->eligible[worker] == 0 || group_->slots[worker] < width(waiting)) continue;
      if (!held || sooner(worker, *held)) held = worker;
    }
    if (!held) return;
    holding_ = true;
    take_out(*held);
    std::erase(idle_, *held);
  }

  void take_out(std::size_t worker) {
    if (std::erase(order_, worker) > 0) std::ranges::make_heap(order_, after());
  }

  // Narrows in_window_ to the members of a set of it.
  void admit(std::size_t worker, const Subset& set, Stage stage, std::vector<Choice>& choices) {
    std::size_t kept = 0;
    for (const std::size_t member : set.members) in_window_[kept++] = in_window_[member];
    in_window_.resize(kept);
    admit(worker, stage, choices);
  }

  // Gives the candidates at in_window_ (ascending) to a worker that is out of the order, and puts it back while it has
  // slots.
  void admit(std::size_t worker, Stage stage, std::vector<Choice>& choices) {
    SubsetItem all{.weight = Tokens{0}, .sequences = 0};
    for (const std::size_t i : in_window_) {
      all.weight += candidate(window_[i]).weight;
      all.sequences += width(window_[i]);
      all.kv += candidate(window_[i]).kv;
    }
    Choice choice{.candidate = 0,
                  .worker = worker,
                  .stage = stage,
                  .set_size = static_cast<std::int32_t>(in_window_.size()),
                  .score = score_.score(worker, all.weight, all.sequences),
                  .margin = score_.margin(worker)};
    if (explain_) choice.runner_up = runner_up(worker, all);
    for (const std::size_t i : in_window_) {
      choice.candidate = window_[i].position;
      choices.push_back(choice);
    }
    for (std::size_t i = in_window_.size(); i-- > 0;) drop(in_window_[i], 1);
    score_.admit(worker, all.weight, all.sequences);
    free_[worker] -= all.sequences;
    kv_free_[worker] -= all.kv;
    free_total_ -= all.sequences;
    if (free_[worker] > 0) push_worker(worker);
    refill_window();
  }

  // The other worker with room for the same set that scores best; equal ones: least load, then lowest position.
  [[nodiscard]] std::optional<RunnerUp> runner_up(std::size_t taker, const SubsetItem& set) const {
    std::optional<RunnerUp> best;
    for (std::size_t worker = 0; worker < free_.size(); ++worker) {
      const bool fit = free_[worker] >= set.sequences && kv_free_[worker] >= set.kv;
      if (worker == taker || group_->eligible[worker] == 0 || !fit) continue;
      const double its_score = score_.score(worker, set.weight, set.sequences);
      const bool better = !best || its_score > best->score ||
                          (its_score == best->score && score_.load(worker) < score_.load(best->worker));
      if (better) best = RunnerUp{worker, its_score};
    }
    return best;
  }

  TwoStageSettings settings_;
  Score score_;
  SubsetSearch search_;

  // One round's state; the memory stays.
  const GroupView* group_ = nullptr;
  std::span<const Candidate> pool_;
  bool explain_ = false;
  bool holding_ = false;  // a worker is kept for an overdue candidate
  std::int64_t greedy_threshold_ = 0;
  std::vector<std::int32_t> free_;  // by worker position
  std::vector<Tokens> kv_free_;
  std::int64_t free_total_ = 0;         // over eligible workers
  std::vector<std::size_t> order_;      // heap of workers with free slots
  std::vector<std::size_t> idle_;       // workers with free slots that nothing in sight fits
  std::vector<Waiting> window_;         // oldest first
  std::size_t next_ = 0;                // first candidate not yet in sight
  std::vector<SubsetItem> items_;       // of a search
  std::vector<std::size_t> in_window_;  // where they are in the window; then, where the chosen ones are
};

}  // namespace balanceroute
