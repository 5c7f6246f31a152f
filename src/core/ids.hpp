// ids.hpp - names of requests, workers and groups that cannot be mistaken for one another or for a number.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace balanceroute {

// Id is the name of one thing of the kind its tag says. A default one names nothing.
template <class Tag, std::unsigned_integral Rep>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_{value} {}

  [[nodiscard]] constexpr Rep value() const { return value_; }
  [[nodiscard]] constexpr bool names_something() const { return value_ != kNothing; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr Rep kNothing = std::numeric_limits<Rep>::max();
  Rep value_ = kNothing;
};

using RequestId = Id<struct RequestTag, std::uint64_t>;
// Dense (0, 1, 2, ... in order of joining) and never reused, so they index tables.
using WorkerId = Id<struct WorkerTag, std::uint32_t>;
using GroupId = Id<struct GroupTag, std::uint32_t>;
// Dense too; the first one is everybody who has no name.
using TenantId = Id<struct TenantTag, std::uint32_t>;
inline constexpr TenantId kDefaultTenant{0};

}  // namespace balanceroute

template <class Tag, std::unsigned_integral Rep>
struct std::hash<balanceroute::Id<Tag, Rep>> {
  std::size_t operator()(balanceroute::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
