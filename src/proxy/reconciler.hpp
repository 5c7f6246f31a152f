// reconciler.hpp - whether the ledger's account of a worker and the engine's own agree.
//
// Pure: it is given both accounts and says what follows. Who reads the engine is prober.hpp, who obeys membership.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "proxy/engine_metrics.hpp"

namespace balanceroute::proxy {

// The ledger's account of a worker while the engine was asked, in sequences.
struct MirrorWindow {
  std::int64_t fewest;  // the engine must have seen so many
  std::int64_t most;    // and can have seen no more
  std::int32_t slots;
  std::size_t waiting;  // requests that wait for a worker of the fleet
};

// What repeated readings say; each is told when it begins to hold, and again only after it has ended.
struct Findings {
  std::optional<std::int64_t> background;  // so many sequences are somebody else's: to be counted from now on
  bool mirror_too_high = false;            // the ledger counts more than the engine has
  bool slots_too_many = false;             // the engine lets requests wait in slots that the ledger takes for its own
  bool slots_left_idle = false;            // requests wait here though the engine has room, as the ledger does not see
};

// Reconciler watches one worker.
//   Patience  nothing follows from fewer than kReadings readings in a row: what is on its way is in one account only.
//             A queue at the engine while every slot is taken may wait for prefill or for KV: kFullReadings.
//   Slack     an engine may keep a few sequences for a moment that the ledger has let go.
class Reconciler {
 public:
  static constexpr int kReadings = 3;
  static constexpr int kFullReadings = 10;

  Findings compare(const RankReading& engine, const MirrorWindow& mirror);
  // So many of the ledger's sequences stand for somebody else's.
  void set_background(std::int64_t sequences) { background_ = sequences; }
  [[nodiscard]] std::int64_t background() const { return background_; }
  // The engine could not be asked: what it said before says nothing of now.
  void heard_nothing() { disagreeing_ = 0; }
  // Readings that did not agree. It never goes back.
  [[nodiscard]] std::uint64_t disagreements() const { return disagreements_; }
  // Whether the last kFullReadings did not agree, whatever followed from them: the account is not to be trusted.
  [[nodiscard]] bool contradicted() const { return disagreeing_ >= kFullReadings; }

 private:
  // Whether it becomes clear that the engine keeps requests waiting as one with fewer slots does.
  bool slots_too_many(const RankReading& engine, const MirrorWindow& mirror);

  // For how many readings in a row something has held.
  class Streak {
   public:
    // Whether it has now held for so many readings, for the first time.
    bool holds(bool now, int readings = kReadings);
    void end() { length_ = 0; }
    [[nodiscard]] bool begins() const { return length_ == 1; }

   private:
    int length_ = 0;
  };

  Streak above_;
  Streak below_;
  Streak queue_;       // at the engine, while the ledger sees free slots
  Streak full_queue_;  // whether it sees any or not
  Streak idles_;
  std::int64_t least_foreign_ = 0;  // within above_
  std::int64_t most_foreign_ = 0;   // within below_
  std::int64_t queue_running_ = 0;  // within both queues, where it stands still
  bool queue_told_ = false;         // of the queue that is there now
  std::int64_t background_ = 0;
  std::uint64_t disagreements_ = 0;
  int disagreeing_ = 0;  // readings in a row
};

}  // namespace balanceroute::proxy
