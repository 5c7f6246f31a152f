#include "policy/br_fit/fit_round.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace balanceroute {
namespace {

// Groups up to this size are looked at worker by worker, larger ones near the loads that fit. That gives up about 2 %
// of the cost that a round moves, all of it in the look ahead, by which workers are not ordered (property test),
// so that what a request costs does not grow with the group.
constexpr std::size_t kSmallGroup = 64;

double tokens(Tokens count) {
  return static_cast<double>(count.count());
}

}  // namespace

double fit_curvature(const BrFitParams& params, const PromptSample& prompts, double mean_load, double prompt_share) {
  if (!prompts.known() || mean_load <= 0) return -1;
  const double excess = (prompts.q99() - prompts.mean()) / mean_load;
  return std::clamp(params.giant_gain * excess * prompt_share - 1, -1.0, 1.0);
}

FitRound::FitRound(const BrFitParams& params, const Outlook& outlook, const PromptSample& prompts, const MeanAge& ages)
    : params_{params}, outlook_{outlook}, prompts_{prompts}, ages_{ages} {
  look_weight_.fill(params.horizon_weight);
  look_weight_[0] = 1;
  for (std::size_t k = 0; k < kLoads; ++k) price_above_[k] = look_weight_[k] * params.excess_weight;
}

void FitRound::decide(const RoundInput& input, std::vector<Choice>& choices) {
  take_group(input.group);
  if (all_free_ == 0) return;
  take_pool(input);
  if (waiting_.empty()) return;
  close_workers();
  deep_ = sequences_ >= all_free_;
  if (open_free_ == 0 && deep_) return;
  take_window();
  size_window();
  set_target();
  place_late();
  if (saturated_) {
    fill_slots();
  } else {
    place_requests();
  }
  improve();
  hold();
  if (!deep_) count_waiting();
  const std::size_t before = choices.size();
  commit(choices);
  if (!input.explain) return;
  for (std::size_t i = before; i < choices.size(); ++i) {
    const auto item = std::ranges::lower_bound(items_, choices[i].candidate, {}, &Item::position);
    choices[i].runner_up = runner_up(*item);
  }
}

double FitRound::score(const GroupView& group, std::size_t worker, const Candidate& candidate) {
  take_group(group);
  pool_ = std::span{&candidate, 1};
  waiting_.assign(1, 0);
  sequences_ = candidate.request.sequences;
  open_free_ = std::max(all_free_, sequences_);
  deep_ = false;
  take_window();
  size_window();
  set_target();
  return -rise(bins_[worker], items_.front().size);
}

void FitRound::take_group(const GroupView& group) {
  group_ = &group;
  bins_.clear();
  all_free_ = 0;
  std::int64_t running = 0;
  double total = 0;
  for (std::size_t g = 0; g < group.size(); ++g) {
    const double load = tokens(group.loads[g]);
    const std::int32_t free = group.eligible[g] != 0 ? group.free_slots[g] : 0;
    bins_.push_back({.now = load, .free = free, .kv = group.kv_free[g], .open = free > 0});
    all_free_ += free;
    running += group.sequences[g];
    total += load;
  }
  if (bins_.empty()) return;
  mean_ = total / static_cast<double>(bins_.size());
  const auto [least, most] = std::ranges::minmax(bins_, {}, &Bin::now);
  least_ = least.now;
  envelope_ = most.now;
  worth_ = params_.hold_price * (params_.step_tokens() + envelope_) /
           static_cast<double>(std::max<std::int64_t>(1, running));
}

