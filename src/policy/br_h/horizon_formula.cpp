#include "policy/br_h/horizon_formula.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace balanceroute {

WideInteger SortedRooms::overflow(Tokens size) const {
  const auto first_with_room =
      std::ranges::partition_point(steps_, [size](const Step& step) { return step.room < size; });
  const Prefix& full = prefixes_[static_cast<std::size_t>(first_with_room - steps_.begin())];
  return full.discounts * size.count() - full.rooms;
}

HorizonFormula::HorizonFormula(const HorizonWeights& weights) : weights_{weights} {
  double discount = 1;
  for (std::int64_t h = 0; h <= weights.horizon.count(); ++h) {
    discounts_.push_back(std::llround(std::ldexp(discount, kBits)));
    sum_ += discounts_.back();
    ramp_ += WideInteger{discounts_.back()} * h;
    discount *= weights.gamma;
  }
}

void HorizonFormula::weigh_for_group(std::size_t workers) {
  if (weights_.horizon > Steps{0}) return;
  weights_.alpha = 1;
  weights_.beta = static_cast<double>(workers);
}

double HorizonFormula::weighted(Tokens size, std::int32_t sequences, WideInteger overflow) const {
  const WideInteger placed = sum_ * size.count() + ramp_ * (weights_.growth * sequences).count();
  return weights_.alpha * std::ldexp(static_cast<double>(placed), -kBits) -
         weights_.beta * std::ldexp(static_cast<double>(overflow), -kBits);
}

double HorizonFormula::score(const LoadRow& row, Tokens size, std::int32_t sequences) const {
  assert(row.envelope.size() == steps() && row.loads.size() == steps());
  const Tokens growth = weights_.growth * sequences;
  WideInteger overflow = 0;
  for (std::size_t h = 0; h < discounts_.size(); ++h) {
    const std::int64_t above = (size - room(row, h, growth)).count();
    overflow += WideInteger{discounts_[h]} * std::max<std::int64_t>(above, 0);
  }
  return weighted(size, sequences, overflow);
}

void HorizonFormula::sort(const LoadRow& row, std::int32_t sequences, SortedRooms& table) const {
  const Tokens growth = weights_.growth * sequences;
  table.steps_.clear();
  for (std::size_t h = 0; h < discounts_.size(); ++h) {
    table.steps_.push_back({room(row, h, growth), discounts_[h]});
  }
  std::ranges::sort(table.steps_, {}, &SortedRooms::Step::room);
  table.prefixes_.assign(1, {});
  for (const SortedRooms::Step& step : table.steps_) {
    const SortedRooms::Prefix& before = table.prefixes_.back();
    table.prefixes_.push_back({.discounts = before.discounts + step.discount,
                               .rooms = before.rooms + WideInteger{step.discount} * step.room.count()});
  }
}

double HorizonFormula::score(const SortedRooms& table, Tokens size, std::int32_t sequences) const {
  return weighted(size, sequences, table.overflow(size));
}

Tokens HorizonFormula::peak(const LoadRow& row, std::int32_t sequences) {
  const double gain = weights_.alpha * static_cast<double>(sum_);
  const Tokens growth = weights_.growth * sequences;
  heap_.clear();
  for (std::size_t h = 0; h < discounts_.size(); ++h) heap_.push_back({room(row, h, growth), discounts_[h]});
  constexpr auto roomier = [](const SortedRooms::Step& a, const SortedRooms::Step& b) { return a.room > b.room; };
  std::ranges::make_heap(heap_, roomier);
  // Past the rooms of these steps every further token costs beta times their discounts.
  WideInteger full = 0;
  Tokens at{0};
  while (weights_.beta * static_cast<double>(full) < gain) {
    if (heap_.empty()) return kNoPeak;
    std::ranges::pop_heap(heap_, roomier);
    at = std::max(at, heap_.back().room);
    full += heap_.back().discount;
    heap_.pop_back();
  }
  return at;
}

}  // namespace balanceroute
