// simulation.hpp - one run of a fleet in virtual time: requests arrive, the router places them, groups step.
//
// The router is the one that routes live traffic, the group the one that the emulator drives. A group's step, in order:
// what finished leaves, the router decides, what it admitted enters, the step lasts as the most loaded worker needs,
// every running sequence has one token more, or as many as speculation brings (Fleet::tokens_per_step): to the router
// these are as many steps, so that its looks ahead are in tokens of a sequence. Requests that arrive during a step are
// seen at its end (of several groups: at the first end of any), after what finished has left, so that every kind of
// policy decides on the newest state. A group with nothing to do looks as a request arrives. What was admitted enters
// once it has been handed over (Fleet::admission_delay), its slot being held meanwhile; a request that an immediate
// policy bound is handed over while it waits. No I/O, no clock, no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ledger.hpp"
#include "core/random.hpp"
#include "engine/group.hpp"
#include "policy/router.hpp"
#include "sim/fleet.hpp"
#include "sim/intake.hpp"
#include "sim/request_stream.hpp"
#include "sim/run_meter.hpp"
#include "sim/true_lengths.hpp"
#include "trace/stationary_law.hpp"
#include "trace/trace.hpp"

namespace balanceroute::sim {

// SimulatedStep is one step of one group as it begins. The loads are valid until the next one.
struct SimulatedStep {
  std::size_t group = 0;
  Nanoseconds start{0};
  Nanoseconds duration{0};
  bool measured = false;  // within the measured window
  engine::StepLoads loads;
};

// Simulation runs from the first arrival to the last.
//   Window       measured is what begins after a tenth of the arrivals have come: steps, admissions, first and last
//                tokens. Requests that ran from the start have no arrival and are left out of times.
//   Determinism  fleet, policy, stream and seed give every step.
//   Cost         a step O(workers of the group + events) and the policy's round; memory in active, waiting and, for
//                exact percentiles, three numbers a measured request.
//   Threads      not synchronised.
class Simulation {
 public:
  // `seed` is for the policy's own draws. `truth` is told of every length, for a policy that may look it up.
  Simulation(const Fleet& fleet, std::unique_ptr<Policy> policy, RequestStream stream, std::uint64_t seed,
             std::shared_ptr<TrueLengths> truth = std::make_shared<TrueLengths>());

  // Before the first step: fills `count` slots, evenly over workers, with running requests of a fleet that has long
  // been at work; fewer where KV space runs out. At most as many as there are slots.
  void warm_up(std::span<const trace::TraceRequest> trace, const trace::StationaryLaw& law, std::size_t count,
               Random& random);

  // The next step of the group whose turn it is; none once the last request has arrived.
  std::optional<SimulatedStep> step();

  // All of them.
  RunResult run();

  [[nodiscard]] const Router& router() const { return router_; }
  [[nodiscard]] const engine::Group& group(std::size_t index) const { return groups_[index].engine; }
  [[nodiscard]] RunResult result() const { return meter_.result(); }

 private:
  static constexpr Nanoseconds kNever = Nanoseconds::max();

  // One request on a worker.
  struct Running {
    Lease lease;
    Nanoseconds arrival{0};
    Nanoseconds first_token{0};
    RequestLengths lengths;
    bool timed = false;    // it arrived, rather than being there at the start
    bool entered = false;  // it has had a slot before
  };

  // An admission on its way to its worker.
  struct Handover {
    Nanoseconds due{0};
    std::size_t worker = 0;
    engine::Sequence sequence;
    std::size_t prefiller = 0;
    Running running;
  };

  struct Group {
    Group(GroupId its_id, const Fleet& fleet)
        : id{its_id}, engine{fleet.workers,  fleet.slots,      fleet.kv.capacity,
                             fleet.kv_block, fleet.load_model, engine::TokenPace{fleet.tokens_per_step}} {}

    GroupId id;
    engine::Group engine;
    std::vector<Running> running;     // by handle index
    std::vector<Handover> handovers;  // heap, the first due at the front
    Nanoseconds wake = kNever;        // when it acts next
    Nanoseconds idle_since{0};        // while asleep
    bool asleep = true;               // it has nothing to do, and acts at once when a request comes
    bool measured = false;            // the present step counts
  };

  // The window is told by the number of arrivals: it opens after a tenth of them; its second half begins at the middle
  // one of the rest.
  [[nodiscard]] std::uint64_t before_window() const { return intake_.size() / 10; }
  [[nodiscard]] bool measuring() const { return window_start_.has_value(); }
  [[nodiscard]] std::uint64_t before_second_half() const { return (before_window() + intake_.size()) / 2; }

  [[nodiscard]] Group& next_group();
  [[nodiscard]] Tokens load(const Group& group) const;
  void take_requests(Nanoseconds now);
  void note_arrival(Nanoseconds now);
  void wake_up(Group& group);
  void count_idle(Group& group, Nanoseconds now);
  void end_step(Group& group);
  void admit(Group& group, Nanoseconds now);
  [[nodiscard]] Nanoseconds handed_over(const PendingRequest& request, Nanoseconds now) const;
  void take_handovers(Group& group, Nanoseconds now);
  bool begin_step(Group& group, Nanoseconds now);
  void enter(Group& group, const engine::SequenceMove& move);
  void fall_asleep(Group& group, Nanoseconds now);
  static void place(Group& group, std::size_t worker, const engine::Sequence& sequence, Running running);

  Fleet fleet_;
  std::shared_ptr<TrueLengths> truth_;  // outlives the policy, which the router owns
  Intake intake_;
  Router router_;
  RunMeter meter_;
  std::vector<Group> groups_;
  std::size_t asleep_;                       // groups
  std::optional<Nanoseconds> window_start_;  // once the measured window is open
};

}  // namespace balanceroute::sim
