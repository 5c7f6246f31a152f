#include "core/patience.hpp"

#include <algorithm>
#include <vector>

#include "core/random.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Law: the limit is the larger of 10 s and four times what all that wait take at the rate of the last 16 seconds.
TEST(PatienceProperty, FollowsTheRateOfAdmissions) {
  check_property(10'000, [](std::uint32_t chance) {
    Random draw{chance};
    Patience patience;
    std::vector<nanoseconds> admitted;
    const nanoseconds began{static_cast<std::int64_t>(draw.below(100'000'000'000))};
    nanoseconds now = began;
    std::ignore = patience.limit(now, 0);
    for (int i = 0; i < 40; ++i) {
      now += nanoseconds{static_cast<std::int64_t>(draw.below(draw.below(8) == 0 ? 40'000'000'000 : 900'000'000))};
      if (draw.below(3) != 0) {
        patience.admitted(now);
        admitted.push_back(now);
        continue;
      }
      const std::size_t waiting = draw.below(1000);
      const auto first = std::chrono::floor<seconds>(now) - seconds{15};
      const auto count = std::ranges::count_if(admitted, [&](nanoseconds at) { return at >= first; });
      nanoseconds expected = seconds{10};
      if (count > 0) {
        const nanoseconds watched = now - std::max<nanoseconds>(began, first);
        expected = std::max(expected, 4 * watched * static_cast<std::int64_t>(waiting) / count);
      }
      require(patience.limit(now, waiting) == expected);
    }
  });
}

}  // namespace
}  // namespace balanceroute
