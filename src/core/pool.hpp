// pool.hpp - requests that wait for a worker, oldest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/units.hpp"

namespace balanceroute {

// Candidate is a request that waits.
struct Candidate {
  Request request;
  Tokens weight;             // D, its load on entry
  Tokens kv{0};              // KV space that its worker must have free
  std::uint64_t serial = 0;  // its place in the order of arrival
  std::int32_t passes = 0;   // admissions of later candidates it has watched
};

// Pool holds waiting requests in order of arrival, as one contiguous row that policies read.
//   Shape       candidates()[0] is the oldest; serials rise along the row, passes never do.
//   Cost        push amortised O(1); erase at position p O(min(p, n - p)): the free room is kept at the head, where
//               admissions happen; take O(last position) for any number; find O(n).
//   Threads     not synchronised; owned by one Router.
class Pool {
 public:
  [[nodiscard]] std::span<const Candidate> candidates() const { return std::span{row_}.subspan(head_); }
  [[nodiscard]] std::size_t size() const { return row_.size() - head_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  // Adds one that is younger than all others.
  void push(const Candidate& candidate);
  // Adds one at the place its serial gives it.
  void insert(const Candidate& candidate);

  [[nodiscard]] std::optional<std::size_t> find(RequestId request) const;

  // Removes one that leaves without an admission: nobody was passed over.
  void erase(std::size_t position);

  // Removes admitted candidates; each that stays counts the later ones among them as passes.
  // `positions` ascending, without repeats.
  void take(std::span<const std::size_t> positions);

  void clear();

 private:
  void make_room();

  std::vector<Candidate> row_;
  std::size_t head_ = 0;  // row_[0 .. head_) is free room
};

}  // namespace balanceroute
