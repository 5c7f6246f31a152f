#include "core/patience.hpp"

#include <algorithm>

namespace balanceroute {
namespace {

constexpr Patience::Nanoseconds kSecond = std::chrono::seconds{1};
constexpr Patience::Nanoseconds kLeast = std::chrono::seconds{10};
constexpr std::int64_t kTurns = 4;

}  // namespace

// Forgets the seconds that have left the window.
void Patience::look_at(Nanoseconds now) {
  if (!began_) {
    began_ = now;
    second_ = now / kSecond;
  }
  const std::int64_t second = now / kSecond;
  const std::int64_t gone = std::min<std::int64_t>(second - second_, kWindow);
  for (std::int64_t i = 0; i < gone; ++i) {
    std::int64_t& oldest = by_second_[static_cast<std::size_t>(second - i) % kWindow];
    in_window_ -= oldest;
    oldest = 0;
  }
  second_ = second;
}

void Patience::admitted(Nanoseconds now) {
  look_at(now);
  ++by_second_[static_cast<std::size_t>(second_) % kWindow];
  ++in_window_;
}

Patience::Nanoseconds Patience::limit(Nanoseconds now, std::size_t waiting) {
  if (fixed_) return *fixed_;
  look_at(now);
  if (in_window_ == 0) return kLeast;
  const Nanoseconds from = std::max(*began_, kSecond * (second_ - static_cast<std::int64_t>(kWindow) + 1));
  return std::max(kLeast, (now - from) * kTurns * static_cast<std::int64_t>(waiting) / in_window_);
}

}  // namespace balanceroute
