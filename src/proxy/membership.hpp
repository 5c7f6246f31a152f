// membership.hpp - which workers belong to a fleet, and which of them take requests.
//
// What operators ask for, what probes find and what becomes of requests come together here and become the states of the
// ledger. Leaves out placement (dispatcher.hpp) and how health is judged (endpoint_health.hpp).
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/dispatcher.hpp"
#include "proxy/endpoint_health.hpp"
#include "proxy/member_status.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/prober.hpp"
#include "proxy/reconciler.hpp"
#include "proxy/worker_directory.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// A group of workers as the settings have it; every worker that joins it is like the others.
struct GroupSpec {
  std::string name;
  WorkerSlots slots;
  KvSpace kv;  // of one worker
};

// One worker that is to join.
struct WorkerSpec {
  std::string url;
  WorkerAddress address;
};

// Which workers a command is for: all that fit.
struct WorkerSelector {
  std::optional<std::uint32_t> id;
  std::optional<std::string> url;
  std::optional<std::int32_t> rank;
};

struct MembershipOptions {
  std::string fleet;
  std::vector<GroupSpec> groups;  // by GroupId
  HealthParams health;
  net::ClientOptions clients;  // of probes, whose time for connecting is health's
};

// Membership brings the states of a fleet's workers in line with what is wanted and what is known.
//   States     absent until it answers for the first time; dead while it cannot be reached; draining while an operator
//              wants it so, or it is held back for failing requests; else ready. A worker is never held back when no
//              other takes requests.
//   Trial      one that was held back takes `health.trial_requests` at once until its trial ends.
//   Removal    drains first; the worker leaves when it holds nothing. Under a barrier a dead worker stops its whole
//   group
//              until it is back or removed.
//   Commands   may be given again: they change nothing then, and succeed.
//   Threads    the deciding thread, but for report() and wait_for_first_look(); before threads run, the owner's. stop()
//              comes before the threads' ends.
class Membership final : public PlacementObserver {
 public:
  using Workers = std::expected<std::vector<WorkerId>, ApiError>;

  // Probes run on `probing`, signed with `key`.
  Membership(MembershipOptions options, Dispatcher& dispatcher, WorkerDirectory& directory, const EngineKey& key,
             net::IoThread& probing, spdlog::logger& log);
  ~Membership() override;

  // Workers of the group; those that it has already stay as they are, but are removed no more.
  Workers add(std::string_view group, const std::vector<WorkerSpec>& specs);
  Workers drain(const WorkerSelector& which);
  Workers resume(const WorkerSelector& which);
  Workers remove(const WorkerSelector& which);

  // What is found elsewhere for a group now, or why it could not be looked up: those that are new join, those that were
  // found before and are not any more leave. Nobody leaves because nothing was found.
  void follow(std::string_view group, const std::expected<std::vector<WorkerSpec>, std::string>& found);
  void set_health(const HealthParams& health);

  // What a request met at its worker. Any thread.
  void report(WorkerId worker, Evidence evidence, std::string fault);
  // Waits until every worker has answered a probe or failed to; false when `longest` passed first. The owner's thread.
  bool wait_for_first_look(net::Duration longest);
  void stop() { prober_.stop(); }

  [[nodiscard]] std::vector<MemberStatus> statuses() const;
  // Of the workers that take requests, the share whose engines contradict the ledger.
  [[nodiscard]] double contradicted_share() const;
  // One line that says which workers take requests, and why the others do not.
  void log_summary() const;

 private:
  struct Member {
    WorkerId id;
    WorkerAddress address;
    EndpointHealth health;
    bool drain_asked = false;
    bool removing = false;
    bool looked_at = false;
    std::int64_t on_trial = 0;   // requests that it has been given since its trial began and not ended
    bool limited = false;        // in the ledger, for its trial
    bool rank_rejected = false;  // and told
    std::uint64_t rejections = 0;
    std::string fault;
    std::array<std::uint64_t, kWorkerStates> became{};
    Reconciler reconciler;
    Lease background;                 // stands for what others send
    std::int64_t sequences_then = 0;  // when the engine was asked
    WorkerActivity activity_then{};
    std::optional<RankReading> engine;
  };

  void began(WorkerId worker) override;
  void ended(WorkerId worker, bool complete) override;
  void probed(const net::Endpoint& endpoint, const ProbeAnswer& answer);
  void asked(const net::Endpoint& endpoint);
  void read(const net::Endpoint& endpoint, const EngineReading& reading);
  void reconcile(Member& member, const RankReading& engine);
  void count_background(Member& member, std::int64_t sequences);
  void restarted(Member& member);
  void observe(Member& member, Evidence evidence, const std::string& fault, bool lives = false);
  void note_rejected_rank(Member& member, const std::string& fault);
  void settle(Member& member, std::string_view reason);
  void bring_in_line(Router& router, Member& member) const;
  void limit_trial(Router& router, Member& member) const;
  [[nodiscard]] bool trial_is_busy(const Member& member) const;
  void leave_if_idle(Member& member);
  void first_looked(Member& member);
  void arm_timer();
  void tick();
  Workers change(const WorkerSelector& which, std::string_view reason, const std::function<void(Member&)>& wish);
  [[nodiscard]] std::expected<std::vector<Member*>, ApiError> select(const WorkerSelector& which);
  [[nodiscard]] Member* find(GroupId group, const WorkerSpec& spec);
  Member& join(GroupId group, const WorkerSpec& spec);
  [[nodiscard]] WorkerRecord record(const Member& member) const;
  [[nodiscard]] bool is_last_to_take_requests(const Member& member) const;
  void note(Member& member, WorkerState before, std::int32_t sequences, std::string_view reason);

  MembershipOptions options_;
  Dispatcher& dispatcher_;
  WorkerDirectory& directory_;
  spdlog::logger& log_;
  std::vector<Member> members_;                                           // by WorkerId
  std::map<std::string, std::vector<WorkerSpec>, std::less<>> followed_;  // by group, what was found last
  std::map<std::string, std::string, std::less<>> not_found_;             // by group, why nothing was
  std::map<std::string, EngineReading> readings_;                         // the last of each address
  net::Timer timer_;
  Prober prober_;

  std::mutex look_mutex_;
  std::condition_variable looked_;
  std::size_t not_looked_at_ = 0;
};

}  // namespace balanceroute::proxy
