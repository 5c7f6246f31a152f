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
  count_heavy_steps();
}

void HorizonFormula::weigh_for_group(std::size_t workers) {
  if (weights_.horizon > Steps{0}) return;
  weights_.alpha = 1;
  weights_.beta = static_cast<double>(workers);
  count_heavy_steps();
}

void HorizonFormula::count_heavy_steps() {
  const double gain = weights_.alpha * static_cast<double>(sum_);
  const auto heavy = std::ranges::find_if(
      discounts_, [&](std::int64_t discount) { return weights_.beta * static_cast<double>(discount) < gain; });
  heavy_steps_ = static_cast<std::size_t>(heavy - discounts_.begin());
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

// The first room, by rising rooms, up to which the discounts outweigh the gain. Each of the first steps may do so
// alone, so few rooms are below the least of theirs, and only those need be looked at in order.
Tokens HorizonFormula::peak(const LoadRow& row, std::int32_t sequences) {
  const Tokens growth = weights_.growth * sequences;
  const double gain = weights_.alpha * static_cast<double>(sum_);
  const auto outweighs = [&](double discounts) { return weights_.beta * discounts >= gain; };
  if (outweighs(0)) return Tokens{0};
  rooms_.resize(discounts_.size());
  Tokens bound = kNoPeak;
  for (std::size_t h = 0; h < discounts_.size(); ++h) {
    rooms_[h] = room(row, h, growth);
    if (h < heavy_steps_) bound = std::min(bound, rooms_[h]);
  }
  first_rooms_.clear();
  for (std::size_t h = 0; h < discounts_.size(); ++h) {
    if (rooms_[h] <= bound) first_rooms_.push_back({rooms_[h], discounts_[h]});
  }
  std::ranges::sort(first_rooms_, {}, &SortedRooms::Step::room);
  WideInteger full = 0;
  for (const SortedRooms::Step& step : first_rooms_) {
    full += step.discount;
    if (outweighs(static_cast<double>(full))) return std::max(step.room, Tokens{0});
  }
  return kNoPeak;
}

}  // namespace balanceroute
