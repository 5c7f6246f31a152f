// request_limits.hpp - how many requests the owner of a key may make: at once, and in a minute.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "net/clock.hpp"
#include "proxy/api_keys.hpp"

namespace balanceroute::proxy {

enum class Limit : std::uint8_t { requests_per_minute, max_requests };

[[nodiscard]] std::string_view to_string(Limit limit);

// Why a request may not be made now, and when the next one may be.
struct LimitReached {
  Limit limit;
  std::chrono::seconds retry_after;  // at least one
};

// RequestLimits counts the requests of every key, by its name.
//   Law      in any 60 seconds begin at most requests_per_minute requests of a key, and at most max_requests of it are
//            there at one time. A request that is refused counts for nothing.
//   Reload   counts outlive the keys file: other limits hold at once, against what has been counted.
//   Cost     admit O(log keys) amortised; memory one instant for each request of the last minute under a limit of
//            requests_per_minute.
//   Threads  any.
class RequestLimits {
  struct Use {
    std::int64_t in_flight = 0;
    std::deque<net::TimePoint> begun;  // in the last minute
  };

 public:
  // Permit is one request that is there; its end takes it from the count. It must not outlive the RequestLimits.
  class Permit {
   public:
    Permit(Permit&& other) noexcept : limits_{std::exchange(other.limits_, nullptr)}, use_{other.use_} {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (limits_ != nullptr) limits_->ended(*use_);
    }

   private:
    friend class RequestLimits;
    Permit(RequestLimits& limits, Use& use) : limits_{&limits}, use_{&use} {}

    RequestLimits* limits_;
    Use* use_;
  };

  [[nodiscard]] std::expected<Permit, LimitReached> admit(const ApiKeyParams& key, net::TimePoint now);

 private:
  void ended(Use& use);

  std::mutex mutex_;
  std::map<std::string, Use, std::less<>> uses_;  // entries stay where they are
};

}  // namespace balanceroute::proxy
