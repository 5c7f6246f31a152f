// kv_exchange.hpp - the side channel between prefill and decode engines, which no router sees.
//
// A prefill engine offers the KV of a prompt under a key; the decode engine that brings the key and the proof takes it.
// What keys and proofs are is the dialect's business.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "emulator/prefill_engine.hpp"
#include "net/event.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::emulator {

// What came of handing KV over, since the measuring window began.
struct KvCounters {
  std::int64_t offered = 0;
  std::int64_t transferred = 0;
  std::int64_t leases_expired = 0;      // nobody came for the KV in time
  std::int64_t abandoned = 0;           // the decode side left before the KV was there
  std::int64_t relay_faults = 0;        // what a router relayed was wrong, late, missing or doubled
  std::int64_t transfers_lost = 0;      // on demand
  std::int64_t local_prompts = 0;       // decode requests that brought no KV at all
  std::int64_t recomputed_prompts = 0;  // their KV could not be had, so that the decode rank computed them
};

// The KV of one prompt on offer.
struct KvOffer {
  std::string key;
  std::string proof;
  std::string engine_id;                      // who holds it
  std::size_t rank = 0;                       // of that engine
  std::unique_ptr<PrefillEngine::Prompt> kv;  // nothing: it is lost, which who comes for it finds out
};

// KvExchange keeps offers until they are taken or their lease ends.
//   Keys     one offer at a time for a key.
//   Threads  only on `thread`.
class KvExchange {
 public:
  KvExchange(net::IoThread& thread, net::Duration lease) : thread_{thread}, lease_{lease} {}

  // False when the key is on offer already, which is a relay fault, or was abandoned; the KV is then given up.
  bool offer(KvOffer offer);
  // The same, and returns once it is taken; false when it is not, or not in time.
  boost::asio::awaitable<bool> hand_over(KvOffer offer);

  // What is on offer now; nothing: it never was, was taken before, or its lease ended.
  [[nodiscard]] std::optional<KvOffer> take(const std::string& key);
  // The same, waiting for the offer as long as a lease. A waiter that is cancelled abandons the key: its offer, should
  // it come yet, is given up at once. The error is Timeout or Cancelled.
  boost::asio::awaitable<std::expected<KvOffer, net::WaitResult>> wait_for(std::string key);

  // A decode engine expects KV under a key that it chose itself; who completes it must bring the proof. One that goes
  // away undecided abandons the key.
  class Expectation {
   public:
    Expectation(KvExchange& exchange, std::string key, std::string proof);
    ~Expectation();
    Expectation(const Expectation&) = delete;
    Expectation& operator=(const Expectation&) = delete;

    void fulfil() { decided_.set(); }
    void fail(std::string why) {
      failure_ = std::move(why);
      decided_.set();
    }
    // Set by either of them.
    [[nodiscard]] net::Event& decided() { return decided_; }
    [[nodiscard]] const std::string& failure() const { return failure_; }  // empty: none
    [[nodiscard]] const std::string& proof() const { return proof_; }

   private:
    KvExchange& exchange_;
    std::string key_;
    std::string proof_;
    std::string failure_;
    net::Event decided_;
  };
  // The live expectation under the key.
  [[nodiscard]] Expectation* expectation(const std::string& key);

  // Whether the one who wanted the KV went away before it was there, not longer ago than a lease.
  [[nodiscard]] bool is_abandoned(const std::string& key) const { return abandoned_.contains(key); }

  // All offers of an engine that is gone.
  void forget(const std::string& engine_id);

  [[nodiscard]] std::size_t offers() const { return offers_.size(); }
  [[nodiscard]] std::size_t offers_of(const std::string& engine_id) const;
  [[nodiscard]] net::Duration lease() const { return lease_; }
  [[nodiscard]] KvCounters& counters() { return counters_; }
  [[nodiscard]] const KvCounters& counters() const { return counters_; }

 private:
  struct Held {
    Held(net::IoThread& thread, KvOffer offered) : offer{std::move(offered)}, lease{thread.timers()} {}
    KvOffer offer;
    net::Timer lease;
    net::Event* taken = nullptr;
  };
  class Abandonment;

  Held* hold(KvOffer offer);
  void expire(const std::string& key);
  void abandon(const std::string& key);

  net::IoThread& thread_;
  net::Duration lease_;
  std::unordered_map<std::string, std::unique_ptr<Held>> offers_;
  std::unordered_map<std::string, net::Event*> waiting_;
  std::unordered_map<std::string, std::unique_ptr<net::Timer>> abandoned_;  // forgotten at the end of their timers
  std::unordered_map<std::string, Expectation*> expectations_;
  KvCounters counters_;
};

}  // namespace balanceroute::emulator
