#include "proxy/membership.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace balanceroute::proxy {

namespace {

// Above every id that the dispatcher gives to a request.
constexpr std::uint64_t kBackgroundIds = std::uint64_t{1} << 62;

ApiError refusal(int status, std::string_view code, std::string message) {
  return {status, "invalid_request_error", code, std::move(message)};
}

std::string in_words(const WorkerSelector& which) {
  std::string words;
  if (which.id) words += " id " + std::to_string(*which.id);
  if (which.url) words += " url " + *which.url;
  if (which.rank) words += " rank " + std::to_string(*which.rank);
  return words;
}

std::string what_happened(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& fault) {
    return fault.what();
  }
}

}  // namespace

Membership::Membership(MembershipOptions options, Dispatcher& dispatcher, WorkerDirectory& directory,
                       const EngineKey& key, net::IoThread& probing, spdlog::logger& log)
    : options_{std::move(options)},
      dispatcher_{dispatcher},
      directory_{directory},
      log_{log},
      timer_{dispatcher.decider().timers()},
      prober_{
          probing,
          options_.health,
          options_.clients,
          key,
          [this](const net::Endpoint& endpoint) {
            dispatcher_.decider().dispatch([this, endpoint] { asked(endpoint); });
          },
          [this](const net::Endpoint& endpoint, ProbeAnswer answer) {
            dispatcher_.decider().dispatch([this, endpoint, answer = std::move(answer)] { probed(endpoint, answer); });
          },
          [&log](const std::exception_ptr& failure) { log.error("probe failed: {}", what_happened(failure)); }} {
  dispatcher_.observe(*this);
}

Membership::~Membership() = default;

// --- commands ---

Membership::Workers Membership::add(std::string_view group, const std::vector<WorkerSpec>& specs) {
  const auto found = std::ranges::find(options_.groups, group, &GroupSpec::name);
  if (found == options_.groups.end()) {
    return std::unexpected(
        refusal(404, "unknown_group", "the fleet '" + options_.fleet + "' has no group '" + std::string{group} + "'"));
  }
  const GroupId id{static_cast<std::uint32_t>(found - options_.groups.begin())};
  for (const WorkerSpec& spec : specs) {
    const auto elsewhere = std::ranges::find_if(members_, [&](const Member& other) {
      const WorkerRecord books = record(other);
      return books.state != WorkerState::removed && books.group != id && books.key.url == spec.url &&
             books.key.rank == spec.address.rank;
    });
    if (elsewhere == members_.end()) continue;
    return std::unexpected(refusal(409, "worker_in_other_group",
                                   spec.url + " is already a worker of group '" + record(*elsewhere).key.group + "'"));
  }
  std::vector<WorkerId> added;
  for (const WorkerSpec& spec : specs) {
    Member* known = find(id, spec);
    if (known != nullptr && std::exchange(known->removing, false)) {
      known->drain_asked = false;
      settle(*known, "added again before it had left");
    }
    added.push_back(known != nullptr ? known->id : join(id, spec).id);
  }
  return added;
}

Membership::Member& Membership::join(GroupId group, const WorkerSpec& spec) {
  const GroupSpec& like = options_.groups[group.value()];
  EndpointHealth health{options_.health};
  const bool unseen = health.state() == HealthState::unseen;
  const auto id = dispatcher_.change([&](Router& router) {
    return router.add_worker(group, spec.url, spec.address.rank, like.slots, like.kv,
                             unseen ? WorkerState::absent : WorkerState::ready);
  });
  assert(id && id->value() == members_.size());  // everything that it could be refused for has been looked at
  directory_.add(spec.address);
  members_.push_back({.id = *id, .address = spec.address, .health = health, .fault = {}});
  Member& member = members_.back();
  ++member.became[static_cast<std::size_t>(record(member).state)];
  log_.info("worker joined fleet={} group={} worker={} rank={} id={} state={}", options_.fleet, like.name, spec.url,
            spec.address.rank, id->value(), to_string(record(member).state));
  if (unseen) {
    const std::scoped_lock lock{look_mutex_};
    ++not_looked_at_;
  }
  prober_.watch(spec.address.endpoint);
  return member;
}

Membership::Member* Membership::find(GroupId group, const WorkerSpec& spec) {
  const auto found = std::ranges::find_if(members_, [&](const Member& member) {
    const WorkerRecord books = record(member);
    return books.state != WorkerState::removed && books.group == group && books.key.url == spec.url &&
           books.key.rank == spec.address.rank;
  });
  return found == members_.end() ? nullptr : &*found;
}

