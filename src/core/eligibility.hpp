// eligibility.hpp - which requests may be placed now, and in which order; where they go is the policies' business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "core/errors.hpp"
#include "core/fair_share.hpp"
#include "core/ids.hpp"
#include "core/pool.hpp"
#include "core/request.hpp"

namespace balanceroute {

// TenantTerms is what a tenant may take of a fleet.
struct TenantTerms {
  static constexpr std::int64_t kNoQuota = std::numeric_limits<std::int64_t>::max();

  std::int64_t weight = 1;        // of its share of the tokens admitted in a class, in [1, FairShare::kMaxWeight]
  std::int64_t quota = kNoQuota;  // most sequences in sight of the policies and on workers, at least 1

  friend bool operator==(const TenantTerms&, const TenantTerms&) = default;
};

// Eligibility parks what is beyond its tenant's quota and gives everything else its turn.
//   Order       by class, then weighted fair share between tenants by load on entry, then arrival. One tenant in one
//               class is served in order of arrival. Within a tenant parked requests leave in order of arrival.
//   Invariants  a tenant's sequences that entered and have not left are at most its quota, as long as that was never
//               made smaller; nobody waits behind a parked request but those of its own tenant.
//   Cost        O(classes) a call, release_parked() O(tenants), withdraw_parked() O(parked).
//   Threads     not synchronised; owned by one Router.
class Eligibility {
 public:
  Eligibility();  // the default tenant has weight 1 and no quota

  TenantId add_tenant(const TenantTerms& terms);
  // For what comes or is placed from now on. What has entered stays, also beyond a smaller quota; a parked request that
  // alone is beyond it enters once nothing else of its tenant is left.
  void set_terms(TenantId tenant, const TenantTerms& terms);

  [[nodiscard]] std::optional<SubmitError> obstacle(const Request& request) const;

  // A request comes: true if it may enter, else it is parked.
  [[nodiscard]] bool enters(const Request& request);
  // A parked one that may enter by now, if there is any.
  [[nodiscard]] std::optional<Request> release_parked();
  // False if it is not parked.
  bool withdraw_parked(RequestId request);
  [[nodiscard]] std::size_t parked() const { return parked_; }

  // How a tenant stands now.
  struct Standing {
    TenantTerms terms;
    std::int64_t active;  // sequences that entered and have not left
    std::size_t parked;   // requests
  };
  [[nodiscard]] Standing standing(TenantId tenant) const {
    const Tenant& one = tenants_[tenant.value()];
    return {.terms = one.terms, .active = one.active, .parked = one.parked.size()};
  }

  // Its turn, of one that enters. Then it is served, or withdrawn.
  void give_turn(Candidate& candidate);
  void served(const Candidate& candidate);
  void withdrawn(const Candidate& candidate);

  // A request runs that never entered, or one that was served or withdrawn is gone.
  void joined(const Request& request) { tenants_[request.tenant.value()].active += request.sequences; }
  void narrowed(const Request& request) {
    tenants_[request.tenant.value()].active -= 1;
  }  // one of its sequences is gone
  void left(const Request& request) { tenants_[request.tenant.value()].active -= request.sequences; }

 private:
  struct Tenant {
    TenantTerms terms;
    std::int64_t active = 0;  // sequences that entered and have not left
    std::deque<Request> parked;
  };

  [[nodiscard]] static bool has_room(const Tenant& tenant, const Request& request) {
    return tenant.active == 0 || request.sequences <= tenant.terms.quota - tenant.active;
  }

  std::vector<Tenant> tenants_;
  FairShare shares_;
  std::size_t parked_ = 0;
};

}  // namespace balanceroute
