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
//   Gone     a tenant that has no entry any more stays as it was: its requests may still be there.
//   Cost     mark O(log tenants).
//   Threads  not synchronised.
class Tenants {
 public:
  struct Known {
    TenantId id;
    std::int32_t priority = 0;
    TenantTerms terms;
  };

  // Puts other settings in effect. `book` is who places the requests: a Router or an Eligibility, always the same one.
  template <class Book>
  void follow(std::span<const TenantParams> tenants, Book& book) {
    for (const TenantParams& tenant : tenants) {
      const auto [known, fresh] = known_.try_emplace(tenant.name);
      Known& its = known->second;
      const TenantTerms terms = tenant.terms();
      if (fresh) {
        its.id = book.add_tenant(terms);
      } else if (its.terms != terms) {
        book.set_terms(its.id, terms);
      }
      its.terms = terms;
      its.priority = static_cast<std::int32_t>(tenant.priority);
    }
  }

  void mark(Request& request, std::string_view sender) const;

  [[nodiscard]] const std::map<std::string, Known, std::less<>>& known() const { return known_; }

 private:
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace balanceroute
