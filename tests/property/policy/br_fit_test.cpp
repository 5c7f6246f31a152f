// br_fit against its definition, written down step by step with nothing sorted, shared or skipped.
#include "policy/br_fit/br_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/pool.hpp"
#include "core/random.hpp"
#include "support/group_sketch.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

constexpr std::size_t kLooks = 4;
constexpr int kNone = -1;
using Loads = std::array<double, kLooks>;

// Single sequences, one group.
class Definition {
 public:
  Definition(const BrFitParams& params, const Outlook& outlook, const PromptSample& prompts, const MeanAge& ages)
      : params_{params}, outlook_{outlook}, prompts_{prompts}, ages_{ages} {}

  struct Placed {
    std::size_t candidate;
    std::size_t worker;
    Stage stage;
    friend bool operator==(const Placed&, const Placed&) = default;
  };

  std::vector<Placed> round(const GroupSketch& group, std::span<const Candidate> all) {
    if (!read(group, all)) return {};
    close();
    if (open_free_ == 0 && deep()) return {};
    measure(all);
    put_late(all);
    saturated() ? fill() : place();
    for (int pass = 0; pass < params_.passes; ++pass) improve();
    hold();
    if (!deep()) release();
    std::vector<Placed> placed;
    for (const Item& item : window_) {
      if (item.worker != kNone) placed.push_back({item.position, static_cast<std::size_t>(item.worker), item.stage});
    }
    return placed;
  }
  void forget(RequestId request) { held_.erase(request); }

  // What the cost of the group's distances rises by when all these are placed, and the sum of its parts without sign.
  struct Rise {
    double total = 0;
    double parts = 0;
  };
  Rise rise_of(const GroupSketch& group, std::span<const Candidate> all, std::span<const Choice> choices) {
    if (!read(group, all)) return {};
    for (Worker& worker : workers_) open_free_ += worker.free;
    measure(all);
    Rise sum;
    for (const Choice& choice : choices) {
      Item& item = *std::ranges::find(window_, choice.candidate, &Item::position);
      const double its = rise(workers_[choice.worker], item.size);
      move(item, static_cast<int>(choice.worker));
      sum.total += its;
      sum.parts += std::abs(its);
    }
    return sum;
  }

 private:
  struct Worker {
    WorkerId id;
    double load;  // L
    double with;  // L'
    int free;
    Tokens kv;
    bool eligible;
    bool open;
    Loads ahead;  // P
  };
  struct Item {
    std::size_t position;
    RequestId request;
    double prompt;  // s
    double late;
    Tokens kv;
    double price = 0;
    Loads size{};  // x
    int worker = kNone;
    Stage stage = Stage::single;
    bool withdrawn = false;
  };

  [[nodiscard]] std::int64_t p() const { return std::ssize(waiting_); }
  [[nodiscard]] bool deep() const { return p() >= all_free_; }
  [[nodiscard]] bool saturated() const { return p() >= open_free_; }
  [[nodiscard]] std::int64_t m() const { return std::min(open_free_, p()); }
  [[nodiscard]] std::int64_t base() const {
    return std::min(p(), std::max<std::int64_t>(16, std::min<std::int64_t>(64, p() / 4)));
  }
  [[nodiscard]] double late_unit() const { return std::max(16.0, 0.2 * static_cast<double>(p())); }

