#include "policy/br_fit/outlook.hpp"

#include <cmath>
#include <map>

#include "core/random.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

struct Known {
  std::uint32_t worker;
  Request request;
  std::int64_t age;
  bool grows;
};

// The sums as they are defined.
Outlook::Sums slow_sums(const Outlook& outlook, const std::map<std::uint64_t, Known>& all, std::uint32_t worker) {
  Outlook::Sums sums;
  for (const auto& [id, known] : all) {
    if (known.worker != worker) continue;
    const double weight = static_cast<double>(known.request.prompt.count() + known.age);
    for (std::size_t k = 0; k < Outlook::kPoints; ++k) {
      const double horizon = outlook.horizons()[k];
      const double q = outlook.curve().conditional(Tokens{known.age}, Tokens{static_cast<std::int64_t>(horizon)});
      sums.drift[k] += known.request.sequences * (q * (weight + horizon) - weight);
      sums.gone[k] += known.request.sequences * (1 - q);
    }
  }
  return sums;
}

bool close(double a, double b) {
  return std::abs(a - b) <= 1e-9 * (1e6 + std::abs(a) + std::abs(b));
}

// Law: with renewal at every step the incremental sums are those made from scratch, whatever comes, ends and grows, and
// through new curves.
TEST(OutlookProperty, SumsEqualRecomputation) {
  check_property(60, [](std::uint64_t seed) {
    Random draw{seed};
    Outlook outlook{{.refresh_steps = 1}};
    std::map<std::uint64_t, Known> all;
    const GroupId group{0};
    std::uint64_t next = 0;
    std::size_t curves = 0;
    for (int i = 0; i < 700; ++i) {
      for (std::uint64_t n = draw.below(3); n > 0; --n) {
        const auto age = static_cast<std::int64_t>(draw.below(8) == 0 ? draw.below(20) : 0);
        const Request request{.id = RequestId{next},
                              .prompt = Tokens{static_cast<std::int64_t>(draw.below(3'000))},
                              .generated = Tokens{age},
                              .sequences = static_cast<std::int32_t>(1 + draw.below(2))};
        const auto worker = static_cast<std::uint32_t>(draw.below(3));
        outlook.admitted(request, group, WorkerId{worker});
        const bool grows = draw.below(6) != 0;
        if (grows) outlook.aged(request.id, Tokens{age});
        all[next++] = {worker, request, age, grows};
      }
      for (std::uint64_t n = draw.below(4); n > 0 && !all.empty(); --n) {
        const auto gone = std::next(all.begin(), static_cast<std::ptrdiff_t>(draw.below(all.size())));
        if (gone->second.request.sequences > 1) {
          --gone->second.request.sequences;
          outlook.narrowed(RequestId{gone->first}, Tokens{gone->second.age});
          continue;
        }
        const LeaseEnd how = draw.below(5) == 0 ? LeaseEnd::cut : LeaseEnd::finished;
        outlook.left(RequestId{gone->first}, Tokens{gone->second.age}, how);
        all.erase(gone);
      }
      for (std::uint32_t worker = 0; worker < 3; ++worker) {
        const Outlook::Sums sums = outlook.sums(WorkerId{worker});
        const Outlook::Sums expected = slow_sums(outlook, all, worker);
        double prompts = 0;
        for (const auto& [id, known] : all) {
          if (known.worker == worker)
            prompts += static_cast<double>(known.request.prompt.count()) * known.request.sequences;
        }
        require(outlook.running_prompts(WorkerId{worker}) == prompts);
        for (std::size_t k = 0; k < Outlook::kPoints; ++k) {
          require(close(sums.drift[k], expected.drift[k]));
          require(close(sums.gone[k], expected.gone[k]));
        }
      }
      curves += outlook.curve().empty() ? 0 : 1;
      const std::int64_t steps = static_cast<std::int64_t>(1 + draw.below(3));
      outlook.stepped(group, Steps{steps});
      for (auto& [id, known] : all) known.age += known.grows ? steps : 0;
    }
    require(curves > 0);
  });
}

}  // namespace
}  // namespace balanceroute
