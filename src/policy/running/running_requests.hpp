// running_requests.hpp - who runs where and how old each is, as a policy hears it: for policies that look ahead.
//
// Ages go with the step clock of each group, so a step touches no request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/id_map.hpp"
#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "predict/kaplan_meier.hpp"

namespace balanceroute {

// RunningRequests follows the requests of one fleet from admission to their end.
//   Handle    each has a small number, which a later one gets again: what a policy knows of it stands in a row of its
//             own at that place.
//   Cost      each call O(1), all_spans O(running); no allocation once warm.
//   Threads   not synchronised; owned by one policy.
class RunningRequests {
 public:
  using Handle = std::uint32_t;

  // It is on that worker, with the age it came with; it grows from aged() on. None if it is there already.
  std::optional<Handle> admitted(const Request& request, GroupId group, WorkerId worker);
  // It runs, and is so old now. None if nothing is known of it; so in the calls below.
  std::optional<Handle> aged(RequestId request, Tokens generated);
  // One of its sequences is over; others are not.
  std::optional<Handle> narrowed(RequestId request);
  // It is over. Its handle is good until the next admission.
  std::optional<Handle> left(RequestId request);
  void stepped(GroupId group, Steps steps);

  [[nodiscard]] std::optional<Handle> find(RequestId request) const { return index_.find(request); }
  [[nodiscard]] const Request& request(Handle handle) const { return entries_[handle].request; }
  [[nodiscard]] WorkerId worker(Handle handle) const { return WorkerId{entries_[handle].worker}; }
  [[nodiscard]] GroupId group(Handle handle) const { return GroupId{entries_[handle].group}; }
  [[nodiscard]] bool grows(Handle handle) const { return entries_[handle].grows; }
  [[nodiscard]] Tokens age(Handle handle) const;

  // Steps of the group, of those that it may have had a request in.
  [[nodiscard]] Steps clock(GroupId group) const;
  // Workers of the group that ever ran anything, in the order in which they first did.
  [[nodiscard]] std::span<const WorkerId> workers(GroupId group) const;
  // What runs there, in no order that means anything.
  [[nodiscard]] std::span<const Handle> running_on(WorkerId worker) const;

  // The life so far of all that run, in every group. Valid until the next call.
  [[nodiscard]] std::span<const LifeSpan> all_spans();

 private:
  struct Entry {
    Request request;
    std::uint32_t worker = 0;
    std::uint32_t group = 0;
    std::uint32_t place = 0;  // among its worker's
    Tokens age{0};            // at `since`, on its group's clock
    Steps since{0};
    bool grows = false;
  };
  struct Worker {
    bool known = false;
    std::vector<Handle> running;
  };
  struct Group {
    Steps clock{0};
    std::vector<WorkerId> workers;
  };

  Worker& worker_at(GroupId group, WorkerId worker);
  [[nodiscard]] Handle take_entry();

  std::vector<Group> groups_;    // by GroupId
  std::vector<Worker> workers_;  // by WorkerId
  std::vector<Entry> entries_;
  std::vector<Handle> unused_;
  IdMap index_;
  std::vector<LifeSpan> spans_;
};

}  // namespace balanceroute
