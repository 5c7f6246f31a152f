// intake.hpp - requests on their way to the router: they arrive, are prefilled, and wait with facts the router must not
// know.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "engine/prefill_stage.hpp"
#include "sim/request_stream.hpp"

namespace balanceroute::sim {

// PendingRequest is one that has arrived and is on no worker yet.
struct PendingRequest {
  Arrival arrival;
  Nanoseconds prefilled{0};  // when it reached the router
  std::size_t prefiller = 0;
};

// PendingRequests keeps them by id.
//   Shape    ids are given out in order of arrival: 0, 1, 2, ...
//   Cost     O(1) amortised; memory from the oldest that is here to the youngest.
class PendingRequests {
 public:
  RequestId add(const Arrival& arrival) {
    entries_.push_back({.request = {.arrival = arrival}, .here = true});
    return RequestId{first_ + entries_.size() - 1};
  }

  // Of one that is here.
  [[nodiscard]] PendingRequest& at(RequestId id) {
    assert(id.value() >= first_ && id.value() - first_ < entries_.size());
    assert(entries_[id.value() - first_].here);
    return entries_[id.value() - first_].request;
  }

  [[nodiscard]] PendingRequest take(RequestId id) {
    const PendingRequest taken = at(id);
    entries_[id.value() - first_].here = false;
    for (; !entries_.empty() && !entries_.front().here; ++first_) entries_.pop_front();
    return taken;
  }

 private:
  struct Entry {
    PendingRequest request;
    bool here = false;
  };

  std::uint64_t first_ = 0;  // id of entries_.front()
  std::deque<Entry> entries_;
};

// Intake tells which requests reach the router, and when: as they arrive, or once prefilled.
//   Events   happen one at a time, in order of time; a prompt that is ready before an arrival at the same moment.
//   Cost     an event O(1), with prefill O(instances).
class Intake {
 public:
  // Without settings prefill takes no time.
  Intake(RequestStream stream, const std::optional<engine::PrefillSettings>& prefill);

  [[nodiscard]] std::uint64_t size() const { return stream_.size(); }      // requests in all
  [[nodiscard]] std::uint64_t arrived() const { return stream_.taken(); }  // so far
  [[nodiscard]] bool done() const { return stream_.done(); }               // all have arrived

  // When the next event is; not done().
  [[nodiscard]] Nanoseconds next() const;
  // Lets it happen: the request that reaches the router by it, if one does.
  std::optional<Request> advance();

  // Of a request that is here.
  [[nodiscard]] Tokens output_of(RequestId id) { return pending_.at(id).arrival.output; }
  // The facts of a request that leaves for a worker.
  [[nodiscard]] PendingRequest admit(RequestId id) { return pending_.take(id); }
  // The worker has its KV.
  void pulled(std::size_t prefiller, Tokens prompt, Nanoseconds now) {
    if (prefill_) prefill_->pulled(prefiller, prompt, now);
  }

 private:
  [[nodiscard]] bool prompt_is_next() const;

  RequestStream stream_;
  PendingRequests pending_;
  std::optional<engine::PrefillStage> prefill_;
};

}  // namespace balanceroute::sim
