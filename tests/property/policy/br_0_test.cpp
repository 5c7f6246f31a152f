#include "policy/br_0/br_0.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "core/random.hpp"
#include "support/group_sketch.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

std::vector<Tokens> draw_loads(Random& draw, std::size_t workers) {
  const std::uint64_t largest = draw.below(2) == 0 ? 20 : 500'000;
  std::vector<Tokens> loads(workers);
  for (Tokens& load : loads) load = Tokens{static_cast<std::int64_t>(draw.below(largest))};
  return loads;
}

// Law: the score of an admission is exactly what it takes off the imbalance.
TEST(Br0Property, ScoreIsTheDropOfImbalance) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    std::vector<Tokens> loads = draw_loads(draw, 1 + draw.below(16));
    const std::size_t worker = draw.below(loads.size());
    const Tokens size{static_cast<std::int64_t>(draw.below(draw.below(2) == 0 ? 30 : 600'000))};
    const Tokens before = imbalance(loads);
    const Tokens score = br_0_score(size, largest_load(loads) - loads[worker], loads.size());
    loads[worker] += size;
    require(score == before - imbalance(loads));
  });
}

// Law: the scores of a round's admissions, one after another, add up to the whole drop.
TEST(Br0Property, ScoresOfARoundAddUp) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    GroupSketch group;
    for (const Tokens load : draw_loads(draw, 1 + draw.below(16))) group.add({.load = load.count()});
    OneStepScore score;
    score.begin(group.view());
    std::vector<Tokens> loads = group.loads;
    double drop = 0;
    for (std::uint64_t i = draw.below(12); i > 0; --i) {
      const std::size_t worker = draw.below(loads.size());
      const Tokens size{static_cast<std::int64_t>(draw.below(100'000))};
      drop += score.score(worker, size, 1);
      score.admit(worker, size, 1);
      loads[worker] += size;
      require(score.load(worker) == loads[worker]);
    }
    require(drop == static_cast<double>((imbalance(group.loads) - imbalance(loads)).count()));
  });
}

// The round as one would write it without a thought of cost: everything recomputed at every turn. Single sequences
// only.
class SlowRound {
 public:
  SlowRound(const GroupSketch& group, const std::vector<Candidate>& pool, const TwoStageSettings& settings)
      : group_{group}, pool_{pool}, settings_{settings}, loads_{group.loads}, free_{group.free_slots} {
    for (std::size_t i = 0; i < pool.size(); ++i) waiting_.push_back({i, pool[i].passes});
  }

  std::vector<std::pair<std::size_t, std::size_t>> run() {
    while (!waiting_.empty()) {
      const auto worker = first_worker();
      if (!worker) break;
      if (waiting_.front().passes >= settings_.max_passes) {
        admit(*worker, {0});
      } else if (total_free() > *settings_.greedy_threshold) {
        admit(*worker, {best_single(*worker, settings_.stage1_window)});
      } else {
        admit(*worker, best_set(*worker));
      }
    }
    return placed_;
  }

 private:
  struct Waiting {
    std::size_t position;
    std::int32_t passes;
  };

  [[nodiscard]] std::int64_t total_free() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < free_.size(); ++i) sum += group_.eligible[i] != 0 ? free_[i] : 0;
    return sum;
  }
  [[nodiscard]] std::optional<std::size_t> first_worker() const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (group_.eligible[i] == 0 || free_[i] == 0) continue;
      const bool by_capacity = settings_.worker_order == WorkerOrder::capacity && first && free_[i] != free_[*first];
      if (!first || (by_capacity ? free_[i] > free_[*first] : loads_[i] < loads_[*first])) first = i;
    }
    return first;
  }
  [[nodiscard]] std::int64_t score(std::size_t worker, Tokens size) const {
    std::vector<Tokens> after = loads_;
    after[worker] += size;
    return (imbalance(loads_) - imbalance(after)).count();
  }
  [[nodiscard]] Tokens size_of(std::size_t index) const { return pool_[waiting_[index].position].weight; }

  [[nodiscard]] std::size_t best_single(std::size_t worker, std::size_t sight) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < std::min(sight, waiting_.size()); ++i) {
      if (score(worker, size_of(i)) > score(worker, size_of(best))) best = i;
    }
    return best;
  }
  [[nodiscard]] std::vector<std::size_t> best_set(std::size_t worker) const {
    const std::size_t sight = std::min(settings_.r_max, waiting_.size());
    std::vector<std::size_t> best;
    std::int64_t best_score = 0;
    for (const auto& set : sets_in_reading_order(sight, free_[worker])) {
      Tokens size{0};
      for (const std::size_t i : set) size += size_of(i);
      if (score(worker, size) <= best_score) continue;
      best = set;
      best_score = score(worker, size);
    }
    if (best.empty()) best = {best_single(worker, sight)};
    return best;
  }
  static std::vector<std::vector<std::size_t>> sets_in_reading_order(std::size_t items, std::int32_t most) {
    std::vector<std::vector<std::size_t>> sets;
    for (std::uint32_t members = 1; members < (std::uint32_t{1} << items); ++members) {
      std::vector<std::size_t> set;
      for (std::size_t i = 0; i < items; ++i) {
        if ((members >> i & 1) != 0) set.push_back(i);
      }
      if (set.size() <= static_cast<std::size_t>(most)) sets.push_back(set);
    }
    std::ranges::sort(sets);
    return sets;
  }
  void admit(std::size_t worker, const std::vector<std::size_t>& indices) {
    for (const std::size_t i : indices) {
      loads_[worker] += size_of(i);
      --free_[worker];
      placed_.emplace_back(waiting_[i].position, worker);
    }
    for (std::size_t n = indices.size(); n-- > 0;) {
      for (std::size_t older = 0; older < indices[n]; ++older) ++waiting_[older].passes;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(indices[n]));
    }
  }

  const GroupSketch& group_;
  const std::vector<Candidate>& pool_;
  TwoStageSettings settings_;
  std::vector<Tokens> loads_;
  std::vector<std::int32_t> free_;
  std::vector<Waiting> waiting_;
  std::vector<std::pair<std::size_t, std::size_t>> placed_;
};

