#include "core/tenants.hpp"

#include <set>

#include "core/fair_share.hpp"
#include "core/param_check.hpp"

namespace balanceroute {

void TenantParams::visit_params(ParamVisitor& visitor) {
  visitor.text({.name = "name", .doc = "The tenant, by the name of its API key.", .required = true}, name);
  visitor.integer({"weight",
                   "Its share of the tokens that are admitted, against the weights of the others that wait in its "
                   "class."},
                  weight, {1, FairShare::kMaxWeight});
  visitor.integer_or_auto(
      {"max_sequences",
       "Most answers of it on workers and next to be placed; what is beyond waits apart. auto is no "
       "limit."},
      max_sequences, kNoQuota, {1, 1'000'000'000});
  visitor.integer({"priority", "The class of its requests: a higher one goes first."}, priority, {-1'000, 1'000});
}

std::optional<std::string> fault_of(std::span<const TenantParams> tenants, std::string_view prefix) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const std::string entry = std::string{prefix} + "[" + std::to_string(i) + "].";
    if (auto fault = first_fault(tenants[i], entry)) return fault;
    if (!names.insert(tenants[i].name).second) {
      return entry + "name = " + tenants[i].name + ": expected a name that no other tenant has";
    }
  }
  return std::nullopt;
}

void Tenants::mark(Request& request, std::string_view sender) const {
  const auto known = known_.find(sender);
  const Known its = known == known_.end() ? Known{.id = kDefaultTenant, .terms = {}} : known->second;
  request.tenant = its.id;
  request.priority = its.priority;
}

}  // namespace balanceroute
