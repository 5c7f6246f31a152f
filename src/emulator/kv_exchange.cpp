#include "emulator/kv_exchange.hpp"

#include <algorithm>
#include <utility>

namespace balanceroute::emulator {

namespace asio = boost::asio;

KvExchange::Expectation::Expectation(KvExchange& exchange, std::string key, std::string proof)
    : exchange_{exchange}, key_{std::move(key)}, proof_{std::move(proof)}, decided_{exchange.thread_} {
  exchange_.expectations_[key_] = this;
}

KvExchange::Expectation::~Expectation() {
  const auto found = exchange_.expectations_.find(key_);
  if (found == exchange_.expectations_.end() || found->second != this) return;
  exchange_.expectations_.erase(found);
  if (!decided_.is_set()) exchange_.abandon(key_);
}

KvExchange::Expectation* KvExchange::expectation(const std::string& key) {
  const auto found = expectations_.find(key);
  return found == expectations_.end() ? nullptr : found->second;
}

KvExchange::Held* KvExchange::hold(KvOffer offer) {
  if (abandoned_.erase(offer.key) > 0) {
    ++counters_.abandoned;
    return nullptr;
  }
  const std::string key = offer.key;
  const auto [entry, fresh] = offers_.try_emplace(key);
  if (!fresh) {
    ++counters_.relay_faults;
    return nullptr;
  }
  ++counters_.offered;
  entry->second = std::make_unique<Held>(thread_, std::move(offer));
  Held* held = entry->second.get();
  held->lease.arm(thread_.now() + lease_, [this, key] { expire(key); });
  if (const auto waiter = waiting_.find(key); waiter != waiting_.end()) waiter->second->set();
  return held;
}

bool KvExchange::offer(KvOffer offer) {
  return hold(std::move(offer)) != nullptr;
}

asio::awaitable<bool> KvExchange::hand_over(KvOffer offer) {
  const std::string key = offer.key;
  net::Event taken{thread_};
  Held* held = hold(std::move(offer));
  if (held == nullptr) co_return false;
  held->taken = &taken;
  // The offer does not outlive the one who waits here for it to be taken.
  const auto withdraw = [this, &taken](const std::string* name) {
    const auto found = offers_.find(*name);
    if (found != offers_.end() && found->second->taken == &taken) offers_.erase(found);
  };
  const std::unique_ptr<const std::string, decltype(withdraw)> guard{&key, withdraw};
  const auto waited = co_await taken.wait(thread_.now() + lease_);
  co_return waited == net::WaitResult::Set;
}

std::optional<KvOffer> KvExchange::take(const std::string& key) {
  const auto found = offers_.find(key);
  if (found == offers_.end()) return std::nullopt;
  KvOffer offer = std::move(found->second->offer);
  if (found->second->taken != nullptr) found->second->taken->set();
  offers_.erase(found);
  return offer;
}

// Abandonment speaks for a waiter: one that goes away without the offer leaves word.
class KvExchange::Abandonment {
 public:
  Abandonment(KvExchange& exchange, const std::string& key, net::Event& offered) : exchange_{exchange}, key_{key} {
    exchange_.waiting_[key_] = &offered;
  }
  ~Abandonment() {
    exchange_.waiting_.erase(key_);
    if (!served_) exchange_.abandon(key_);
  }
  Abandonment(const Abandonment&) = delete;
  Abandonment& operator=(const Abandonment&) = delete;
  void serve() { served_ = true; }

 private:
  KvExchange& exchange_;
  const std::string& key_;
  bool served_ = false;
};

asio::awaitable<std::expected<KvOffer, net::WaitResult>> KvExchange::wait_for(std::string key) {
  auto offered = take(key);
  if (offered) co_return *std::move(offered);
  // Somebody else brought the same key.
  if (waiting_.contains(key)) co_return std::unexpected{net::WaitResult::Timeout};
  net::Event arrived{thread_};
  Abandonment waiter{*this, key, arrived};
  const auto waited = co_await arrived.wait(thread_.now() + lease_);
  if (waited != net::WaitResult::Set) co_return std::unexpected{waited};
  waiter.serve();
  offered = take(key);
  if (!offered) co_return std::unexpected{net::WaitResult::Timeout};
  co_return *std::move(offered);
}

void KvExchange::abandon(const std::string& key) {
  if (take(key)) {
    ++counters_.abandoned;
    return;
  }
  auto& memory = abandoned_[key] = std::make_unique<net::Timer>(thread_.timers());
  memory->arm(thread_.now() + lease_, [this, key] { abandoned_.erase(key); });
}

void KvExchange::expire(const std::string& key) {
  ++counters_.leases_expired;
  offers_.erase(key);
}

void KvExchange::forget(const std::string& engine_id) {
  std::erase_if(offers_, [&](const auto& entry) { return entry.second->offer.engine_id == engine_id; });
}

std::size_t KvExchange::offers_of(const std::string& engine_id) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(offers_, [&](const auto& entry) { return entry.second->offer.engine_id == engine_id; }));
}

}  // namespace balanceroute::emulator