// Of several groups each is offered its share, the oldest. One for which no worker has the KV space now is not there.
void FitRound::take_pool(const RoundInput& input) {
  std::int64_t fleet_free = 0;
  for (const GroupView& group : input.groups) {
    for (std::size_t g = 0; g < group.size(); ++g) fleet_free += group.eligible[g] != 0 ? group.free_slots[g] : 0;
  }
  const std::int64_t all = std::ssize(input.pool);
  const std::int64_t share = fleet_free > all_free_ ? (all * all_free_ + fleet_free - 1) / fleet_free : all;
  pool_ = input.pool.first(static_cast<std::size_t>(share));
  Tokens most_kv{0};
  for (const Bin& bin : bins_) {
    if (bin.free > 0) most_kv = std::max(most_kv, bin.kv);
  }
  waiting_.clear();
  sequences_ = 0;
  shut_out_ = kNowhere;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    if (pool_[i].kv > most_kv) {
      shut_out_ = std::min(shut_out_, i);
      continue;
    }
    waiting_.push_back(i);
    sequences_ += pool_[i].request.sequences;
  }
}

// Requests chosen from while few slots are free.
std::int64_t FitRound::base_window() const {
  const auto waiting = std::ssize(waiting_);
  const auto share = static_cast<std::int64_t>(params_.window_share * static_cast<double>(waiting));
  return std::min(waiting, std::max(params_.window_min, std::min(params_.window, share)));
}

// A worker on which even the smallest request would lift the envelope too far takes nothing, but not for ever.
void FitRound::close_workers() {
  double smallest = std::numeric_limits<double>::infinity();
  for (const std::size_t i : std::span{waiting_}.first(static_cast<std::size_t>(base_window()))) {
    smallest = std::min(smallest, tokens(pool_[i].weight));
  }
  open_free_ = 0;
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    Bin& bin = bins_[g];
    const std::uint32_t id = group_->workers[g].value();
    if (id >= closed_rounds_.size()) closed_rounds_.resize(id + 1);
    const bool lifts = bin.free > 0 && bin.now > mean_ && bin.now + smallest > envelope_ + worth_;
    const bool closed = lifts && closed_rounds_[id] < params_.hold_rounds;
    closed_rounds_[id] = closed ? closed_rounds_[id] + 1 : 0;
    if (closed) bin.open = false;
    if (bin.open) open_free_ += bin.free;
  }
}

// Later ones admitted past it, less those still in front of it: what admissions in order would have spared it.
double FitRound::lateness(std::size_t position) const {
  return std::max(0.0, static_cast<double>(pool_[position].passes) - static_cast<double>(position));
}

void FitRound::take_window() {
  const std::int64_t waiting = std::ssize(waiting_);
  const std::int64_t slots = std::min(open_free_, sequences_);
  const std::int64_t size =
      deep_ ? std::min(waiting, std::max(base_window(), params_.window_per_slot * slots)) : waiting;
  saturated_ = sequences_ >= open_free_;
  slots_left_ = open_free_;
  late_unit_ =
      std::max(static_cast<double>(params_.lateness_min), params_.lateness_share * static_cast<double>(waiting));
  items_.clear();
  put_.clear();
  for (const std::size_t i : std::span{waiting_}.first(static_cast<std::size_t>(size))) {
    const Candidate& candidate = pool_[i];
    Item item{.position = i,
              .weight = tokens(candidate.weight),
              .width = candidate.request.sequences,
              .price = 0,
              .late = lateness(i),
              .kv = candidate.kv,
              .size = {}};
    const double age = saturated_ ? params_.answer_share * ages_.of(candidate.request.prompt) : 0;
    item.size[0] = item.weight + age * item.width;
    items_.push_back(item);
  }
}

