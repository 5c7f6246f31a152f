#include "core/envelope.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/property.hpp"

namespace balanceroute {
namespace {

// Law: after any raises and lowers the envelope is the maximum of the loads, margins are never negative, and the
// margins add up to the imbalance.
TEST(EnvelopeProperty, IsTheMaximumOfTheLoads) {
  check_property(10'000, [](const std::vector<std::uint16_t>& words) {
    const std::size_t workers = *rc::gen::inRange<std::size_t>(1, 9);
    std::vector<std::int64_t> model(workers, 0);
    Envelope envelope{std::vector<Tokens>(workers)};
    for (const std::uint16_t word : words) {
      const std::size_t worker = word % workers;
      const std::int64_t by = word / 8;
      if (word % 2 == 0) {
        model[worker] += by;
        envelope.raise(worker, Tokens{by});
      } else {
        const std::int64_t lowered = std::min(by, model[worker]);
        model[worker] -= lowered;
        envelope.lower(worker, Tokens{lowered});
      }
      require(envelope.value() == Tokens{std::ranges::max(model)});
      Tokens margins{0};
      for (std::size_t g = 0; g < workers; ++g) {
        require(envelope.margin(g) >= Tokens{0});
        margins += envelope.margin(g);
      }
      require(margins == imbalance(envelope.loads()));
    }
  });
}

}  // namespace
}  // namespace balanceroute
