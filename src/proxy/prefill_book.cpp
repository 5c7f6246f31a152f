#include "proxy/prefill_book.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace balanceroute::proxy {

namespace {

// One failure may be the request's own bad luck.
constexpr std::uint32_t kFailuresBorne = 2;
constexpr net::Duration kFirstSuspension = std::chrono::milliseconds{500};
constexpr net::Duration kLongestSuspension = std::chrono::seconds{30};

}  // namespace

PrefillLease::PrefillLease(PrefillLease&& other) noexcept
    : book_{std::exchange(other.book_, nullptr)},
      instance_{other.instance_},
      tokens_{other.tokens_},
      kv_until_{other.kv_until_} {}

PrefillLease& PrefillLease::operator=(PrefillLease&& other) noexcept {
  if (this == &other) return *this;
  end();
  book_ = std::exchange(other.book_, nullptr);
  instance_ = other.instance_;
  tokens_ = other.tokens_;
  kv_until_ = other.kv_until_;
  return *this;
}

void PrefillLease::computed(Tokens tokens) {
  if (!live() || holds_kv()) return;
  PrefillCounts& instance = book_->instances_[instance_.value()];
  instance.computing -= tokens_;
  instance.held += tokens;
  tokens_ = tokens;
  kv_until_ = book_->now_ + book_->settings_.engine_lease;
}

void PrefillLease::fetched() {
  if (!live()) return;
  PrefillCounts& instance = book_->instances_[instance_.value()];
  (holds_kv() ? instance.held : instance.computing) -= tokens_;
  --instance.requests;
  book_ = nullptr;
}

void PrefillLease::end() {
  if (!live()) return;
  if (holds_kv() && *kv_until_ > book_->now_) {
    book_->instances_[instance_.value()].stranded += tokens_;
    book_->stranded_.emplace(*kv_until_, std::pair{instance_, tokens_});
  }
  fetched();
}

PrefillBook::PrefillBook(const Settings& settings) : settings_{settings}, instances_(settings.instances) {}

void PrefillBook::set_now(net::TimePoint now) {
  now_ = now;
  while (!stranded_.empty() && stranded_.begin()->first <= now_) {
    const auto& [instance, tokens] = stranded_.begin()->second;
    instances_[instance.value()].stranded -= tokens;
    stranded_.erase(stranded_.begin());
  }
}

bool PrefillBook::has_room(const PrefillCounts& instance, Tokens work) const {
  if (!settings_.high_water || instance.budget() == Tokens{0}) return true;
  return instance.budget() + work <= *settings_.high_water;
}

std::optional<PrefillLease> PrefillBook::take(Tokens work, std::optional<PrefillId> avoid) {
  // Least work first; of equals the one with the least KV, then the lowest number.
  const auto order = [&](std::uint32_t i) {
    const PrefillCounts& instance = instances_[i];
    return std::tuple{avoid == PrefillId{i}, instance.computing, instance.budget(), i};
  };
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < instances_.size(); ++i) {
    if (!ready(instances_[i]) || !has_room(instances_[i], work)) continue;
    if (!best || order(i) < order(*best)) best = i;
  }
  if (!best) return std::nullopt;
  instances_[*best].computing += work;
  ++instances_[*best].requests;
  return PrefillLease{*this, PrefillId{*best}, work};
}

bool PrefillBook::any_ready() const {
  return std::ranges::any_of(instances_, [this](const PrefillCounts& instance) { return ready(instance); });
}

void PrefillBook::failed(PrefillId id) {
  PrefillCounts& instance = instances_[id.value()];
  if (++instance.failures < kFailuresBorne) return;
  const auto doublings = std::min<std::uint32_t>(instance.failures - kFailuresBorne, 6);
  instance.suspended_until = now_ + std::min(kFirstSuspension * (1 << doublings), kLongestSuspension);
}

void PrefillBook::answered(PrefillId id) {
  ++instances_[id.value()].answers;
  instances_[id.value()].failures = 0;
  instances_[id.value()].suspended_until = {};
}

net::TimePoint PrefillBook::next_change() const {
  net::TimePoint next = stranded_.empty() ? net::kNever : stranded_.begin()->first;
  for (const PrefillCounts& instance : instances_) {
    if (suspended(instance)) next = std::min(next, instance.suspended_until);
  }
  return next;
}

}  // namespace balanceroute::proxy