// Sizes at each look ahead and prices of the window; loads of the workers; what comes in with it.
void FitRound::size_window() {
  WindowSums sums;
  for (const Item& item : items_) {
    sums.weights += item.weight;
    sums.widths += item.width;
    sums.sizes += item.size[0];
    sums.squares += item.size[0] * item.size[0];
  }
  const auto count = static_cast<double>(items_.size());
  const double variance = std::max(0.0, sums.squares / count - (sums.sizes / count) * (sums.sizes / count));
  const Outlook::Row refill_load = look_ahead(sums.weights / sums.widths);
  const Outlook::Row entry = outlook_.entry_survival();
  const Outlook::Row& horizons = outlook_.horizons();
  const double incoming_share = saturated_ ? static_cast<double>(open_free_) / sums.widths : 1.0;  // as sequences
  target_.fill(0);
  for (Item& item : items_) {
    const double width = item.width;
    for (std::size_t k = 0; k < Outlook::kPoints; ++k) {
      item.size[k + 1] = entry[k] * (item.size[0] + horizons[k] * width) + (1 - entry[k]) * refill_load[k] * width;
    }
    for (std::size_t k = 0; k < kLoads; ++k) target_[k] += item.size[k] * incoming_share;
    const double units = item.late / late_unit_;
    item.price = params_.lateness_price * variance * units * units;
  }
  by_size_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) by_size_.push_back({items_[i].size[0], i});
  std::ranges::sort(by_size_, std::less<>{});
  oldest_free_ = 0;
}

// Loads of the workers at each look, what has ended replaced as far as the pool can pay for it; the load of a refill.
Outlook::Row FitRound::look_ahead(double mean_prompt) {
  Outlook::Row gone{};
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    const Outlook::Sums sums = outlook_.sums(group_->workers[g]);
    bins_[g].load.fill(bins_[g].now);
    for (std::size_t k = 0; k < Outlook::kPoints; ++k) {
      bins_[g].load[k + 1] += sums.drift[k];
      gone[k] += sums.gone[k];
    }
  }
  const auto waiting = static_cast<double>(sequences_);
  const auto free = static_cast<double>(open_free_);
  const double slots = std::min(free, waiting);
  Outlook::Row refill_load{};
  for (std::size_t k = 0; k < Outlook::kPoints; ++k) {
    const double places = free - slots + gone[k];
    const double refill = places > 0 ? std::clamp((waiting - slots) / std::max(1.0, places), 0.0, 1.0) : 0;
    refill_load[k] = refill * (mean_prompt + outlook_.horizons()[k] / 2);
    for (std::size_t g = 0; g < bins_.size(); ++g) {
      bins_[g].load[k + 1] += outlook_.sums(group_->workers[g]).gone[k] * refill_load[k];
    }
  }
  return refill_load;
}

// The fair share of each worker once the slots are filled, and the ceiling over it below saturation.
void FitRound::set_target() {
  double prompts = 0;
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    for (std::size_t k = 0; k < kLoads; ++k) target_[k] += bins_[g].load[k];
    prompts += outlook_.running_prompts(group_->workers[g]);
  }
  const auto workers = static_cast<double>(bins_.size());
  for (double& target : target_) target /= workers;
  ceiling_ = target_;
  price_below_ = look_weight_;
  if (!saturated_) {
    ceiling_[0] += params_.ceiling_share * std::max(0.0, envelope_ - target_[0]);
    const double share = mean_ > 0 ? prompts / (mean_ * workers) : 0;
    price_below_[0] = -fit_curvature(params_, prompts_, mean_, share);
  }
  order_bins();
}

// --- the fit ---

double FitRound::cost(const Loads& distance) const {
  double sum = 0;
  for (std::size_t k = 0; k < kLoads; ++k) {
    const double square = distance[k] * distance[k];
    sum += (distance[k] > 0 ? price_above_[k] : price_below_[k]) * square;
  }
  return sum;
}

double FitRound::cost_with(const Bin& bin, const Loads& more) const {
  Loads distance;
  for (std::size_t k = 0; k < kLoads; ++k) distance[k] = bin.load[k] + more[k] - ceiling_[k];
  return cost(distance);
}

double FitRound::rise(const Bin& bin, const Loads& more) const {
  return cost_with(bin, more) - cost_with(bin, Loads{});
}

bool FitRound::less_loaded(std::size_t a, std::size_t b) const {
  return bins_[a].load[0] != bins_[b].load[0] ? bins_[a].load[0] < bins_[b].load[0] : a < b;
}