std::expected<std::vector<Membership::Member*>, ApiError> Membership::select(const WorkerSelector& which) {
  std::vector<Member*> found;
  for (Member& member : members_) {
    const WorkerRecord books = record(member);
    if (which.id && *which.id != member.id.value()) continue;
    if (which.url && *which.url != books.key.url) continue;
    if (which.rank && *which.rank != books.key.rank) continue;
    if (books.state == WorkerState::removed) continue;
    found.push_back(&member);
  }
  if (!found.empty()) return found;
  return std::unexpected(refusal(
      404, "unknown_worker",
      "the fleet '" + options_.fleet + "' has no worker" + in_words(which) + "; GET /workers lists those that it has"));
}

Membership::Workers Membership::drain(const WorkerSelector& which) {
  return change(which, "drain was asked for", [](Member& member) { member.drain_asked = true; });
}

Membership::Workers Membership::resume(const WorkerSelector& which) {
  return change(which, "the end of its drain was asked for",
                [](Member& member) { member.drain_asked = member.removing = false; });
}

Membership::Workers Membership::remove(const WorkerSelector& which) {
  return change(which, "its removal was asked for",
                [](Member& member) { member.drain_asked = member.removing = true; });
}

Membership::Workers Membership::change(const WorkerSelector& which, std::string_view reason,
                                       const std::function<void(Member&)>& wish) {
  const auto found = select(which);
  if (!found) return std::unexpected(found.error());
  std::vector<WorkerId> done;
  for (Member* member : *found) {
    wish(*member);
    settle(*member, reason);
    done.push_back(member->id);
  }
  return done;
}

void Membership::follow(std::string_view group, const std::expected<std::vector<WorkerSpec>, std::string>& found) {
  const std::string name{group};
  const std::string fault = !found ? found.error() : found->empty() ? "no worker was found" : "";
  if (std::exchange(not_found_[name], fault) != fault && !fault.empty()) {
    log_.warn("discovery fleet={} group={}: {}; its workers stay as they are", options_.fleet, group, fault);
  }
  if (!fault.empty()) return;
  const auto has = [](const std::vector<WorkerSpec>& list, const WorkerSpec& one) {
    return std::ranges::any_of(
        list, [&](const auto& other) { return other.url == one.url && other.address.rank == one.address.rank; });
  };
  std::vector<WorkerSpec> fresh;
  std::ranges::copy_if(*found, std::back_inserter(fresh), [&](const auto& one) { return !has(followed_[name], one); });
  if (const auto added = add(group, fresh); !added) log_.error("discovery: {}", added.error().message);
  for (const WorkerSpec& one : followed_[name]) {
    if (has(*found, one)) continue;
    const auto gone = remove({.id = std::nullopt, .url = one.url, .rank = one.address.rank});
    if (!gone) log_.info("discovery: {}", gone.error().message);
  }
  followed_[name] = *found;
}

void Membership::set_health(const HealthParams& health) {
  options_.health = health;
  prober_.set(health);
  for (Member& member : members_) {
    member.health.set(health);
    if (record(member).state != WorkerState::removed) prober_.watch(member.address.endpoint);
  }
  arm_timer();
}

// --- evidence ---

void Membership::report(WorkerId worker, Evidence evidence, std::string fault) {
  dispatcher_.decider().dispatch([this, worker, evidence, fault = std::move(fault)] {
    Member& member = members_[worker.value()];
    observe(member, evidence, fault);
    if (evidence != Evidence::request_complete) prober_.look_now(member.address.endpoint);
  });
}

void Membership::began(WorkerId worker) {
  Member& member = members_[worker.value()];
  if (!member.health.on_trial()) return;
  ++member.on_trial;
  // Not within the round that gives it the request: to change the router would begin another one.
  dispatcher_.decider().post([this, worker] {
    Member& tried = members_[worker.value()];
    if (tried.health.on_trial()) settle(tried, "it is on trial with as many requests as it may have");
  });
}

void Membership::ended(WorkerId worker, bool complete) {
  Member& member = members_[worker.value()];
  const bool tried = member.on_trial > 0;
  if (tried) --member.on_trial;
  if (complete) observe(member, Evidence::request_complete, {});
  if (tried) settle(member, "it is on trial for another request");
  if (member.removing) leave_if_idle(member);
}

void Membership::asked(const net::Endpoint& endpoint) {
  for (Member& member : members_) {
    if (member.address.endpoint != endpoint) continue;
    member.sequences_then = record(member).sequences;
    member.activity_then = dispatcher_.activity(member.id);
  }
}

