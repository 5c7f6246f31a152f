// group.hpp - a data-parallel group of decode workers that meet at a barrier in every step.
//
// The model that simulator and emulator share; it has no clock: whoever drives it decides what a step's time means.
// A step is, in this order:
//
//   leave()    what finished in the last step goes out and frees its slot
//   bind()     decisions of the router (allowed at any other moment too)
//   enter()    bound sequences move from their worker's FIFO into free slots; where KV space runs out the youngest go
//              back to the front of the FIFO; the loads of the step stand
//   ...        the step takes StepTime(envelope)
//   advance()  every running sequence has one token more, or as many as its pace says
//
// Source: docs/algorithm.md, "Engine model".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/group_view.hpp"
#include "core/growth_watch.hpp"
#include "core/ids.hpp"
#include "core/index_lists.hpp"
#include "core/load_model.hpp"
#include "core/step_calendar.hpp"
#include "core/units.hpp"
#include "engine/token_pace.hpp"

namespace balanceroute::engine {

// Sequence is one answer to be generated. The engine knows how long it will be; the router does not.
struct Sequence {
  RequestId id;
  Tokens prompt;
  Tokens output;  // tokens at its end, age included
  Tokens age{0};  // tokens it has already generated when it is bound, below `output`
};

// SequenceHandle names a bound sequence until it left or was aborted; a stale one is recognised.
class SequenceHandle {
 public:
  SequenceHandle() = default;

  // Small number that no other bound sequence of the group has: for tables of the owner.
  [[nodiscard]] std::uint32_t index() const { return index_; }

  friend bool operator==(SequenceHandle, SequenceHandle) = default;

 private:
  friend class Group;
  SequenceHandle(std::uint32_t index, std::uint32_t generation) : index_{index}, generation_{generation} {}
  std::uint32_t index_ = IndexLists::kNone;
  std::uint32_t generation_ = 0;
};

// A sequence that went into a slot, or out of it.
struct SequenceMove {
  SequenceHandle handle;
  RequestId id;
  std::size_t worker = 0;
};

// A running sequence as it stands.
struct RunningSequence {
  SequenceHandle handle;
  RequestId id;
  Tokens generated;
  Tokens output;

  [[nodiscard]] bool finished() const { return generated == output; }
};

// The loads of one step.
struct StepLoads {
  std::span<const Tokens> loads;  // by worker
  Tokens envelope;
  std::int64_t active = 0;  // sequences in slots
  Tokens growth{1};         // that each of them generates in it; what is beyond its end is thrown away
};

// Tokens whose KV a worker must compute anew in a step: those of sequences that were preempted and go on.
struct Recomputed {
  std::size_t worker = 0;
  Tokens tokens;
};

// Group is G workers with B slots each and a FIFO of bound sequences before them.
//   Units       load of a worker: sum over its slots of LoadModel::weight_at.
//   KV space    of a worker: the tokens of its running sequences, the one of this step included and each sequence
//               rounded up to whole blocks, are at most kv_capacity (of a step that may bring several, the most). The
//               youngest are preempted until that holds; they keep what they generated and go on from there once they
//               fit again, their KV computed anew (recomputed() tells how much; what time that takes is the driver's).
//               One sequence alone always runs.
//   Invariants  after enter() a worker has no free slot, or an empty FIFO, or no KV space for the first in it; loads
//               are exact.
//   Cost        a step O(G + sequences that enter or leave or whose growth changes), bind() and abort() O(1); memory
//               linear in bound sequences.
//   Lifetime    spans are valid until the next call that is not const.
//   Threads     not synchronised.
class Group {
 public:
  static constexpr Tokens kUnlimited = kUnlimitedKv;

  Group(std::size_t workers, std::int64_t slots, Tokens kv_capacity = kUnlimited, Tokens kv_block = Tokens{1},
        const LoadModel& load_model = {}, TokenPace pace = {});

  // Appends to the worker's FIFO.
  SequenceHandle bind(std::size_t worker, const Sequence& sequence);

  // Takes a sequence out, queued or running; false when it is gone already. A slot is free again at once; the loads
  // that enter() told for the running step are not rewritten.
  bool abort(SequenceHandle handle);

  // The three parts of a step. Departures are told in order of their ends, then of entry, entries by worker and then by
  // FIFO, a preempted sequence that goes on being one more entry.
  std::span<const SequenceMove> leave();
  std::span<const SequenceMove> enter();
  void advance();

  // Tokens that those of the last leave() generated beyond their ends, in all.
  [[nodiscard]] Tokens thrown_away() const { return thrown_away_; }
  // By the last enter().
  [[nodiscard]] std::span<const SequenceMove> preempted() const { return preempted_; }
  // By the last enter(), one entry a worker, by worker.
  [[nodiscard]] std::span<const Recomputed> recomputed() const { return recomputed_; }
  // Of a bound sequence, running or not.
  [[nodiscard]] Tokens generated(SequenceHandle handle) const { return generated(places_[handle.index_]); }