void FitRound::shift(std::size_t bin, const Item& item, std::int32_t sign) {
  for (std::size_t k = 0; k < kLoads; ++k) bins_[bin].load[k] += sign * item.size[k];
  bins_[bin].now += sign * item.weight;
  bins_[bin].free -= sign * item.width;
  bins_[bin].kv -= sign * item.kv;
  slots_left_ -= sign * item.width;
  reorder(bin);
}

void FitRound::put(std::size_t item, std::size_t bin) {
  items_[item].bin = bin;
  shift(bin, items_[item], 1);
}

void FitRound::take_out(std::size_t item) {
  shift(items_[item].bin, items_[item], -1);
  items_[item].bin = kNowhere;
  oldest_free_ = std::min(oldest_free_, item);
}

// --- workers ---

void FitRound::order_bins() {
  by_load_.clear();
  if (bins_.size() <= kSmallGroup) return;
  place_of_.assign(bins_.size(), kNowhere);
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    if (bins_[g].open) by_load_.push_back(g);
  }
  std::ranges::sort(by_load_, [this](std::size_t a, std::size_t b) { return less_loaded(a, b); });
  for (std::size_t i = 0; i < by_load_.size(); ++i) place_of_[by_load_[i]] = i;
}

void FitRound::reorder(std::size_t bin) {
  if (by_load_.empty() || place_of_[bin] == kNowhere) return;
  const auto exchange = [this](std::size_t i) {
    std::swap(by_load_[i], by_load_[i + 1]);
    place_of_[by_load_[i]] = i;
    place_of_[by_load_[i + 1]] = i + 1;
  };
  std::size_t i = place_of_[bin];
  for (; i + 1 < by_load_.size() && less_loaded(by_load_[i + 1], bin); ++i) exchange(i);
  for (; i > 0 && less_loaded(bin, by_load_[i - 1]); --i) exchange(i - 1);
}

void FitRound::consider(const Item& item, std::size_t bin, std::size_t except, std::size_t& best,
                        double& best_rise) const {
  if (bin == except || !bins_[bin].open || !has_room(bins_[bin], item)) return;
  const double its_rise = rise(bins_[bin], item.size);
  if (best != kNowhere && (its_rise > best_rise || (its_rise == best_rise && !less_loaded(bin, best)))) return;
  best = bin;
  best_rise = its_rise;
}

std::size_t FitRound::best_bin(const Item& item, std::size_t except) const {
  std::size_t best = kNowhere;
  double best_rise = 0;
  if (bins_.size() <= kSmallGroup) {
    for (std::size_t g = 0; g < bins_.size(); ++g) consider(item, g, except, best, best_rise);
    return best;
  }
  // The lightest, and those that it would fill just to the ceiling.
  const auto usable = [&](std::size_t g) { return g != except && bins_[g].open && has_room(bins_[g], item); };
  const auto some = [&](auto from, const auto& end) {
    std::int64_t seen = 0;
    for (; from != end && seen < params_.neighbours; ++from) {
      if (!usable(*from)) continue;
      ++seen;
      consider(item, *from, except, best, best_rise);
    }
  };
  const auto middle = std::ranges::lower_bound(by_load_, ceiling_[0] - item.size[0], {},
                                               [this](std::size_t g) { return bins_[g].load[0]; });
  some(by_load_.begin(), by_load_.end());
  some(middle, by_load_.end());
  some(std::make_reverse_iterator(middle), by_load_.rend());
  return best;
}

// --- placing ---

// Whoever lost too many places goes first, where it does least harm. If no worker has room for it now, one is kept for
// it, or others would go on taking every slot and all KV space that it waits for.
void FitRound::place_late() {
  bool kept = false;
  if (shut_out_ != kNowhere && is_late(lateness(shut_out_))) {
    keep_for(pool_[shut_out_]);
    kept = true;
  }
  for (std::size_t i = 0; i < items_.size() && slots_left_ > 0; ++i) {
    Item& item = items_[i];
    if (!is_late(item.late)) continue;
    const std::size_t bin = best_bin(item, kNowhere);
    if (bin != kNowhere) {
      item.forced = true;
      put(i, bin);
      put_.push_back(i);
    } else if (!kept) {
      keep_for(pool_[item.position]);
      kept = true;
    }
  }
}

