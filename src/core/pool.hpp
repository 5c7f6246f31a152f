// pool.hpp - requests that wait for a worker, in the order of their turns.
#pragma once

#include <chrono>
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
  Tokens weight;                      // D, its load on entry
  Tokens kv{0};                       // KV space that its worker must have free
  std::uint64_t serial = 0;           // its place in the order of arrival
  std::int32_t passes = 0;            // admissions of later candidates it has watched
  bool late = false;                  // it has waited for too long
  std::int64_t start = 0;             // its start tag (FairShare)
  std::chrono::nanoseconds since{0};  // when it arrived
};

// Whether a's turn is before b's: late ones in order of arrival, then by class, then by start tag. Of one tenant in one
// class the start tags rise, so that this is the order of arrival.
[[nodiscard]] inline bool goes_before(const Candidate& a, const Candidate& b) {
  if (a.late != b.late) return a.late;
  if (a.late) return a.serial < b.serial;
  if (a.request.priority != b.request.priority) return a.request.priority > b.request.priority;
  if (a.start != b.start) return a.start < b.start;
  return a.serial < b.serial;
}

// Pool holds waiting requests in the order of their turns, as one contiguous row that policies read.
//   Shape       candidates()[0] is next. Passes never rise along the row as long as nobody joins before others, as
//               those of one tenant in one class never do.
//   Cost        push amortised O(1); erase at position p O(min(p, n - p)): the free room is kept at the head, where
//               admissions happen; take O(last position) for any number; find O(n).
//   Threads     not synchronised; owned by one Router.
class Pool {
 public:
  [[nodiscard]] std::span<const Candidate> candidates() const { return std::span{row_}.subspan(head_); }
  [[nodiscard]] std::size_t size() const { return row_.size() - head_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  // Adds one whose turn comes last.
  void push(const Candidate& candidate);
  // Adds one at its turn.
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
