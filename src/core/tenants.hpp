// tenants.hpp - the settings of tenants: who may take how much of a fleet, and in which class; found by name.
//
// A tenant's name is that of the API key its requests come with. Keys and how they are checked are not this file's
// business.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/eligibility.hpp"
#include "core/ids.hpp"
#include "core/params.hpp"
#include "core/request.hpp"

namespace balanceroute {

struct TenantParams {
  static constexpr std::int64_t kNoQuota = 0;  // "auto"

  std::string name;
  std::int64_t weight = 1;
  std::int64_t max_sequences = kNoQuota;
  std::int64_t priority = 0;

  [[nodiscard]] TenantTerms terms() const {
    return {.weight = weight, .quota = max_sequences == kNoQuota ? TenantTerms::kNoQuota : max_sequences};
  }

  void visit_params(ParamVisitor& visitor);
};

// What no single setting can say: names must differ. One message, with `prefix` before the entry's number.
[[nodiscard]] std::optional<std::string> fault_of(std::span<const TenantParams> tenants,
                                                  std::string_view prefix = "tenants");

// Tenants marks requests with what their sender is to a fleet.
//   Unnamed  a sender without an entry is the default tenant, of class 0.
//   Cost     mark O(log tenants).
//   Threads  not synchronised; may be read by several once made.
class Tenants {
 public:
  Tenants() = default;
  // `add` makes a tenant known to whoever places its requests: Router::add_tenant.
  Tenants(std::span<const TenantParams> tenants, const std::function<TenantId(const TenantTerms&)>& add);

  void mark(Request& request, std::string_view sender) const;

 private:
  struct Known {
    TenantId id;
    std::int32_t priority = 0;
  };
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace balanceroute