// The worker that lacks least of what the request needs takes nothing else.
void FitRound::keep_for(const Candidate& candidate) {
  const std::int32_t width = candidate.request.sequences;
  std::size_t best = kNowhere;
  double least = 0;
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    if (group_->eligible[g] == 0 || !group_->is_large_enough(g, width, candidate.kv)) continue;
    const double slots = std::max(0, width - bins_[g].free) / static_cast<double>(width);
    const double kv = tokens(overflow(candidate.kv, bins_[g].kv)) / std::max(1.0, tokens(candidate.kv));
    const double lack = std::max(slots, kv);
    if (best != kNowhere && (lack > least || (lack == least && !less_loaded(g, best)))) continue;
    best = g;
    least = lack;
  }
  if (best == kNowhere) return;
  if (bins_[best].open) slots_left_ -= bins_[best].free;
  bins_[best].open = false;
  bins_[best].free = 0;
}

std::size_t FitRound::neediest_bin() const {
  std::size_t best = kNowhere;
  double most = 0;
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    const Bin& bin = bins_[g];
    if (!bin.open || bin.free <= 0) continue;
    double need = 0;
    for (std::size_t k = 0; k < kLoads; ++k) need += look_weight_[k] * (target_[k] - bin.load[k]);
    need /= bin.free;
    if (best != kNowhere && (need < most || (need == most && !less_loaded(g, best)))) continue;
    best = g;
    most = need;
  }
  return best;
}

template <class Fits, class Look>
void FitRound::near(double size, const Fits& fits, const Look& look) const {
  const auto some = [&](auto from, const auto& end) {
    std::int64_t seen = 0;
    for (; from != end && seen < params_.neighbours; ++from) {
      if (!fits(from->item)) continue;
      ++seen;
      look(from->item);
    }
  };
  const auto middle = std::ranges::lower_bound(by_size_, size, {}, &Sized::size);
  some(middle, by_size_.end());
  some(std::make_reverse_iterator(middle), by_size_.rend());
}

// The request for one slot of this worker.
std::size_t FitRound::best_item_for(std::size_t g) const {
  const Bin& bin = bins_[g];
  Loads gap;  // that one slot should fill
  for (std::size_t k = 0; k < kLoads; ++k) gap[k] = (target_[k] - bin.load[k]) / bin.free;
  std::size_t best = kNowhere;
  double best_value = 0;
  const auto fits = [&](std::size_t i) { return items_[i].bin == kNowhere && has_room(bin, items_[i]); };
  const auto look = [&](std::size_t i) {
    Loads distance;
    for (std::size_t k = 0; k < kLoads; ++k) distance[k] = items_[i].size[k] - gap[k] * items_[i].width;
    const double value = cost(distance) - items_[i].price;
    if (best != kNowhere && (value > best_value || (value == best_value && i >= best))) return;
    best = i;
    best_value = value;
  };
  near(gap[0], fits, look);
  std::int64_t seen = 0;
  for (std::size_t i = oldest_free_; i < items_.size() && seen < params_.neighbours; ++i) {
    if (!fits(i)) continue;
    ++seen;
    look(i);
  }
  return best;
}

// In saturation: which request for this slot?
void FitRound::fill_slots() {
  while (slots_left_ > 0) {
    const std::size_t bin = neediest_bin();
    if (bin == kNowhere) return;
    while (oldest_free_ < items_.size() && items_[oldest_free_].bin != kNowhere) ++oldest_free_;
    const std::size_t item = best_item_for(bin);
    if (item == kNowhere) {
      slots_left_ -= bins_[bin].free;  // nothing in the window fits it
      bins_[bin].open = false;
      continue;
    }
    put(item, bin);
    put_.push_back(item);
  }
}