// Ranks behind one address are judged by the same probe.
void Membership::probed(const net::Endpoint& endpoint, const ProbeAnswer& answer) {
  if (answer.reading) read(endpoint, *answer.reading);
  // Tokens of one rank show that the server lives that all of them share.
  bool lives = false;
  for (const Member& member : members_) {
    if (member.address.endpoint == endpoint && dispatcher_.pulse(member.id).take()) lives = true;
  }
  for (Member& member : members_) {
    if (member.address.endpoint != endpoint) continue;
    if (!answer.reading) member.reconciler.heard_nothing();
    observe(member, answer.evidence, answer.fault, lives);
    first_looked(member);
  }
}

// --- what engines say of themselves ---

namespace {

// The rank that the engine gives the worker's number; a worker that has an address for itself is the only rank there,
// whatever its number, or all of them.
RankReading reading_of(const EngineReading& page, const WorkerAddress& address) {
  if (const auto own = page.ranks.find(address.engine_rank); own != page.ranks.end() && page.ranks.size() > 1) {
    if (address.naming != RankNaming::Port) return own->second;
  }
  RankReading sum;
  if (address.naming != RankNaming::Port && page.ranks.size() > 1) return sum;  // start_rank is not what it is set to
  for (const auto& [number, rank] : page.ranks) {
    if (rank.running) sum.running = sum.running.value_or(0) + *rank.running;
    if (rank.waiting) sum.waiting = sum.waiting.value_or(0) + *rank.waiting;
    if (rank.kv_usage) sum.kv_usage = std::max(sum.kv_usage.value_or(0), *rank.kv_usage);
  }
  return sum;
}

}  // namespace

void Membership::read(const net::Endpoint& endpoint, const EngineReading& reading) {
  EngineReading& last = readings_[endpoint.authority()];
  const bool anew = last.says_something() && restarted_between(last, reading);
  last = reading;
  for (Member& member : members_) {
    if (member.address.endpoint != endpoint || record(member).state == WorkerState::removed) continue;
    // One that is dead begins a new life when its health says so.
    if (anew && dispatcher_.router().ledger().position(member.id)) restarted(member);
    member.engine = reading_of(reading, member.address);
    if (!anew) reconcile(member, *member.engine);
  }
}

void Membership::restarted(Member& member) {
  const std::int32_t held = record(member).sequences;
  member.background.release();
  member.reconciler.set_background(0);
  [[maybe_unused]] const auto done = dispatcher_.change([&](Router& router) { return router.restart(member.id); });
  assert(done);
  const WorkerRecord now = record(member);
  log_.warn(
      "worker restarted fleet={} group={} worker={} rank={} incarnation={}: its counters began anew; {} sequences "
      "that it held are given up",
      options_.fleet, now.key.group, now.key.url, now.key.rank, now.incarnation, held);
}

void Membership::reconcile(Member& member, const RankReading& engine) {
  const WorkerRecord books = record(member);
  if (books.state != WorkerState::ready && books.state != WorkerState::draining) return;
  const WorkerActivity now = dispatcher_.activity(member.id);
  const MirrorWindow mirror{
      .fewest = member.sequences_then - member.activity_then.not_started - (now.ended - member.activity_then.ended),
      .most = member.sequences_then + now.admitted - member.activity_then.admitted + now.ahead,
      .slots = books.slots.decoding,
      .waiting = dispatcher_.router().waiting()};
  const Findings found = member.reconciler.compare(engine, mirror);
  if (found.background) count_background(member, *found.background);
  if (found.mirror_too_high) {
    log_.warn(
        "worker {} of group {} runs {} sequences and the ledger counts at least {}: requests may have ended at the "
        "engine without a word",
        books.key.url, books.key.group, engine.running.value_or(0), mirror.fewest);
  }
  if (found.slots_too_many) {
    log_.warn(
        "worker {} lets {} requests wait while it runs {}, and group {} is set to slots = {}: its --max-num-seqs "
        "seems to be {}; set slots to that",
        books.key.url, engine.waiting.value_or(0), engine.running.value_or(0), books.key.group, books.slots.decoding,
        engine.running.value_or(0));
  }
  if (found.slots_left_idle) {
    log_.warn(
        "worker {} of group {} runs {} sequences in {} slots while {} requests wait here: the ledger counts "
        "requests that the engine has not",
        books.key.url, books.key.group, engine.running.value_or(0), books.slots.decoding, mirror.waiting);
  }
}

