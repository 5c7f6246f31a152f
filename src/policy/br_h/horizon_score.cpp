#include "policy/br_h/horizon_score.hpp"

#include <algorithm>
#include <cassert>

namespace balanceroute {

HorizonScore::HorizonScore(const HorizonWeights& weights, const Projection* projection)
    : formula_{weights}, projection_{projection}, envelope_(formula_.steps()) {
  assert((projection == nullptr) == (weights.horizon == Steps{0}));
}

double HorizonScore::score(std::size_t worker, Tokens weight, std::int32_t sequences) const {
  if (table_key_ == TableKey{worker, sequences, version_}) return formula_.score(table_, weight, sequences);
  return formula_.score(row(worker), weight, sequences);
}

void HorizonScore::expect(std::size_t worker, std::int32_t sequences, std::size_t count) {
  if (count < HorizonFormula::kTablePays) return;
  formula_.sort(row(worker), sequences, table_);
  table_key_ = {worker, sequences, version_};
}

void HorizonScore::begin(const GroupView& group) {
  ++version_;
  formula_.weigh_for_group(group.size());
  loads_.resize(group.size() * formula_.steps());
  std::ranges::fill(envelope_, Tokens{0});
  for (std::size_t worker = 0; worker < group.size(); ++worker) {
    const std::span<Tokens> loads = loads_of(worker);
    if (projection_ == nullptr) {
      loads.front() = group.loads[worker];
    } else {
      projection_->project(group.group, group.workers[worker], group.loads[worker], loads);
    }
    for (std::size_t h = 0; h < loads.size(); ++h) envelope_[h] = std::max(envelope_[h], loads[h]);
  }
}

void HorizonScore::admit(std::size_t worker, Tokens weight, std::int32_t sequences) {
  ++version_;
  const std::span<Tokens> loads = loads_of(worker);
  const Tokens growth = formula_.growth() * sequences;
  for (std::size_t h = 0; h < loads.size(); ++h) {
    loads[h] += weight + growth * static_cast<std::int64_t>(h);
    envelope_[h] = std::max(envelope_[h], loads[h]);
  }
}

}  // namespace balanceroute
