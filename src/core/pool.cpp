#include "core/pool.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace balanceroute {
namespace {

auto offset(std::vector<Candidate>& row, std::size_t index) {
  return row.begin() + static_cast<std::ptrdiff_t>(index);
}

}  // namespace

// Reuses the free head before the row grows: at least half of it is free then, so that pushes stay amortised O(1).
void Pool::make_room() {
  if (row_.size() < row_.capacity() || head_ < row_.size() - head_) return;
  row_.erase(row_.begin(), offset(row_, head_));
  head_ = 0;
}

void Pool::push(const Candidate& candidate) {
  assert(empty() || goes_before(row_.back(), candidate));
  make_room();
  row_.push_back(candidate);
}

void Pool::insert(const Candidate& candidate) {
  make_room();
  const auto place = std::ranges::upper_bound(offset(row_, head_), row_.end(), candidate, goes_before);
  row_.insert(place, candidate);
}

std::optional<std::size_t> Pool::find(RequestId request) const {
  const auto all = candidates();
  const auto found = std::ranges::find(all, request, [](const Candidate& candidate) { return candidate.request.id; });
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

void Pool::erase(std::size_t position) {
  assert(position < size());
  const auto gone = offset(row_, head_ + position);
  if (position < size() / 2) {
    std::move_backward(offset(row_, head_), gone, gone + 1);
    ++head_;
  } else {
    row_.erase(gone);
  }
}

void Pool::take(std::span<const std::size_t> positions) {
  if (positions.empty()) return;
  assert(positions.back() < size() && std::ranges::is_sorted(positions, std::less_equal{}));
  // From the last taken place backwards: those that stay move up over the holes and count the holes behind them.
  std::size_t to = head_ + positions.back();
  std::size_t holes = 0;
  for (std::size_t from = to + 1; from-- > head_;) {
    if (holes < positions.size() && from == head_ + positions[positions.size() - 1 - holes]) {
      ++holes;
      continue;
    }
    Candidate& stays = row_[from];
    stays.passes += static_cast<std::int32_t>(holes);
    row_[to--] = stays;
  }
  head_ += holes;
}

void Pool::clear() {
  row_.clear();
  head_ = 0;
}

}  // namespace balanceroute