// Below saturation: which worker for this request?
void FitRound::place_requests() {
  sequence_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].forced) sequence_.push_back(i);
  }
  std::ranges::sort(sequence_, [this](std::size_t a, std::size_t b) {
    return items_[a].weight != items_[b].weight ? items_[a].weight > items_[b].weight : a < b;
  });
  for (const std::size_t i : sequence_) {
    const std::size_t bin = best_bin(items_[i], kNowhere);
    if (bin == kNowhere) continue;
    put(i, bin);
    put_.push_back(i);
  }
}

// --- local search ---

void FitRound::improve() {
  for (std::int32_t pass = 0; pass < params_.passes; ++pass) {
    for (std::size_t place = 0; place < put_.size(); ++place) {
      const std::size_t item = put_[place];
      if (saturated_ && !items_[item].forced && try_replace(place)) continue;
      if (try_move(item)) continue;
      try_swap(item);
    }
  }
}

bool FitRound::try_replace(std::size_t place) {
  const std::size_t out = put_[place];
  const Item& item = items_[out];
  const std::size_t g = item.bin;
  const Bin& bin = bins_[g];
  const double before = cost_with(bin, Loads{});
  std::size_t best = kNowhere;
  double best_delta = 0;
  const auto fits = [&](std::size_t i) { return items_[i].bin == kNowhere && has_room_without(bin, item, items_[i]); };
  near(item.size[0] - (bin.load[0] - ceiling_[0]), fits, [&](std::size_t i) {
    Loads change;
    for (std::size_t k = 0; k < kLoads; ++k) change[k] = items_[i].size[k] - item.size[k];
    const double delta = cost_with(bin, change) - before + item.price - items_[i].price;
    if (best != kNowhere && (delta > best_delta || (delta == best_delta && i >= best))) return;
    best = i;
    best_delta = delta;
  });
  if (best == kNowhere || !lowers(best_delta, std::abs(before) + item.price)) return false;
  take_out(out);
  put(best, g);
  put_[place] = best;
  return true;
}

bool FitRound::try_move(std::size_t i) {
  const Item& item = items_[i];
  const std::size_t to = best_bin(item, item.bin);
  if (to == kNowhere) return false;
  Loads less;
  for (std::size_t k = 0; k < kLoads; ++k) less[k] = -item.size[k];
  const double delta = rise(bins_[item.bin], less) + rise(bins_[to], item.size);
  const double costs = std::abs(cost_with(bins_[item.bin], Loads{})) + std::abs(cost_with(bins_[to], Loads{}));
  if (!lowers(delta, costs)) return false;
  take_out(i);
  put(i, to);
  return true;
}

bool FitRound::try_swap(std::size_t i) {
  const Item& item = items_[i];
  const Bin& bin = bins_[item.bin];
  std::size_t best = kNowhere;
  double best_delta = 0;
  double costs = 0;
  const auto fits = [&](std::size_t j) {
    const Item& other = items_[j];
    if (other.bin == kNowhere || other.bin == item.bin) return false;
    return has_room_without(bin, item, other) && has_room_without(bins_[other.bin], other, item);
  };
  near(item.size[0] - (bin.load[0] - ceiling_[0]), fits, [&](std::size_t j) {
    const Bin& other = bins_[items_[j].bin];
    Loads here;
    Loads there;
    for (std::size_t k = 0; k < kLoads; ++k) {
      here[k] = items_[j].size[k] - item.size[k];
      there[k] = -here[k];
    }
    const double delta = rise(bin, here) + rise(other, there);
    if (best != kNowhere && (delta > best_delta || (delta == best_delta && j >= best))) return;
    best = j;
    best_delta = delta;
    costs = std::abs(cost_with(bin, Loads{})) + std::abs(cost_with(other, Loads{}));
  });
  if (best == kNowhere || !lowers(best_delta, costs)) return false;
  const std::size_t g = item.bin;
  const std::size_t h = items_[best].bin;
  take_out(i);
  take_out(best);
  put(i, h);
  put(best, g);
  return true;
}

