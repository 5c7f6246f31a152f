// prefill_dispatcher.hpp - the prefill dispatcher: requests wait here for a prefill instance, in the order of their
// turns.
//
// Prefilled requests wait for a decode worker in the pool, and their KV waits with them; so under overload requests
// wait here, where they cost nothing, and only as many are prefilled as the pool can use.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/eligibility.hpp"
#include "core/pool.hpp"
#include "core/tenants.hpp"
#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/prefill_book.hpp"

namespace balanceroute::proxy {

class PrefillDispatcher;

// PrefillClaim is one request's claim on a prefill instance: a place in the arrival queue first, then work, then KV.
//   Threads  only on the I/O thread it was asked from. Its destructor gives everything back but KV that an engine
//   keeps.
class PrefillClaim {
 public:
  PrefillClaim(PrefillClaim&& other) noexcept;
  PrefillClaim& operator=(PrefillClaim&& other) noexcept;
  ~PrefillClaim() { leave(); }

  // Waits for an instance.
  net::asio::awaitable<std::expected<PrefillId, PlacementError>> assigned(net::TimePoint deadline);
  // The prompt of so many tokens is computed, and its KV waits for the decode worker.
  void computed(Tokens prompt);
  // The decode worker has the KV, or the engine kept none.
  void fetched();
  // The instance did not do its part.
  void failed();
  void leave();

 private:
  friend class PrefillDispatcher;
  struct State;
  PrefillClaim(PrefillDispatcher& dispatcher, std::shared_ptr<State> state);

  PrefillDispatcher* dispatcher_;
  std::shared_ptr<State> state_;
};

struct PrefillOptions {
  PrefillBook::Settings book;
  std::size_t waiting_limit = 16'384;
  std::size_t candidates = 16;  // that the policy looks at in one round
  net::Duration hold_limit = std::chrono::seconds{20};
};

// When a request is prefilled.
enum class Turn : std::uint8_t {
  InOrder,  // when the pool has use for it
  Next      // as soon as an instance has room: its worker waits for it, or it has had its turn before
};

// What a request wants of an instance.
struct PrefillWork {
  Tokens tokens;               // to compute
  std::int32_t sequences = 1;  // that will be decoded
  std::string tenant{};        // by name; an unknown one is the default tenant
};

// PrefillDispatcher gives requests of one fleet to its prefill instances, on the deciding thread.
//   Gate     requests in order get an instance while those in flight and those in the pool are fewer than pool_target:
//            enough for the policy to choose from, and never more than will be admitted in half the hold limit.
//   Turns    as in front of workers (Eligibility): by class, then weighted fair share between tenants by prompt tokens,
//            then arrival. What is beyond its tenant's quota waits apart, so that no KV is held for what could not be
//            decoded.
//   Threads  request() from I/O threads; the others on the deciding thread. Must outlive its claims.
class PrefillDispatcher {
 public:
  // `dispatcher` tells the state of the pool; it must outlive this object's requests.
  PrefillDispatcher(Dispatcher& dispatcher, const PrefillOptions& options);
  ~PrefillDispatcher();

  // `avoid`: the instance that failed the request before.
  PrefillClaim request(net::IoThread& home, PrefillWork work, Turn turn, std::optional<PrefillId> avoid = {});

  // Who shares the fleet from now on; also before threads run.
  void set_tenants(const std::vector<TenantParams>& tenants);
  // Requests of the tenant that wait for room in its quota.
  std::size_t parked(std::string_view tenant) const;

  // What probes say of an instance.
  void set_reachable(PrefillId id, bool reachable);
  const PrefillCounts& counts(PrefillId id) const { return book_.instances()[id.value()]; }

  // `with_leases` lists every lease.
  PrefillSnapshot snapshot(bool with_leases) const;
  // Claims that exist now. Any thread.
  std::size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  friend class PrefillClaim;
  using State = PrefillClaim::State;

  struct Entry {
    std::shared_ptr<State> state;  // until it is answered
    Request request;               // its prompt is the work
    bool counts = false;           // among its tenant's sequences: it has an instance, or is the next to have one
    Turn turn = Turn::InOrder;
    std::optional<PrefillId> avoid;
    PrefillLease lease;
    net::TimePoint since{};  // when it got its instance
  };

  void submit(RequestId id, Entry entry, const std::string& tenant);
  void enter(const Request& request);
  void computed(RequestId id, Tokens prompt);
  void fetched(RequestId id);
  void failed(RequestId id);
  void leave(RequestId id);
  void dispatch();
  bool give_next();
  bool give_in_order();
  bool give(Entry& entry);
  void refuse_all();
  void stop_waiting(RequestId id, Entry& entry);
  void end_in_flight(Entry& entry);
  std::size_t pool_target() const;
  void watch();

  Dispatcher& dispatcher_;
  net::IoThread& decider_;
  PrefillOptions options_;
  PrefillBook book_;
  std::unordered_map<RequestId, Entry> entries_;
  Tenants tenants_;
  Eligibility eligibility_;
  Pool in_order_;
  std::uint64_t next_serial_ = 0;
  std::deque<RequestId> next_;  // may hold requests that have left
  std::size_t waiting_ = 0;
  std::size_t in_flight_ = 0;
  double prefill_seconds_ = 0;
  net::Timer change_timer_;
  std::atomic<std::uint64_t> next_request_{0};
  std::atomic<std::size_t> live_{0};
};

}  // namespace balanceroute::proxy
