// prefill_book.hpp - what each prefill instance of a fleet computes, holds and has lost to requests that went away.
//
// Counts only: no clock, I/O or threads; the owner says what time it is. What is taken is a PrefillLease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "net/clock.hpp"

namespace balanceroute::proxy {

// Dense, in the order of the settings; each data-parallel rank of a prefill engine is one.
using PrefillId = Id<struct PrefillTag, std::uint32_t>;

class PrefillBook;

// What a prefill instance has been given.
struct PrefillCounts {
  Tokens computing{0};
  Tokens held{0};
  Tokens stranded{0};
  std::size_t requests = 0;    // live leases
  std::uint32_t failures = 0;  // in a row
  net::TimePoint suspended_until{};
  std::uint64_t answers = 0;  // so far
  bool reachable = true;      // as probes say

  [[nodiscard]] Tokens budget() const { return computing + held + stranded; }
};

// One live lease as a person inspects it.
struct PrefillLeaseRecord {
  RequestId request;  // of the prefill side's own numbering
  PrefillId instance;
  bool holds_kv;  // else its prompt is being computed
  Tokens tokens;
};

// What an operator sees of a fleet's prefill side at one moment.
struct PrefillSnapshot {
  std::vector<PrefillCounts> instances;    // by PrefillId
  std::vector<PrefillLeaseRecord> leases;  // by rising request
  std::size_t live = 0;                    // requests that have a claim
  std::size_t waiting = 0;
  std::size_t in_flight = 0;  // given to an instance, not yet computed
  std::size_t pool_target = 0;
  double prefill_seconds = 0;  // smoothed; 0 before the first
};

// PrefillLease is one request's hold on a prefill instance: work first, then KV that waits to be fetched.
//   Invariants  its end gives back work that is not done; KV that is there cannot be given back, since an engine keeps
//   it
//               until it is fetched or its own lease ends: it becomes stranded.
//   Threads     as its PrefillBook, which must outlive it.
class PrefillLease {
 public:
  PrefillLease() = default;
  PrefillLease(PrefillLease&& other) noexcept;
  PrefillLease& operator=(PrefillLease&& other) noexcept;
  ~PrefillLease() { end(); }

  [[nodiscard]] bool live() const { return book_ != nullptr; }
  [[nodiscard]] PrefillId instance() const { return instance_; }
  [[nodiscard]] Tokens tokens() const { return tokens_; }
  [[nodiscard]] bool holds_kv() const { return kv_until_.has_value(); }

  // The prompt is computed and has so many tokens.
  void computed(Tokens tokens);
  // The decode worker has the KV, or there is none: everything is free again.
  void fetched();
  void end();

 private:
  friend class PrefillBook;
  PrefillLease(PrefillBook& book, PrefillId instance, Tokens tokens)
      : book_{&book}, instance_{instance}, tokens_{tokens} {}

  PrefillBook* book_ = nullptr;
  PrefillId instance_;
  Tokens tokens_{0};
  std::optional<net::TimePoint> kv_until_;  // when the engine would drop it
};

// PrefillBook counts work and KV of every prefill instance, and which of them fail.
//   Units       tokens of prompts.
//   Invariants  every count is the sum over live leases, or over stranded KV whose time has not come.
//   Cost        take O(instances); the rest O(log stranded).
//   Threads     not synchronised: the deciding thread owns it.
class PrefillBook {
 public:
  struct Settings {
    std::size_t instances = 0;
    std::optional<Tokens> high_water;  // of one instance; none: no limit
    net::Duration engine_lease = std::chrono::seconds{30};
  };
  explicit PrefillBook(const Settings& settings);
  PrefillBook(const PrefillBook&) = delete;
  PrefillBook& operator=(const PrefillBook&) = delete;

  // The present moment; it never goes back. Stranded KV whose time has come is free again.
  void set_now(net::TimePoint now);

  // The instance with the least work among those that can be reached, are not suspended and stay below the high-water
  // mark, `avoid` only if no other one is left. An empty instance takes a prompt of any size.
  [[nodiscard]] std::optional<PrefillLease> take(Tokens work, std::optional<PrefillId> avoid = {});
  // Whether there is an instance that can be reached and is not suspended, full or not.
  [[nodiscard]] bool any_ready() const;

  void set_reachable(PrefillId instance, bool reachable) { instances_[instance.value()].reachable = reachable; }
  // An instance that fails twice in a row is left alone for a while, longer each time; an answer clears it.
  void failed(PrefillId instance);
  void answered(PrefillId instance);

  [[nodiscard]] const std::vector<PrefillCounts>& instances() const { return instances_; }
  // When stranded KV or a suspension ends next; kNever: there is none.
  [[nodiscard]] net::TimePoint next_change() const;

 private:
  friend class PrefillLease;
  [[nodiscard]] bool suspended(const PrefillCounts& instance) const { return instance.suspended_until > now_; }
  [[nodiscard]] bool ready(const PrefillCounts& instance) const { return instance.reachable && !suspended(instance); }
  [[nodiscard]] bool has_room(const PrefillCounts& instance, Tokens work) const;

  Settings settings_;
  std::vector<PrefillCounts> instances_;                                  // by PrefillId
  std::multimap<net::TimePoint, std::pair<PrefillId, Tokens>> stranded_;  // by its end
  net::TimePoint now_{};
};

}  // namespace balanceroute::proxy