// --- the bounded, priced hold ---

std::int32_t FitRound::held(const Item& item) const {
  return static_cast<std::int32_t>(held_.find(pool_[item.position].request.id).value_or(0));
}

void FitRound::hold_one(const Item& item) {
  held_.assign(pool_[item.position].request.id, static_cast<std::uint32_t>(held(item) + 1));
}

// The fullest other open worker on which the request stays below the envelope and its worth.
std::size_t FitRound::fullest_below_envelope(const Item& item) const {
  std::size_t best = kNowhere;
  for (std::size_t g = 0; g < bins_.size(); ++g) {
    const Bin& bin = bins_[g];
    if (g == item.bin || !bin.open || !has_room(bin, item) || bin.now + item.weight > envelope_ + worth_) continue;
    if (best == kNowhere || bin.now > bins_[best].now) best = g;
  }
  return best;
}

void FitRound::hold() {
  sequence_.assign(put_.begin(), put_.end());
  std::ranges::sort(sequence_, [this](std::size_t a, std::size_t b) {
    return items_[a].weight != items_[b].weight ? items_[a].weight > items_[b].weight : a < b;
  });
  for (const std::size_t i : sequence_) {
    Item& item = items_[i];
    const double load = bins_[item.bin].now;
    if (load <= envelope_ + worth_ || least_ + item.weight >= load - worth_) continue;
    if (item.forced || held(item) >= params_.hold_rounds) continue;
    const std::size_t other = fullest_below_envelope(item);
    take_out(i);
    if (other != kNowhere) {
      put(i, other);
    } else {
      item.withdrawn = true;
      hold_one(item);
    }
  }
}

// With slots for all, whoever has none yet is held; after hold_rounds it takes one, even of a closed worker.
void FitRound::count_waiting() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (item.bin != kNowhere || item.withdrawn) continue;
    if (held(item) < params_.hold_rounds) {
      hold_one(item);
      continue;
    }
    std::size_t best = kNowhere;
    for (std::size_t g = 0; g < bins_.size(); ++g) {
      if (!has_room(bins_[g], item)) continue;
      if (best == kNowhere || bins_[g].now < bins_[best].now) best = g;
    }
    if (best == kNowhere) continue;
    item.released = true;
    put(i, best);
  }
}

// --- the result ---

void FitRound::commit(std::vector<Choice>& choices) {
  // From here on `now` is again the load before this item, as the choices are told one after another.
  for (std::size_t g = 0; g < bins_.size(); ++g) bins_[g].now = tokens(group_->loads[g]);
  double envelope = envelope_;
  for (const Item& item : items_) {
    if (item.bin == kNowhere) continue;
    Loads less;
    for (std::size_t k = 0; k < kLoads; ++k) less[k] = -item.size[k];
    Stage stage = Stage::single;
    if (item.forced) stage = Stage::overdue;
    if (item.released) stage = Stage::work_conserving;
    Bin& bin = bins_[item.bin];
    choices.push_back({.candidate = item.position,
                       .worker = item.bin,
                       .stage = stage,
                       .score = rise(bin, less),
                       .margin = Tokens{static_cast<std::int64_t>(envelope - bin.now)}});
    bin.now += item.weight;
    envelope = std::max(envelope, bin.now);
  }
}

// The open worker that would have been next best for it, as things stand at the end.
std::optional<RunnerUp> FitRound::runner_up(const Item& item) const {
  const std::size_t other = best_bin(item, item.bin);
  if (other == kNowhere) return std::nullopt;
  return RunnerUp{other, -rise(bins_[other], item.size)};
}

}  // namespace balanceroute