// Requests that reach the engine around the router take slots and load too; each counts as the group's mean sequence.
void Membership::count_background(Member& member, std::int64_t sequences) {
  const WorkerRecord books = record(member);
  const std::int64_t before = member.reconciler.background();
  const std::int64_t counted = dispatcher_.change([&](Router& router) -> std::int64_t {
    member.background.release();
    const auto place = router.ledger().position(member.id);
    if (!place) return 0;
    const GroupView& group = router.ledger().view(books.group);
    std::int64_t load = 0;
    std::int64_t running = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      load += group.loads[i].count();
      running += group.sequences[i];
    }
    const std::int64_t taken = std::min<std::int64_t>(sequences, group.free_slots[*place]);
    if (taken < 1) return 0;
    const Request stand_in{.id = RequestId{kBackgroundIds + member.id.value()},
                           .prompt = Tokens{running > 0 ? std::max<std::int64_t>(1, load / running) : 1},
                           .sequences = static_cast<std::int32_t>(taken)};
    auto lease = router.adopt(member.id, stand_in);
    if (!lease) return 0;
    member.background = std::move(*lease);
    return taken;
  });
  member.reconciler.set_background(counted);
  if (counted == before) return;
  log_.warn(
      "worker {} of group {} runs {} sequences that did not come through this router (before: {}); they are "
      "counted as load",
      books.key.url, books.key.group, counted, before);
}

void Membership::observe(Member& member, Evidence evidence, const std::string& fault, bool lives) {
  if (record(member).state == WorkerState::removed) return;
  if (!fault.empty()) member.fault = fault;
  if (evidence == Evidence::rank_rejected) note_rejected_rank(member, fault);
  const bool failed = evidence == Evidence::request_failed || evidence == Evidence::rank_rejected;
  if (failed && is_last_to_take_requests(member)) return;
  const bool tried = member.health.on_trial();
  const bool changed = member.health.observe(evidence, dispatcher_.decider().now(), lives);
  if (!changed) return;
  const bool released = tried && member.health.state() == HealthState::up;
  settle(member, !fault.empty() ? fault : released ? "it has passed its trial" : "it answers");
}

// Not the worker's doing, and it will not pass: whoever set the router up must hear of it.
void Membership::note_rejected_rank(Member& member, const std::string& fault) {
  ++member.rejections;
  if (std::exchange(member.rank_rejected, true)) return;
  const WorkerRecord books = record(member);
  log_.error(
      "worker {} of group {} does not know rank {}: {}; set ranks, start_rank and addressing of that worker as its "
      "engine has them",
      books.key.url, books.key.group, books.key.rank, fault);
}

bool Membership::is_last_to_take_requests(const Member& member) const {
  const Ledger& ledger = dispatcher_.router().ledger();
  return std::ranges::none_of(
      members_, [&](const Member& other) { return other.id != member.id && ledger.worker(other.id).eligible; });
}

void Membership::first_looked(Member& member) {
  if (std::exchange(member.looked_at, true)) return;
  const std::scoped_lock lock{look_mutex_};
  --not_looked_at_;
  looked_.notify_all();
}

bool Membership::wait_for_first_look(net::Duration longest) {
  std::unique_lock lock{look_mutex_};
  return looked_.wait_for(lock, longest, [this] { return not_looked_at_ == 0; });
}

// --- states ---

WorkerRecord Membership::record(const Member& member) const {
  return dispatcher_.router().ledger().worker(member.id);
}

void Membership::settle(Member& member, std::string_view reason) {
  const WorkerRecord before = record(member);
  if (before.state == WorkerState::removed) return;
  if (member.removing || member.health.state() == HealthState::down) {
    member.background.release();
    member.reconciler.set_background(0);
  }
  dispatcher_.change([&](Router& router) {
    bring_in_line(router, member);
    return true;
  });
  note(member, before.state, before.sequences, reason);
  if (member.removing) leave_if_idle(member);
  arm_timer();
}

void Membership::bring_in_line(Router& router, Member& member) const {
  const HealthState health = member.health.state();
  std::expected<void, WorkerError> done;
  if (health == HealthState::unseen) return;
  if (!member.health.on_trial()) member.on_trial = 0;
  limit_trial(router, member);
  if (health == HealthState::down) {
    done = router.declare_dead(member.id);
  } else {
    if (!router.ledger().position(member.id)) done = router.restart(member.id);
    assert(done);
    const bool rests = member.drain_asked || health == HealthState::held || trial_is_busy(member);
    done = rests ? router.drain(member.id) : router.resume(member.id);
  }
  assert(done);  // the worker is known and not removed
}

// Beside what it runs from before.
void Membership::limit_trial(Router& router, Member& member) const {
  const bool tried = member.health.on_trial();
  if (!tried && !member.limited) return;
  member.limited = tried;
  std::optional<std::int32_t> most;
  if (tried) {
    const std::int64_t more = std::max<std::int64_t>(0, options_.health.trial_requests - member.on_trial);
    most = record(member).sequences + static_cast<std::int32_t>(more);
  }
  [[maybe_unused]] const auto done = router.limit(member.id, most);
  assert(done);
}