TwoStageSettings draw_settings(Random& draw) {
  return {.r_max = 1 + draw.below(6),
          .greedy_threshold = static_cast<std::int64_t>(draw.below(10)),
          .worker_order = draw.below(2) == 0 ? WorkerOrder::load : WorkerOrder::capacity,
          .stage1_window = 1 + draw.below(8),
          .max_passes = static_cast<std::int32_t>(1 + draw.below(6))};
}

GroupSketch draw_group(Random& draw) {
  GroupSketch group;
  for (const Tokens load : draw_loads(draw, 2 + draw.below(5))) {
    group.add({.load = load.count(),
               .free_slots = static_cast<std::int32_t>(draw.below(4)),
               .eligible = draw.below(5) != 0,
               .sequences = static_cast<std::int32_t>(draw.below(3))});
  }
  return group;
}

std::vector<Candidate> draw_pool(Random& draw, bool wide) {
  std::vector<Sketched> all(draw.below(20));
  auto passes = static_cast<std::int32_t>(draw.below(8));
  for (Sketched& one : all) {
    passes = std::max(0, passes - static_cast<std::int32_t>(draw.below(3)));
    one = {.prompt = static_cast<std::int64_t>(draw.below(draw.below(2) == 0 ? 15 : 90'000)),
           .sequences = wide ? static_cast<std::int32_t>(1 + draw.below(4)) : 1,
           .passes = passes};
  }
  return sketch_pool(all);
}

// Law: the round places what the obvious round places, where and in which order it does.
TEST(Br0Property, RoundEqualsTheObviousRound) {
  Random unused{0};
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    const TwoStageSettings settings = draw_settings(draw);
    const GroupSketch group = draw_group(draw);
    const std::vector<Candidate> pool = draw_pool(draw, false);
    Br0 policy{settings};
    std::vector<Choice> choices;
    policy.decide({.group = group.view(), .pool = pool, .explain = draw.below(2) == 0}, unused, choices);
    std::vector<std::pair<std::size_t, std::size_t>> placed;
    std::ranges::transform(choices, std::back_inserter(placed),
                           [](const Choice& choice) { return std::pair{choice.candidate, choice.worker}; });
    require(placed == (SlowRound{group, pool, settings}.run()));
  });
}

// Law: requests of several sequences get their slots together or not at all; no worker is given more than it has; a
// candidate is placed once; and no worker is left with room for one of those in sight, unless it is kept for an overdue
// one.
TEST(Br0Property, WideRequestsKeepToTheSlots) {
  Random unused{0};
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    TwoStageSettings settings = draw_settings(draw);
    const bool lateness = draw.below(2) == 0;
    if (!lateness) settings.max_passes = 1000;
    const GroupSketch group = draw_group(draw);
    const std::vector<Candidate> pool = draw_pool(draw, true);
    Br0 policy{settings};
    std::vector<Choice> choices;
    policy.decide({.group = group.view(), .pool = pool}, unused, choices);

    std::vector<std::int32_t> free = group.free_slots;
    std::vector<bool> placed(pool.size(), false);
    for (const Choice& choice : choices) {
      require(group.eligible[choice.worker] != 0);
      require(!placed[choice.candidate]);
      placed[choice.candidate] = true;
      free[choice.worker] -= pool[choice.candidate].request.sequences;
      require(free[choice.worker] >= 0);
    }
    if (lateness) return;
    std::int32_t most_free = 0;
    for (std::size_t worker = 0; worker < free.size(); ++worker) {
      if (group.eligible[worker] != 0) most_free = std::max(most_free, free[worker]);
    }
    std::size_t in_sight = 0;
    for (std::size_t i = 0; i < pool.size() && in_sight < settings.stage1_window; ++i) {
      if (placed[i]) continue;
      ++in_sight;
      require(pool[i].request.sequences > most_free);
    }
  });
}

}  // namespace
}  // namespace balanceroute
