// fair_share.hpp - in which order tenants are served so that each gets its share.
//
// Start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, SIGCOMM 1996): a request starts, in virtual time, when its
// tenant's one before ends, or now if that is later; it lasts its cost over its tenant's weight. The lowest start goes
// first, and virtual time is the largest start served. Time in which a tenant asks for nothing is not made up for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"

namespace balanceroute {

// FairShare gives start tags to the requests of one priority class after the other.
//   Invariants  start tags of a tenant's waiting requests of one class rise with their arrival. While two tenants
//   always
//               have requests waiting and tags are served in order, what they were served, over their weights, differs
//               by no more than the sum of their largest costs over their weights.
//   Cost        O(classes) a call; memory classes * tenants.
//   Threads     not synchronised.
class FairShare {
 public:
  static constexpr std::int64_t kMaxWeight = 1'024;

  // The next tenant; weight in [1, kMaxWeight].
  void add_tenant(std::int64_t weight);

  // Of requests that arrive or are served from now on.
  void set_weight(TenantId tenant, std::int64_t weight);

  // A request of the tenant arrives: its start tag.
  [[nodiscard]] std::int64_t arrived(std::int32_t priority, TenantId tenant, Tokens cost);
  // It was served, or left before.
  void served(std::int32_t priority, TenantId tenant, std::int64_t start, Tokens cost);
  void withdrawn(std::int32_t priority, TenantId tenant);

 private:
  struct Account {
    std::int64_t waiting = 0;
    std::int64_t end_of_waiting = 0;  // of the last one that arrived
    std::int64_t end_of_served = 0;
  };
  struct Class {
    std::int32_t priority = 0;
    std::int64_t now = 0;
    std::vector<Account> accounts;  // by tenant
  };

  [[nodiscard]] Class& class_of(std::int32_t priority);
  [[nodiscard]] std::int64_t length(TenantId tenant, Tokens cost) const;

  std::vector<std::int64_t> weights_;  // by tenant
  std::vector<Class> classes_;
};

}  // namespace balanceroute
