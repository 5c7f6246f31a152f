#include "policy/shadow/shadow.hpp"

namespace balanceroute {

void ShadowGuard::took(std::chrono::nanoseconds began, std::chrono::nanoseconds ended) {
  spent_ += ended - began;
  if (!is_on() || ended - began <= limits_.slow_round) return;
  std::optional<std::chrono::nanoseconds>& oldest = slow_[turn_];
  turn_ = (turn_ + 1) % kSlowRounds;
  oldest = ended;
  const auto& first = slow_[turn_];
  if (first && ended - *first <= std::chrono::minutes{1}) stop("three of its rounds within a minute were slow");
}

void ShadowGuard::stop(std::string why) {
  why_ = std::move(why);
  if (limits_.stopped) limits_.stopped(why_);
}

}  // namespace balanceroute
