// waiting_requests.hpp - what the simulator knows of the requests that wait, and the router must not.
#pragma once

#include <cassert>
#include <cstdint>
#include <deque>

#include "core/ids.hpp"
#include "sim/request_stream.hpp"

namespace balanceroute::sim {

// WaitingRequests keeps each arrival from its submission to its admission, by request id.
//   Shape    ids are given out in order: 0, 1, 2, ...
//   Cost     O(1) amortised; memory from the oldest that waits to the youngest.
class WaitingRequests {
 public:
  RequestId add(const Arrival& arrival) {
    entries_.push_back({arrival, true});
    return RequestId{first_ + entries_.size() - 1};
  }

  // `id` waits, and does no longer.
  [[nodiscard]] Arrival take(RequestId id) {
    assert(id.value() >= first_ && id.value() - first_ < entries_.size());
    Entry& entry = entries_[id.value() - first_];
    assert(entry.waits);
    entry.waits = false;
    const Arrival arrival = entry.arrival;
    for (; !entries_.empty() && !entries_.front().waits; ++first_) entries_.pop_front();
    return arrival;
  }

 private:
  struct Entry {
    Arrival arrival;
    bool waits = false;
  };

  std::uint64_t first_ = 0;  // id of entries_.front()
  std::deque<Entry> entries_;
};

}  // namespace balanceroute::sim
