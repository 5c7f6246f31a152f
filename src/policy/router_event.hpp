// router_event.hpp - everything that is done to a Router and everything it decides, one event after the other.
//
// Whoever does the same to a fresh Router of the same settings and seed must see it decide the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/eligibility.hpp"
#include "core/ids.hpp"
#include "core/ledger.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "policy/admission.hpp"
#include "policy/policy_params.hpp"

namespace balanceroute {

namespace router_event {

struct TenantAdded {
  TenantTerms terms;
};
struct TermsChanged {
  TenantId tenant;
  TenantTerms terms;
};
struct GroupAdded {
  std::string_view name;
  bool barrier;
};
struct WorkerAdded {
  GroupId group;
  std::string_view url;
  std::int32_t rank;
  WorkerSlots slots;
  KvSpace kv;
  WorkerState state;
};
enum class Change : std::uint8_t { drain, resume, restart, declare_dead, remove };
struct WorkerChanged {
  WorkerId worker;
  Change change;
};
struct WorkerLimited {
  WorkerId worker;
  std::optional<std::int32_t> sequences;
};
struct Submitted {
  Request request;
};
struct Withdrawn {  // of one that waited
  RequestId request;
};
struct Adopted {
  WorkerId worker;
  Request request;
};
// A lease was started (the first such event of a request), or its progress was told.
struct Aged {
  RequestId request;
  Tokens generated;
};
struct Narrowed {  // by one sequence
  RequestId request;
  Tokens generated;
};
struct Ended {
  RequestId request;
  Tokens generated;
  LeaseEnd how;
};
struct Learned {  // of an earlier time
  Request request;
  Tokens generated;
  LeaseEnd how;
};
struct Advanced {
  GroupId group;
  Steps steps;
};
struct Decided {
  std::optional<GroupId> group;  // none: all of them
  std::span<const Admission> admissions;
};
// set: another policy decides from now on. degraded: that one does for a while, and the chosen one goes on hearing.
// restored: the chosen one decides again.
enum class PolicyTurn : std::uint8_t { set, degraded, restored };
struct PolicyChanged {
  const PolicyParams& settings;
  PolicyTurn turn = PolicyTurn::set;
};

}  // namespace router_event

using RouterEvent = std::variant<router_event::TenantAdded, router_event::TermsChanged, router_event::GroupAdded,
                                 router_event::WorkerAdded, router_event::WorkerChanged, router_event::WorkerLimited,
                                 router_event::Submitted, router_event::Withdrawn, router_event::Adopted,
                                 router_event::Aged, router_event::Narrowed, router_event::Ended, router_event::Learned,
                                 router_event::Advanced, router_event::Decided, router_event::PolicyChanged>;

// RouterListener hears what is asked of a Router before it is done, whether it then can be or not; withdrawals and
// decisions as they are done. Ends of leases that such a call brings about follow it.
class RouterListener {
 public:
  virtual ~RouterListener() = default;

  // `now` is the router's.
  virtual void heard(std::chrono::nanoseconds now, const RouterEvent& event) = 0;
};

// RouterListeners passes on what it hears, in the order in which they were added.
class RouterListeners final : public RouterListener {
 public:
  // `listener` outlives it.
  void add(RouterListener& listener) { listeners_.push_back(&listener); }
  // What a router is to tell: nobody, the only one, or all.
  [[nodiscard]] RouterListener* as_one() {
    if (listeners_.empty()) return nullptr;
    return listeners_.size() == 1 ? listeners_.front() : this;
  }
  void heard(std::chrono::nanoseconds now, const RouterEvent& event) override {
    for (RouterListener* listener : listeners_) listener->heard(now, event);
  }

 private:
  std::vector<RouterListener*> listeners_;
};

}  // namespace balanceroute
