#include "stats/imbalance_meter.hpp"

#include "core/envelope.hpp"

namespace balanceroute {

void ImbalanceMeter::record(std::span<const Tokens> loads) {
  if (loads.empty()) return;
  ++steps_;
  envelope_ += static_cast<double>(largest_load(loads).count());
  mean_load_ += static_cast<double>(total_load(loads).count()) / static_cast<double>(loads.size());
  spread_ += static_cast<double>(spread(loads).count());
  imbalance_ += static_cast<double>(imbalance(loads).count());
}

ImbalanceMeter& ImbalanceMeter::operator+=(const ImbalanceMeter& other) {
  steps_ += other.steps_;
  envelope_ += other.envelope_;
  mean_load_ += other.mean_load_;
  spread_ += other.spread_;
  imbalance_ += other.imbalance_;
  return *this;
}

double ImbalanceMeter::load_idle_fraction() const {
  return envelope_ > 0 ? (envelope_ - mean_load_) / envelope_ : 0;
}

double ImbalanceMeter::barrier_idle_fraction(StepTime time) const {
  const double total_ms = time.fixed_ms * static_cast<double>(steps_) + time.per_token_ms * envelope_;
  return total_ms > 0 ? time.per_token_ms * (envelope_ - mean_load_) / total_ms : 0;
}

}  // namespace balanceroute
