#include "core/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

struct Waiting {
  std::uint32_t tenant;
  std::int64_t cost;
  std::int64_t start;
};

struct Tenant {
  std::int64_t weight;
  std::int64_t largest = 0;  // cost
  std::int64_t served = 0;
  int waiting = 0;

  [[nodiscard]] double share() const { return static_cast<double>(served) / static_cast<double>(weight); }
  [[nodiscard]] double slack() const { return static_cast<double>(largest + 1) / static_cast<double>(weight); }
};

// Law: while two tenants have requests waiting, what they were served over their weights differs by no more than their
// largest requests over their weights.
TEST(FairShareProperty, DividesByWeight) {
  check_property(10'000, [](std::uint32_t chance) {
    Random draw{chance};
    FairShare shares;
    std::vector<Tenant> tenants(2 + draw.below(4));
    for (Tenant& tenant : tenants) {
      tenant.weight = static_cast<std::int64_t>(1 + draw.below(draw.below(2) == 0 ? 4 : 1024));
      shares.add_tenant(tenant.weight);
    }
    std::vector<Waiting> waiting;
    for (std::uint64_t left = 40 + draw.below(60); left > 0; --left) {
      const auto tenant = static_cast<std::uint32_t>(draw.below(tenants.size()));
      const auto cost = static_cast<std::int64_t>(draw.below(draw.below(3) == 0 ? 5 : 5000));
      waiting.push_back({tenant, cost, shares.arrived(0, TenantId{tenant}, Tokens{cost})});
      tenants[tenant].largest = std::max(tenants[tenant].largest, cost);
      ++tenants[tenant].waiting;
    }
    while (!waiting.empty()) {
      const auto next = std::ranges::min_element(waiting, {}, &Waiting::start);
      shares.served(0, TenantId{next->tenant}, next->start, Tokens{next->cost});
      tenants[next->tenant].served += next->cost;
      --tenants[next->tenant].waiting;
      waiting.erase(next);
      for (const Tenant& a : tenants) {
        for (const Tenant& b : tenants) {
          if (a.waiting == 0 || b.waiting == 0) continue;
          require(std::abs(a.share() - b.share()) <= a.slack() + b.slack());
        }
      }
    }
  });
}

// Law: start tags of one tenant's waiting requests rise with their arrival, whatever is served or withdrawn meanwhile.
TEST(FairShareProperty, KeepsATenantsOrder) {
  check_property(10'000, [](const std::vector<std::uint32_t>& words) {
    FairShare shares;
    shares.add_tenant(3);
    shares.add_tenant(1000);
    std::vector<Waiting> waiting;
    for (const std::uint32_t word : words) {
      Random draw{word};
      if (draw.below(2) == 0 || waiting.empty()) {
        const auto tenant = static_cast<std::uint32_t>(draw.below(2));
        const auto cost = static_cast<std::int64_t>(draw.below(2) * draw.below(5000));
        const std::int64_t start = shares.arrived(7, TenantId{tenant}, Tokens{cost});
        for (const Waiting& other : waiting) require(other.tenant != tenant || other.start < start);
        waiting.push_back({tenant, cost, start});
      } else {
        const auto leaving = waiting.begin() + static_cast<std::ptrdiff_t>(draw.below(waiting.size()));
        if (draw.below(2) == 0) {
          shares.served(7, TenantId{leaving->tenant}, leaving->start, Tokens{leaving->cost});
        } else {
          shares.withdrawn(7, TenantId{leaving->tenant});
        }
        waiting.erase(leaving);
      }
    }
  });
}

}  // namespace
}  // namespace balanceroute