  bool read(const GroupSketch& group, std::span<const Candidate> all) {
    workers_.clear();
    window_.clear();
    put_.clear();
    waiting_.clear();
    all_free_ = 0;
    open_free_ = 0;
    running_ = 0;
    for (std::size_t g = 0; g < group.loads.size(); ++g) {
      const int free = group.eligible[g] != 0 ? group.free_slots[g] : 0;
      const auto load = static_cast<double>(group.loads[g].count());
      workers_.push_back({group.workers[g], load, load, free, group.kv_free[g], group.eligible[g] != 0, free > 0, {}});
      all_free_ += free;
      running_ += group.sequences[g];
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool fits = std::ranges::any_of(workers_, [&](const Worker& w) { return w.free > 0 && w.kv >= all[i].kv; });
      if (fits) waiting_.push_back(i);
    }
    if (all_free_ == 0 || waiting_.empty()) return false;
    double total = 0;
    most_ = 0;
    least_ = std::numeric_limits<double>::infinity();
    for (const Worker& worker : workers_) {
      total += worker.load;
      most_ = std::max(most_, worker.load);
      least_ = std::min(least_, worker.load);
    }
    mean_ = total / static_cast<double>(workers_.size());
    worth_ = params_.hold_price * (static_cast<double>(params_.fixed_step_tokens) + most_) /
             static_cast<double>(std::max<std::int64_t>(1, running_));
    smallest_ = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < base(); ++i) {
      smallest_ = std::min(smallest_, static_cast<double>(all[waiting_[static_cast<std::size_t>(i)]].weight.count()));
    }
    return true;
  }

  void close() {
    for (Worker& worker : workers_) {
      const bool lifts = worker.free > 0 && worker.load > mean_ && worker.load + smallest_ > most_ + worth_;
      const bool closed = lifts && closed_[worker.id] < params_.hold_rounds;
      closed_[worker.id] = closed ? closed_[worker.id] + 1 : 0;
      if (closed) worker.open = false;
      if (worker.open) open_free_ += worker.free;
    }
  }

  void measure(std::span<const Candidate> all) {
    const std::int64_t size = deep() ? std::min(p(), std::max(base(), 4 * m())) : p();
    for (std::int64_t i = 0; i < size; ++i) {
      const std::size_t position = waiting_[static_cast<std::size_t>(i)];
      const Candidate& candidate = all[position];
      Item item{.position = position,
                .request = candidate.request.id,
                .prompt = static_cast<double>(candidate.weight.count()),
                .late = std::max(0.0, static_cast<double>(candidate.passes) - static_cast<double>(position)),
                .kv = candidate.kv};
      item.size[0] = item.prompt + (saturated() ? params_.answer_share * ages_.of(candidate.request.prompt) : 0);
      window_.push_back(item);
    }
    const auto count = static_cast<double>(window_.size());
    double prompts = 0;
    double sizes = 0;
    double squares = 0;
    for (const Item& item : window_) {
      prompts += item.prompt;
      sizes += item.size[0];
      squares += item.size[0] * item.size[0];
    }
    const double variance = std::max(0.0, squares / count - (sizes / count) * (sizes / count));
    for (Item& item : window_) {
      const double units = item.late / late_unit();
      item.price = params_.lateness_price * variance * units * units;
    }
    for (std::size_t k = 0; k < kLooks; ++k) look(k, prompts / count);
    set_curvature();
  }

  // P, x, T and C of one look ahead.
  void look(std::size_t k, double mean_prompt) {
    double gone = 0;
    for (Worker& worker : workers_) {
      worker.ahead[k] = worker.load;
      if (k == 0) continue;
      worker.ahead[k] += outlook_.sums(worker.id).drift[k - 1];
      gone += outlook_.sums(worker.id).gone[k - 1];
    }
    double target = 0;
    if (k > 0) {
      const double h = outlook_.horizons()[k - 1];
      const double q = outlook_.entry_survival()[k - 1];
      const double places = static_cast<double>(open_free_) - static_cast<double>(m()) + gone;
      const double refill =
          places > 0
              ? std::clamp((static_cast<double>(p()) - static_cast<double>(m())) / std::max(1.0, places), 0.0, 1.0)
              : 0;
      const double refill_load = refill * (mean_prompt + h / 2);
      for (Worker& worker : workers_) worker.ahead[k] += outlook_.sums(worker.id).gone[k - 1] * refill_load;
      for (Item& item : window_) item.size[k] = q * (item.size[0] + h) + (1 - q) * refill_load;
    }
    const double share = saturated() ? static_cast<double>(open_free_) / static_cast<double>(window_.size()) : 1.0;
    for (const Item& item : window_) target += item.size[k] * share;
    for (const Worker& worker : workers_) target += worker.ahead[k];
    target_[k] = target / static_cast<double>(workers_.size());
    ceiling_[k] = target_[k];
  }

  void set_curvature() {
    below_.fill(1);
    if (saturated()) return;
    ceiling_[0] += params_.ceiling_share * std::max(0.0, most_ - target_[0]);
    below_[0] = 1;
    if (!prompts_.known() || mean_ <= 0) return;
    double prompts = 0;
    for (const Worker& worker : workers_) prompts += outlook_.running_prompts(worker.id);
    const double share = prompts / (mean_ * static_cast<double>(workers_.size()));
    const double excess = (prompts_.q99() - prompts_.mean()) / mean_;
    below_[0] = -std::clamp(params_.giant_gain * excess * share - 1, -1.0, 1.0);
  }

  [[nodiscard]] double cost(const Loads& distance) const {
    double sum = 0;
    for (std::size_t k = 0; k < (params_.horizon_weight > 0 ? kLooks : 1); ++k) {
      const double weight = k == 0 ? 1 : params_.horizon_weight;
      sum += weight * (distance[k] > 0 ? params_.excess_weight : below_[k]) * (distance[k] * distance[k]);
    }
    return sum;
  }
  [[nodiscard]] double cost_with(const Worker& worker, const Loads& more) const {
    Loads distance;
    for (std::size_t k = 0; k < kLooks; ++k) distance[k] = worker.ahead[k] + more[k] - ceiling_[k];
    return cost(distance);
  }
  [[nodiscard]] double rise(const Worker& worker, const Loads& more) const {
    return cost_with(worker, more) - cost_with(worker, {});
  }

  void move(Item& item, int to) {
    if (item.worker != kNone) change(workers_[static_cast<std::size_t>(item.worker)], item, -1);
    item.worker = to;
    if (to != kNone) change(workers_[static_cast<std::size_t>(to)], item, 1);
  }
  static void change(Worker& worker, const Item& item, int sign) {
    for (std::size_t k = 0; k < kLooks; ++k) worker.ahead[k] += sign * item.size[k];
    worker.with += sign * item.prompt;
    worker.free -= sign;
    worker.kv -= sign * item.kv;
  }
  static bool room(const Worker& worker, const Item& item) { return worker.free > 0 && worker.kv >= item.kv; }

  // The open worker with room that values least; equal ones: the lower load, then the first.
  template <class Value>
  int least(const Item& item, const Value& value) const {
    int best = kNone;
    double best_value = 0;
    for (int g = 0; g < std::ssize(workers_); ++g) {
      const Worker& worker = workers_[static_cast<std::size_t>(g)];
      if (g == item.worker || !worker.open || !room(worker, item)) continue;
      const double its = value(worker);
      const bool better = best == kNone || its < best_value ||
                          (its == best_value && worker.ahead[0] < workers_[static_cast<std::size_t>(best)].ahead[0]);
      if (!better) continue;
      best = g;
      best_value = its;
    }
    return best;
  }
  [[nodiscard]] int least_rise(const Item& item) const {
    return least(item, [&](const Worker& worker) { return rise(worker, item.size); });
  }

  // Those too late, oldest first. The first that no worker has room for keeps one; the oldest of those for which none
  // had the KV space to begin with comes before.
  void put_late(std::span<const Candidate> all) {
    bool kept = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::ranges::find(waiting_, i) != waiting_.end()) continue;
      kept = late_enough(static_cast<double>(all[i].passes) - static_cast<double>(i));
      if (kept) keep_for(all[i].kv);
      break;
    }
    for (std::size_t i = 0; i < window_.size(); ++i) {
      const bool slots_left = std::ranges::any_of(workers_, [](const Worker& w) { return w.open && w.free > 0; });
      if (!slots_left || !late_enough(window_[i].late)) continue;
      const int to = least_rise(window_[i]);
      if (to != kNone) {
        window_[i].stage = Stage::overdue;
        move(window_[i], to);
        put_.push_back(i);
      } else if (!kept) {
        keep_for(window_[i].kv);
        kept = true;
      }
    }
  }
  [[nodiscard]] bool late_enough(double places) const {
    return std::max(0.0, places) >= params_.lateness_cap * late_unit();
  }

  // The worker that lacks the smallest part of a slot or of the KV space takes nothing else.
  void keep_for(Tokens kv) {
    Worker* best = nullptr;
    const auto lack = [&](const Worker& worker) {
      const double missing = static_cast<double>(std::max(kv - worker.kv, Tokens{0}).count()) /
                             static_cast<double>(std::max<std::int64_t>(1, kv.count()));
      return std::pair{std::max(worker.free > 0 ? 0.0 : 1.0, missing), worker.ahead[0]};
    };
    for (Worker& worker : workers_) {
      if (worker.eligible && (best == nullptr || lack(worker) < lack(*best))) best = &worker;
    }
    if (best == nullptr) return;
    best->open = false;
    best->free = 0;
  }

  // Of those that `may`, up to `neighbours` on each side of the size.
  template <class May>
  std::vector<std::size_t> near(double size, const May& may) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < window_.size(); ++i) {
      if (may(window_[i])) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return window_[i].size[0]; });
    const auto from = std::ranges::find_if(order, [&](std::size_t i) { return window_[i].size[0] >= size; });
    const auto first =
        std::max(order.begin(), from - std::min<std::ptrdiff_t>(params_.neighbours, from - order.begin()));
    const auto last = from + std::min<std::ptrdiff_t>(params_.neighbours, order.end() - from);
    return {first, last};
  }

  // The one of least value; equal ones: the older.
  template <class Value>
  static std::optional<std::size_t> cheapest(std::vector<std::size_t> among, const Value& value) {
    std::ranges::sort(among);
    std::optional<std::size_t> best;
    double best_value = 0;
    for (const std::size_t i : among) {
      const double its = value(i);
      if (best && its >= best_value) continue;
      best = i;
      best_value = its;
    }
    return best;
  }

  void fill() {
    for (;;) {
      int g = kNone;
      double most = 0;
      for (int other = 0; other < std::ssize(workers_); ++other) {
        const Worker& worker = workers_[static_cast<std::size_t>(other)];
        if (!worker.open || worker.free == 0) continue;
        double need = 0;
        for (std::size_t k = 0; k < (params_.horizon_weight > 0 ? kLooks : 1); ++k) {
          need += (k == 0 ? 1 : params_.horizon_weight) * (target_[k] - worker.ahead[k]);
        }
        need /= worker.free;
        const bool better = g == kNone || need > most ||
                            (need == most && worker.ahead[0] < workers_[static_cast<std::size_t>(g)].ahead[0]);
        if (!better) continue;
        g = other;
        most = need;
      }
      if (g == kNone) return;
      Worker& worker = workers_[static_cast<std::size_t>(g)];
      Loads gap;
      for (std::size_t k = 0; k < kLooks; ++k) gap[k] = (target_[k] - worker.ahead[k]) / worker.free;
      const auto may = [&](const Item& item) { return item.worker == kNone && room(worker, item); };
      std::vector<std::size_t> among = near(gap[0], may);
      std::int64_t oldest = 0;
      for (std::size_t i = 0; i < window_.size() && oldest < params_.neighbours; ++i) {
        if (!may(window_[i])) continue;
        among.push_back(i);
        ++oldest;
      }
      const auto best = cheapest(among, [&](std::size_t i) {
        Loads distance;
        for (std::size_t k = 0; k < kLooks; ++k) distance[k] = window_[i].size[k] - gap[k];
        return cost(distance) - window_[i].price;
      });
      if (!best) {
        worker.open = false;
        continue;
      }
      move(window_[*best], g);
      put_.push_back(*best);
    }
  }

  void place() {
    for (const std::size_t i : by_falling_prompt()) {
      if (window_[i].worker != kNone) continue;
      const int to = least_rise(window_[i]);
      if (to == kNone) continue;
      move(window_[i], to);
      put_.push_back(i);
    }
  }

  [[nodiscard]] std::vector<std::size_t> by_falling_prompt() const {
    std::vector<std::size_t> order(window_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return window_[i].prompt; });
    return order;
  }

  void improve() {
    for (std::size_t& i : put_) {
      if (replace(i)) continue;
      if (move_on(window_[i])) continue;
      swap(window_[i]);
    }
  }

  // One brought in takes the place of the other in the order, and so is not looked at again.
  bool replace(std::size_t& i) {
    Item& item = window_[i];
    if (!saturated() || item.stage == Stage::overdue) return false;
    const int g = item.worker;
    const Worker& worker = workers_[static_cast<std::size_t>(g)];
    const double before = cost_with(worker, {});
    const auto delta = [&](std::size_t other) {
      Loads more;
      for (std::size_t k = 0; k < kLooks; ++k) more[k] = window_[other].size[k] - item.size[k];
      return cost_with(worker, more) - before + item.price - window_[other].price;
    };
    const auto may = [&](const Item& other) { return other.worker == kNone && worker.kv + item.kv >= other.kv; };
    const auto best = cheapest(near(item.size[0] - (worker.ahead[0] - ceiling_[0]), may), delta);
    if (!best || delta(*best) >= -1e-9 * (std::abs(before) + item.price)) return false;
    move(item, kNone);
    move(window_[*best], g);
    i = *best;
    return true;
  }

  bool move_on(Item& item) {
    const int to = least_rise(item);
    if (to == kNone) return false;
    const Worker& here = workers_[static_cast<std::size_t>(item.worker)];
    const Worker& there = workers_[static_cast<std::size_t>(to)];
    Loads less;
    for (std::size_t k = 0; k < kLooks; ++k) less[k] = -item.size[k];
    const double costs = std::abs(cost_with(here, {})) + std::abs(cost_with(there, {}));
    if (rise(here, less) + rise(there, item.size) >= -1e-9 * costs) return false;
    move(item, kNone);
    move(item, to);
    return true;
  }

  void swap(Item& item) {
    const Worker& here = workers_[static_cast<std::size_t>(item.worker)];
    const auto there = [&](const Item& other) -> const Worker& {
      return workers_[static_cast<std::size_t>(other.worker)];
    };
    const auto may = [&](const Item& other) {
      return other.worker != kNone && other.worker != item.worker && here.kv + item.kv >= other.kv &&
             there(other).kv + other.kv >= item.kv;
    };
    const auto delta = [&](std::size_t j) {
      Loads in;
      Loads out;
      for (std::size_t k = 0; k < kLooks; ++k) {
        in[k] = window_[j].size[k] - item.size[k];
        out[k] = -in[k];
      }
      return rise(here, in) + rise(there(window_[j]), out);
    };
    const auto best = cheapest(near(item.size[0] - (here.ahead[0] - ceiling_[0]), may), delta);
    if (!best) return;
    Item& other = window_[*best];
    const double costs = std::abs(cost_with(here, {})) + std::abs(cost_with(there(other), {}));
    if (delta(*best) >= -1e-9 * costs) return;
    const int g = item.worker;
    const int h = other.worker;
    move(item, kNone);
    move(other, kNone);
    move(item, h);
    move(other, g);
  }

  void hold() {
    for (const std::size_t i : by_falling_prompt()) {
      Item& item = window_[i];
      if (item.worker == kNone || item.stage == Stage::overdue || held_[item.request] >= params_.hold_rounds) continue;
      const double load = workers_[static_cast<std::size_t>(item.worker)].with;
      if (load <= most_ + worth_ || least_ + item.prompt >= load - worth_) continue;
      int fullest = kNone;
      for (int g = 0; g < std::ssize(workers_); ++g) {
        const Worker& worker = workers_[static_cast<std::size_t>(g)];
        if (g == item.worker || !worker.open || !room(worker, item) || worker.with + item.prompt > most_ + worth_) {
          continue;
        }
        if (fullest == kNone || worker.with > workers_[static_cast<std::size_t>(fullest)].with) fullest = g;
      }
      move(item, kNone);
      if (fullest != kNone) {
        move(item, fullest);
      } else {
        item.withdrawn = true;
        ++held_[item.request];
      }
    }
  }

  void release() {
    for (Item& item : window_) {
      if (item.worker != kNone || item.withdrawn) continue;
      if (held_[item.request] < params_.hold_rounds) {
        ++held_[item.request];
        continue;
      }
      int lightest = kNone;
      for (int g = 0; g < std::ssize(workers_); ++g) {
        const Worker& worker = workers_[static_cast<std::size_t>(g)];
        if (!room(worker, item)) continue;
        if (lightest == kNone || worker.with < workers_[static_cast<std::size_t>(lightest)].with) lightest = g;
      }
      if (lightest == kNone) continue;
      item.stage = Stage::work_conserving;
      move(item, lightest);
    }
  }

  BrFitParams params_;
  const Outlook& outlook_;
  const PromptSample& prompts_;
  const MeanAge& ages_;
  std::map<RequestId, std::int64_t> held_;
  std::map<WorkerId, std::int64_t> closed_;

  std::vector<std::size_t> waiting_;
  std::vector<Worker> workers_;
  std::vector<Item> window_;
  std::vector<std::size_t> put_;
  std::int64_t all_free_ = 0;
  std::int64_t open_free_ = 0;
  std::int64_t running_ = 0;
  double mean_ = 0;
  double most_ = 0;
  double least_ = 0;
  double worth_ = 0;
  double smallest_ = 0;
  Loads target_{};
  Loads ceiling_{};
  Loads below_{};
};

