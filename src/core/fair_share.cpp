#include "core/fair_share.hpp"

#include <algorithm>
#include <cassert>

namespace balanceroute {
namespace {

// Virtual time of a token at weight 1: shares are exact to a thousandth of a token. Tags then hold 2^53 tokens.
constexpr std::int64_t kUnit = 1'024;

}  // namespace

void FairShare::add_tenant(std::int64_t weight) {
  assert(weight >= 1 && weight <= kMaxWeight);
  weights_.push_back(weight);
  for (Class& each : classes_) each.accounts.resize(weights_.size());
}

void FairShare::set_weight(TenantId tenant, std::int64_t weight) {
  assert(weight >= 1 && weight <= kMaxWeight);
  weights_[tenant.value()] = weight;
}

FairShare::Class& FairShare::class_of(std::int32_t priority) {
  const auto known = std::ranges::find(classes_, priority, &Class::priority);
  if (known != classes_.end()) return *known;
  classes_.push_back({.priority = priority, .accounts = std::vector<Account>(weights_.size())});
  return classes_.back();
}

// At least 1, so that no two requests of a tenant start together.
std::int64_t FairShare::length(TenantId tenant, Tokens cost) const {
  return std::max<std::int64_t>(cost.count() * kUnit / weights_[tenant.value()], 1);
}

std::int64_t FairShare::arrived(std::int32_t priority, TenantId tenant, Tokens cost) {
  Class& its = class_of(priority);
  Account& account = its.accounts[tenant.value()];
  const std::int64_t before = account.waiting > 0 ? account.end_of_waiting : account.end_of_served;
  const std::int64_t start = std::max(its.now, before);
  account.end_of_waiting = start + length(tenant, cost);
  ++account.waiting;
  return start;
}

void FairShare::served(std::int32_t priority, TenantId tenant, std::int64_t start, Tokens cost) {
  Class& its = class_of(priority);
  Account& account = its.accounts[tenant.value()];
  its.now = std::max(its.now, start);
  account.end_of_served = std::max(account.end_of_served, start + length(tenant, cost));
  --account.waiting;
}

void FairShare::withdrawn(std::int32_t priority, TenantId tenant) {
  --class_of(priority).accounts[tenant.value()].waiting;
}

}  // namespace balanceroute