  // As of the last enter().
  [[nodiscard]] StepLoads step_loads() const { return {step_loads_, envelope_, step_active_, step_growth_}; }

  [[nodiscard]] std::size_t workers() const { return workers_.size(); }
  [[nodiscard]] std::int64_t slots() const { return slots_; }
  [[nodiscard]] Steps step() const { return step_; }  // steps done
  [[nodiscard]] Tokens load(std::size_t worker) const { return workers_[worker].load; }
  [[nodiscard]] std::int64_t active(std::size_t worker) const { return workers_[worker].active; }
  [[nodiscard]] std::int64_t queued(std::size_t worker) const { return workers_[worker].queued; }
  [[nodiscard]] std::int64_t active() const { return active_; }
  [[nodiscard]] std::int64_t queued() const { return queued_; }

  // Calls visit(RunningSequence) for each of the worker's slots in use, oldest entry first.
  template <class Visit>
  void for_each_running(std::size_t worker, Visit&& visit) const {
    for (auto index = lists_.front(running_list(worker)); index != IndexLists::kNone; index = lists_.next(index)) {
      const Place& place = places_[index];
      visit(RunningSequence{handle_of(index), place.sequence.id, generated(place), place.sequence.output});
    }
  }

 private:
  enum class State : std::uint8_t { free, queued, running };

  struct Worker {
    Tokens load{0};
    std::int64_t load_growth = 0;  // tokens a step
    Tokens kv{0};                  // with the coming tokens of each; not counted without a limit
    std::int64_t kv_growth = 0;
    std::int64_t active = 0;
    std::int64_t queued = 0;
  };

  struct Place {
    Sequence sequence;
    Steps entered{0};  // on the clock
    std::uint32_t worker = 0;
    std::uint32_t generation = 0;
    State state = State::free;
    bool preempted = false;  // its KV is lost
  };

  [[nodiscard]] static std::size_t queue_list(std::size_t worker) { return 2 * worker; }
  [[nodiscard]] static std::size_t running_list(std::size_t worker) { return 2 * worker + 1; }
  [[nodiscard]] SequenceHandle handle_of(std::uint32_t index) const { return {index, places_[index].generation}; }
  [[nodiscard]] SequenceMove move_of(std::uint32_t index) const;
  // Tokens of a running sequence, with those beyond its end: ages are not counted one by one but follow from the
  // moment of entry.
  [[nodiscard]] Tokens grown(const Place& place) const {
    if (place.state != State::running) return place.sequence.age;
    return place.sequence.age + Tokens{(clock_ - place.entered).count()};
  }
  [[nodiscard]] Tokens generated(const Place& place) const { return std::min(grown(place), place.sequence.output); }
  [[nodiscard]] Tokens size(const Place& place) const { return place.sequence.prompt + grown(place); }
  // The size with the coming tokens, which KV space goes by.
  [[nodiscard]] Tokens next_size(const Place& place) const { return size(place) + pace_.most(); }
  [[nodiscard]] bool limited() const { return kv_capacity_ != kUnlimited; }
  [[nodiscard]] bool has_space(const Worker& worker, std::uint32_t index) const;
  void tick();
  void turn_growth();
  void free_space(std::size_t worker);
  void preempt(std::uint32_t index);
  void recompute(Place& place);

  std::uint32_t allocate();
  void release(std::uint32_t index);
  void start(std::size_t worker, std::uint32_t index);
  void vacate(std::uint32_t index);
  void unqueue(std::uint32_t index);

  GrowthWatch load_;
  GrowthWatch kv_;
  std::vector<Worker> workers_;
  std::int64_t slots_;
  Tokens kv_capacity_;
  TokenPace pace_;
  Steps step_{0};
  Steps clock_{0};  // ticks once for each token that a sequence which always runs has generated
  Steps seen_{0};   // ends up to that moment have been told
  std::int64_t active_ = 0;
  std::int64_t queued_ = 0;

  std::vector<Place> places_;
  std::vector<std::uint32_t> free_places_;
  IndexLists lists_;       // of each worker: its FIFO and its slots in use
  StepCalendar calendar_;  // of ends

  std::vector<Tokens> step_loads_;
  Tokens envelope_{0};
  std::int64_t step_active_ = 0;
  Tokens step_growth_{1};
  Tokens thrown_away_{0};
  std::vector<IndexLists::Index> due_;
  std::vector<SequenceMove> moves_;
  std::vector<SequenceMove> preempted_;
  std::vector<Recomputed> recomputed_;
};

}  // namespace balanceroute::engine
