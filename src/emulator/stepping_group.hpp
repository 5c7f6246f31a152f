// stepping_group.hpp - drives the engine model in real time, step by step, and measures what it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/units.hpp"
#include "emulator/step_histogram.hpp"
#include "engine/group.hpp"
#include "net/io_thread.hpp"
#include "stats/imbalance_meter.hpp"
#include "stats/step_time.hpp"

namespace balanceroute::emulator {

// TokenSink takes the tokens of one sequence, at the end of the step that made them.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // `number` goes up by one a call and begins after the sequence's age.
  virtual void on_token(Tokens number, bool last) = 0;
  // The rank's KV ran out and this sequence has to go: it was withdrawn, nothing more comes.
  virtual void on_recomputed() = 0;
  // Neither may submit or withdraw sequences.
};

struct GroupSettings {
  std::size_t ranks = 1;
  std::int64_t slots = 1;
  StepTime step_time;
  Tokens kv_capacity = engine::Group::kUnlimited;  // of a rank
  Tokens kv_block{1};                              // KV is taken in blocks of so many tokens
  StepTime prefill_time;                           // of prompt tokens that a rank computes itself, within the step
  bool recompute_stop = false;                     // a full rank withdraws its youngest instead of preempting it
  std::size_t step_log = 1;                        // steps that are remembered
};

// One step as it was.
struct StepRecord {
  std::int64_t number = 0;  // from 1, since the group began
  net::TimePoint start{};
  net::Duration length{0};
  net::Duration lateness{0};
  std::vector<Tokens> loads;         // by rank
  std::vector<std::int64_t> active;  // by rank
};

// What a group did since its measuring window began.
struct GroupMeasures {
  ImbalanceMeter loads;
  std::int64_t late_steps = 0;  // ended more than max(1 ms, a tenth of their length) after they should have
  net::Duration largest_lateness{0};
  std::int64_t tokens = 0;         // generated
  std::int64_t client_closes = 0;  // connections that clients closed before their answer ended

  GroupMeasures& operator+=(const GroupMeasures& other);
};

// What one rank did since it started; only ever grows.
struct RankCounters {
  std::int64_t prompt_tokens = 0;
  std::int64_t computed_prompt_tokens = 0;  // of them here and not by a prefill engine
  std::int64_t preemptions = 0;
  std::int64_t recomputed_stops = 0;
  std::int64_t generated_tokens = 0;
  StepHistogram step_tokens;  // tokens a step: prompts that were computed and one a running sequence
};

// SteppingGroup is one group of ranks with a barrier in real time.
//   Steps     A step lasts StepTime(envelope) from its start, which is the planned end of the step before, so that the
//             time for sending tokens is not added; after a late step it is the actual end, so that nothing is made up
//             for. Prompts that ranks compute themselves make the step longer by the time of the rank with most of
//             them. A group without sequences does not step.
//   Lifetime  A sink lives until its ticket is gone; tickets do not outlive the group.
//   Threads   only on `thread`.
class SteppingGroup {
 public:
  SteppingGroup(net::IoThread& thread, const GroupSettings& settings);

  // Ticket is a submitted sequence; destroying it withdraws what is not finished.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();

   private:
    friend class SteppingGroup;
    Ticket(SteppingGroup& group, engine::SequenceHandle handle) : group_{&group}, handle_{handle} {}

    SteppingGroup* group_ = nullptr;
    engine::SequenceHandle handle_;
  };

  // Puts a sequence into the rank's queue. What is submitted in one turn of the thread enters the same step.
  // `to_compute` tokens of its prompt are not in the rank's KV yet.
  [[nodiscard]] Ticket submit(std::size_t rank, const engine::Sequence& sequence, Tokens to_compute, TokenSink& sink);

  [[nodiscard]] const engine::Group& model() const { return model_; }
  [[nodiscard]] StepTime step_time() const { return settings_.step_time; }
  [[nodiscard]] Tokens kv_capacity() const { return settings_.kv_capacity; }
  [[nodiscard]] const GroupMeasures& measures() const { return measures_; }
  [[nodiscard]] const RankCounters& counters(std::size_t rank) const { return counters_[rank]; }
  // The last steps, oldest first.
  [[nodiscard]] const std::deque<StepRecord>& steps() const { return steps_; }
  // A rank whose process began anew counts from zero.
  void forget_counters(std::size_t rank) { counters_[rank] = {}; }
  void note_client_close() { ++measures_.client_closes; }
  void reset_measures() { measures_ = {}; }

 private:
  struct Entry {
    TokenSink* sink = nullptr;
    Tokens prompt;      // to be counted when it enters, zero from then on
    Tokens to_compute;  // when it enters
    Tokens context;     // the whole prompt
  };

  void begin_step(net::TimePoint start);
  void count_entries();
  void give_way();
  [[nodiscard]] net::Duration step_length() const;
  void end_step();
  void remember_step(net::Duration lateness);
  void count_step_tokens();
  void send_tokens();

  net::IoThread& thread_;
  engine::Group model_;
  GroupSettings settings_;
  net::Timer timer_;
  bool stepping_ = false;
  net::Duration step_length_{0};
  net::TimePoint planned_end_{};
  std::vector<Entry> entries_;    // by SequenceHandle::index()
  std::vector<Tokens> computed_;  // prompt tokens of the step, by rank
  std::deque<StepRecord> steps_;
  GroupMeasures measures_;
  std::vector<RankCounters> counters_;
};

}  // namespace balanceroute::emulator
