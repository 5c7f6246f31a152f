#include "core/eligibility.hpp"

#include <algorithm>
#include <cassert>

namespace balanceroute {

Eligibility::Eligibility() {
  add_tenant({});
}

TenantId Eligibility::add_tenant(const TenantTerms& terms) {
  assert(terms.quota >= 1);
  const TenantId id{static_cast<std::uint32_t>(tenants_.size())};
  tenants_.push_back({.terms = terms, .active = 0, .parked = {}});
  shares_.add_tenant(terms.weight);
  return id;
}

void Eligibility::set_terms(TenantId tenant, const TenantTerms& terms) {
  assert(terms.quota >= 1);
  tenants_[tenant.value()].terms = terms;
  shares_.set_weight(tenant, terms.weight);
}

std::optional<SubmitError> Eligibility::obstacle(const Request& request) const {
  if (request.tenant.value() >= tenants_.size()) return SubmitError::UnknownTenant;
  if (request.sequences > tenants_[request.tenant.value()].terms.quota) return SubmitError::ExceedsQuota;
  return std::nullopt;
}

bool Eligibility::enters(const Request& request) {
  Tenant& tenant = tenants_[request.tenant.value()];
  if (tenant.parked.empty() && has_room(tenant, request)) {
    joined(request);
    return true;
  }
  tenant.parked.push_back(request);
  ++parked_;
  return false;
}

std::optional<Request> Eligibility::release_parked() {
  if (parked_ == 0) return std::nullopt;
  for (Tenant& tenant : tenants_) {
    if (tenant.parked.empty() || !has_room(tenant, tenant.parked.front())) continue;
    const Request released = tenant.parked.front();
    tenant.parked.pop_front();
    --parked_;
    joined(released);
    return released;
  }
  return std::nullopt;
}

bool Eligibility::withdraw_parked(RequestId request) {
  for (Tenant& tenant : tenants_) {
    if (std::erase_if(tenant.parked, [request](const Request& each) { return each.id == request; }) == 0) continue;
    --parked_;
    return true;
  }
  return false;
}

void Eligibility::give_turn(Candidate& candidate) {
  const Request& request = candidate.request;
  candidate.start = shares_.arrived(request.priority, request.tenant, candidate.weight);
}

void Eligibility::served(const Candidate& candidate) {
  shares_.served(candidate.request.priority, candidate.request.tenant, candidate.start, candidate.weight);
}

void Eligibility::withdrawn(const Candidate& candidate) {
  shares_.withdrawn(candidate.request.priority, candidate.request.tenant);
  left(candidate.request);
}

}  // namespace balanceroute