// Nobody waits for a trial when there is no other worker.
bool Membership::trial_is_busy(const Member& member) const {
  return member.health.on_trial() && member.on_trial >= options_.health.trial_requests &&
         !is_last_to_take_requests(member);
}

void Membership::leave_if_idle(Member& member) {
  const WorkerRecord before = record(member);
  const auto left = dispatcher_.change([&](Router& router) { return router.remove(member.id); });
  if (!left) return;  // it still holds requests
  note(member, before.state, 0, "it holds nothing any more");
  const bool shared = std::ranges::any_of(members_, [&](const Member& other) {
    return other.address.endpoint == member.address.endpoint && record(other).state != WorkerState::removed;
  });
  if (!shared) prober_.forget(member.address.endpoint);
}

void Membership::note(Member& member, WorkerState before, std::int32_t sequences, std::string_view reason) {
  const WorkerRecord now = record(member);
  if (now.state == before) return;
  ++member.became[static_cast<std::size_t>(now.state)];
  const bool bad = now.state == WorkerState::dead || member.health.state() == HealthState::held;
  log_.log(bad ? spdlog::level::warn : spdlog::level::info,
           "worker state={} was={} fleet={} group={} worker={} rank={} incarnation={} reason=\"{}\"",
           to_string(now.state), to_string(before), options_.fleet, now.key.group, now.key.url, now.key.rank,
           now.incarnation, reason);
  if (now.state != WorkerState::dead) return;
  if (sequences > 0)
    log_.warn("worker {} held {} sequences; their slots and load are given back", now.key.url, sequences);
  const GroupView& group = dispatcher_.router().ledger().view(now.group);
  const bool stopped = group.size() > 0 && std::ranges::none_of(group.eligible, [](auto e) { return e != 0; });
  if (stopped) {
    log_.error(
        "group {} takes no requests: its workers wait for {} in every step; it goes on when that one answers "
        "again, or is removed (DELETE /workers)",
        now.key.group, now.key.url);
  }
}

void Membership::arm_timer() {
  net::TimePoint next = net::kNever;
  for (const Member& member : members_) next = std::min(next, member.health.due());
  timer_.arm(next, [this] { tick(); });
}

void Membership::tick() {
  const net::TimePoint now = dispatcher_.decider().now();
  for (Member& member : members_) {
    if (!member.health.tick(now)) continue;
    settle(member, member.health.on_trial() ? "its time is over; it is on trial" : "nothing failed in its trial");
  }
  arm_timer();
}

void Membership::log_summary() const {
  std::size_t ready = 0;
  std::string missing;
  for (const Member& member : members_) {
    const WorkerRecord books = record(member);
    if (books.eligible) {
      ++ready;
    } else if (books.state != WorkerState::removed) {
      missing += "\n  " + books.key.url + " (group " + books.key.group + ") is " + std::string{to_string(books.state)} +
                 (member.fault.empty() ? "" : ": " + member.fault);
    }
  }
  if (missing.empty()) {
    log_.info("fleet {}: all {} workers take requests", options_.fleet, ready);
  } else if (ready > 0) {
    log_.warn("fleet {} starts degraded: {} of {} workers take requests; the others join when they answer:{}",
              options_.fleet, ready, members_.size(), missing);
  } else {
    log_.error(
        "fleet {}: no decode worker takes requests, so they are answered 503 until one does; check that the "
        "engines run and that their addresses are right:{}",
        options_.fleet, missing);
  }
}

double Membership::contradicted_share() const {
  std::size_t ready = 0;
  std::size_t contradicted = 0;
  for (const Member& member : members_) {
    if (record(member).state != WorkerState::ready) continue;
    ++ready;
    contradicted += member.reconciler.contradicted() ? 1 : 0;
  }
  return ready == 0 ? 0 : static_cast<double>(contradicted) / static_cast<double>(ready);
}

std::vector<MemberStatus> Membership::statuses() const {
  std::vector<MemberStatus> out;
  for (const Member& member : members_) {
    out.push_back({.health = member.health.state(),
                   .on_trial = member.health.on_trial(),
                   .times_held = member.health.times_held(),
                   .rank_rejections = member.rejections,
                   .drain_asked = member.drain_asked,
                   .removing = member.removing,
                   .fault = member.fault,
                   .engine = member.engine,
                   .background = member.reconciler.background(),
                   .disagreements = member.reconciler.disagreements(),
                   .became = member.became});
  }
  return out;
}

}  // namespace balanceroute::proxy