// A group whose loads, slots and KV space change at random, with a pool, under the policy and its definition at once.
class TwinRounds {
 public:
  TwinRounds(std::uint64_t seed, const BrFitParams& params, std::size_t workers)
      : draw_{seed}, policy_{params}, outlook_{params}, definition_{params, outlook_, prompts_, ages_} {
    const std::uint64_t load = draw_.below(3) == 0 ? 20 : 60'000;
    for (std::size_t g = 0; g < workers; ++g) {
      group_.add({.load = static_cast<std::int64_t>(draw_.below(load)),
                  .free_slots = static_cast<std::int32_t>(draw_.below(3)),
                  .eligible = draw_.below(12) != 0,
                  .sequences = static_cast<std::int32_t>(1 + draw_.below(40)),
                  .kv_free = tight_ ? Tokens{static_cast<std::int64_t>(draw_.below(20'000))} : kUnlimitedKv});
    }
    learn();
  }

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      arrive(quiet_ ? draw_.below(2) : draw_.below(draw_.below(4) == 0 ? 60 : 6));
      round();
      depart();
    }
  }

 private:
  Tokens draw_prompt() {
    if (draw_.below(20) == 0) return Tokens{static_cast<std::int64_t>(draw_.below(60'000))};
    return Tokens{static_cast<std::int64_t>(draw_.below(draw_.below(4) == 0 ? 8 : 3'000))};
  }

  // Both are told of requests that ran and ended, so that curve, ages and projections are known; or of too few.
  void learn() {
    const std::uint64_t ends = draw_.below(3) == 0 ? 110 : 10;
    for (std::uint64_t i = 0; i < ends; ++i) {
      const Tokens prompt = draw_prompt();
      const auto length = static_cast<std::int64_t>(1 + draw_.below(prompt < Tokens{1'000} ? 300 : 30));
      run({.id = RequestId{next_}, .prompt = prompt}, draw_.below(group_.loads.size()));
      ages_.finished(prompt, Tokens{length});
      outlook_.left(RequestId{next_}, Tokens{length}, LeaseEnd::finished);
      policy_.left(RequestId{next_++}, Tokens{length}, LeaseEnd::finished);
    }
    for (std::uint64_t i = draw_.below(20); i > 0; --i) {
      run({.id = RequestId{next_++},
           .prompt = draw_prompt(),
           .generated = Tokens{static_cast<std::int64_t>(draw_.below(500))}},
          draw_.below(group_.loads.size()));
    }
  }
  void run(const Request& request, std::size_t worker) {
    outlook_.admitted(request, GroupId{0}, group_.workers[worker]);
    policy_.admitted(request, GroupId{0}, group_.workers[worker]);
  }

  void arrive(std::uint64_t count) {
    for (; count > 0; --count) {
      const Tokens prompt = draw_prompt();
      const Candidate candidate{
          .request = {.id = RequestId{next_}, .prompt = prompt},
          .weight = prompt,
          .kv = prompt,
          .serial = next_,
          .passes = static_cast<std::int32_t>(draw_.below(tight_ ? 6 : 30) == 0 ? 100 + draw_.below(60) : 0)};
      ++next_;
      prompts_.add(prompt);
      policy_.arrived(candidate);
      pool_.push(candidate);
    }
  }

  void round() {
    std::vector<Choice> choices;
    policy_.decide({.group = group_.view(), .pool = pool_.candidates()}, draw_, choices);
    std::vector<Definition::Placed> placed;
    for (const Choice& choice : choices) placed.push_back({choice.candidate, choice.worker, choice.stage});
    require(placed == definition_.round(group_, pool_.candidates()));
    std::vector<std::size_t> taken;
    for (const auto& [position, worker, stage] : placed) {
      const Candidate& candidate = pool_.candidates()[position];
      run(candidate.request, worker);
      definition_.forget(candidate.request.id);
      group_.loads[worker] += candidate.weight;
      group_.kv_free[worker] -= candidate.kv;
      require(--group_.free_slots[worker] >= 0 && group_.kv_free[worker] >= Tokens{0});
      ++group_.sequences[worker];
      taken.push_back(position);
    }
    pool_.take(taken);
  }

  void depart() {
    for (std::size_t g = 0; g < group_.loads.size(); ++g) {
      group_.loads[g] += Tokens{group_.sequences[g]};
      if (draw_.below(3) != 0 || group_.sequences[g] <= 1) continue;
      const Tokens leaving{group_.loads[g].count() / group_.sequences[g]};
      --group_.sequences[g];
      ++group_.free_slots[g];
      group_.loads[g] -= leaving;
      group_.kv_free[g] += leaving;
    }
    outlook_.stepped(GroupId{0}, Steps{1});
    policy_.stepped(GroupId{0}, Steps{1});
  }

  Random draw_;
  bool quiet_ = draw_.below(3) == 0;
  bool tight_ = draw_.below(3) == 0;  // in KV space
  BrFit policy_;
  Outlook outlook_;
  PromptSample prompts_;
  MeanAge ages_;
  Definition definition_;
  GroupSketch group_;
  Pool pool_;
  std::uint64_t next_ = 0;
};

// A large group with more free slots than requests wait, and policies that have seen the same traffic.
class LargeGroup {
 public:
  explicit LargeGroup(std::uint64_t seed) : draw_{seed} {
    for (std::uint64_t workers = 65 + draw_.below(120); workers > 0; --workers) {
      group_.add({.load = static_cast<std::int64_t>(200'000 + draw_.below(1 + 2 * spread_)),
                  .free_slots = static_cast<std::int32_t>(draw_.below(4)),
                  .sequences = 70});
    }
    std::vector<Sketched> waiting(1 + draw_.below(40));
    for (Sketched& each : waiting) {
      each.prompt = static_cast<std::int64_t>(draw_.below(draw_.below(20) == 0 ? 40'000 : 4'000));
    }
    pool_ = sketch_pool(waiting);
    for (int i = 0; i < 110; ++i) {
      lengths_.push_back(Tokens{static_cast<std::int64_t>(1 + draw_.below(300))});
      prompts_.push_back(Tokens{static_cast<std::int64_t>(draw_.below(draw_.below(20) == 0 ? 40'000 : 4'000))});
    }
  }

  // What a round of a policy with these settings makes the cost rise by.
  Definition::Rise rise(const BrFitParams& params) {
    BrFit policy{params};
    Outlook outlook{params};
    PromptSample prompts;
    MeanAge ages;
    teach(policy, outlook, prompts);
    std::vector<Choice> choices;
    policy.decide({.group = group_.view(), .pool = pool_}, draw_, choices);
    return Definition{params, outlook, prompts, ages}.rise_of(group_, pool_, choices);
  }

 private:
  void teach(BrFit& policy, Outlook& outlook, PromptSample& prompts) const {
    const auto run = [&](const Request& request, std::size_t worker) {
      outlook.admitted(request, GroupId{0}, group_.workers[worker]);
      policy.admitted(request, GroupId{0}, group_.workers[worker]);
    };
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      const RequestId id{1'000 + i};
      prompts.add(prompts_[i]);
      policy.arrived({.request = {.id = id, .prompt = prompts_[i]}, .weight = prompts_[i]});
      run({.id = id, .prompt = prompts_[i]}, i % group_.workers.size());
      outlook.left(id, lengths_[i], LeaseEnd::finished);
      policy.left(id, lengths_[i], LeaseEnd::finished);
    }
    for (std::uint64_t i = 0; i < 4 * group_.workers.size(); ++i) {
      const std::size_t at = i * 7 % lengths_.size();
      run({.id = RequestId{10'000 + i}, .prompt = Tokens{40'000}, .generated = lengths_[at]}, i / 4);
    }
  }

  Random draw_;
  std::uint64_t spread_ = draw_.below(2) == 0 ? 2'000 : 60'000;
  GroupSketch group_;
  std::vector<Candidate> pool_;
  std::vector<Tokens> lengths_;
  std::vector<Tokens> prompts_;
};

// What is drawn of the settings: the look ahead, the search and the hold on and off.
BrFitParams draw_params(Random& draw) {
  BrFitParams params;
  params.fixed_step_tokens = draw.below(2) == 0 ? 97'240 : 1'000;
  params.horizon_weight = draw.below(3) == 0 ? 0 : 0.1;
  params.passes = static_cast<std::int64_t>(draw.below(3));
  params.hold_price = std::array{0.0, 0.01, 1.0}[draw.below(3)];
  params.neighbours = draw.below(2) == 0 ? 2 : 8;
  return params;
}

// Law: rounds place what the definition places, where and by which rule it does, over any course of a group.
TEST(BrFitProperty, EqualsTheDefinition) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const BrFitParams params = draw_params(draw);
    TwinRounds{draw.bits(), params, 1 + draw.below(6)}.rounds(3);
  });
}

// Law: the same over so many rounds that those held, and workers closed, come to the end of that.
TEST(BrFitProperty, EqualsTheDefinitionWhenHoldsEnd) {
  check_property(300, [](std::uint64_t seed) {
    Random draw{seed};
    const BrFitParams params = draw_params(draw);
    TwinRounds{draw.bits(), params, 2 + draw.below(3)}.rounds(40);
  });
}

// Law: the same in a large group, if the search near the wanted loads is wide enough to see all of them.
TEST(BrFitProperty, EqualsTheDefinitionInLargeGroups) {
  check_property(100, [](std::uint64_t seed) {
    Random draw{seed};
    BrFitParams params = draw_params(draw);
    params.neighbours = 1'024;
    TwinRounds{draw.bits(), params, 65 + draw.below(20)}.rounds(3);
  });
}

// Law: in a large group the narrow search costs little: of the cost that rounds move, next to nothing on present loads
// and about 2 % with the look ahead, by which it does not order workers.
TEST(BrFitProperty, TheNarrowSearchOfLargeGroupsCostsLittle) {
  const auto given_up = [](double horizon_weight) {
    double excess = 0;
    double moved = 0;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      LargeGroup group{seed};
      // No hold: it would undo placements, by another measure than cost.
      BrFitParams wide{.horizon_weight = horizon_weight, .hold_price = 1e6, .neighbours = 1'024};
      BrFitParams narrow = wide;
      narrow.neighbours = 8;
      const Definition::Rise best = group.rise(wide);
      excess += group.rise(narrow).total - best.total;
      moved += best.parts;
    }
    return excess / moved;
  };
  EXPECT_LT(given_up(0), 0.002);
  EXPECT_LT(given_up(0.1), 0.03);
}

}  // namespace
}  // namespace balanceroute
