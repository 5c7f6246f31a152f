// fit_round.hpp - one round of br_fit: which waiting requests take which free slots of one group.
//
// Loads are fitted to the mean of the group, not to its largest: in saturation each slot gets the request that brings
// its worker closest to the mean, now and at three looks ahead; below it each request goes where it stays below a
// ceiling, the fullest such worker first once rare large prompts matter. A slot whose filling would lift the largest
// load by more than one more running request is worth stays empty for some rounds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/id_map.hpp"
#include "policy/br_fit/outlook.hpp"
#include "policy/br_fit/params.hpp"
#include "policy/br_fit/traffic_sample.hpp"
#include "policy/policy.hpp"

namespace balanceroute {

// 1 where rare large prompts call for best fit, -1 for even filling; between them there is no change at a stroke.
[[nodiscard]] double fit_curvature(const BrFitParams& params, const PromptSample& prompts, double mean_load,
                                   double prompt_share);

// FitRound carries out rounds.
//   Units       loads in tokens, as double: sums of squares do not fit whole numbers.
//   Invariants  a choice never exceeds a worker's free slots and KV space; k sequences of a request stay together. One
//               for which no worker has the KV space is not counted as waiting in this round. A request is held at most
//               hold_rounds rounds, a worker takes nothing for at most as many in a row. Ties go to the lower load,
//               then the lower position; between requests to the older.
//   Cost        a round: O(workers + W log W + m * (workers + neighbours)) for m slots filled and a window of W.
//   Threads     not synchronised. No allocation once warm.
class FitRound {
 public:
  FitRound(const BrFitParams& params, const Outlook& outlook, const PromptSample& prompts, const MeanAge& ages);

  void decide(const RoundInput& input, std::vector<Choice>& choices);
  // Less the rise of the cost by which rounds choose, if the candidate waited alone and joined that worker now, full or
  // not. Neither rounds nor what they count notice.
  [[nodiscard]] double score(const GroupView& group, std::size_t worker, const Candidate& candidate);
  // The request no longer waits.
  void forget(RequestId request) { held_.erase(request); }

 private:
  // Now, and each look ahead.
  static constexpr std::size_t kLoads = Outlook::kPoints + 1;
  using Loads = std::array<double, kLoads>;
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  // A worker.
  struct Bin {
    Loads load{};    // projected, with what is put there
    double now = 0;  // L', its load with the prompts put there
    std::int32_t free = 0;
    Tokens kv;          // KV space left
    bool open = false;  // may be chosen; if not, its slots are kept
  };
  // A candidate in the window.
  struct Item {
    std::size_t position;  // in the pool
    double weight;         // s, of all its sequences
    std::int32_t width;    // sequences
    double price;          // what the fit may lose to have it placed
    double late;           // places lost against order of arrival
    Tokens kv;             // KV space it takes
    Loads size;
    std::size_t bin = kNowhere;
    bool forced = false;
    bool withdrawn = false;
    bool released = false;  // held for as long as it may be
  };
  // An item and its size[0], side by side, so that sorting and searching touch nothing else.
  struct Sized {
    double size;
    std::size_t item;
    // Written out: the default of a double asks whether it can be ordered at all.
    bool operator<(const Sized& other) const { return size < other.size || (size == other.size && item < other.item); }
  };

  // Over the window.
  struct WindowSums {
    double weights = 0;
    double widths = 0;
    double sizes = 0;    // size[0]
    double squares = 0;  // of size[0]
  };

  // The parts of a round, in order.
  void take_group(const GroupView& group);
  void take_pool(const RoundInput& input);
  [[nodiscard]] std::int64_t base_window() const;
  void close_workers();
  void take_window();
  void size_window();
  [[nodiscard]] Outlook::Row look_ahead(double mean_prompt);
  void set_target();
  void place_late();
  void keep_for(const Candidate& candidate);
  [[nodiscard]] double lateness(std::size_t position) const;
  [[nodiscard]] bool is_late(double places) const { return places >= params_.lateness_cap * late_unit_; }
  void fill_slots();
  void place_requests();
  void improve();
  void hold();
  void count_waiting();
  void commit(std::vector<Choice>& choices);

  // Cost of a worker's distance from the target, and what a change of its load adds.
  [[nodiscard]] double cost(const Loads& distance) const;
  [[nodiscard]] double cost_with(const Bin& bin, const Loads& more) const;
  [[nodiscard]] double rise(const Bin& bin, const Loads& more) const;
  [[nodiscard]] bool less_loaded(std::size_t a, std::size_t b) const;
  [[nodiscard]] static bool has_room(const Bin& bin, const Item& item) {
    return bin.free >= item.width && bin.kv >= item.kv;
  }
  // Whether it has, once `leaving` has made place.
  [[nodiscard]] static bool has_room_without(const Bin& bin, const Item& leaving, const Item& item) {
    return bin.free + leaving.width >= item.width && bin.kv + leaving.kv >= item.kv;
  }

  void put(std::size_t item, std::size_t bin);
  void take_out(std::size_t item);
  void shift(std::size_t bin, const Item& item, std::int32_t sign);

  // The open worker with room and the least rise, but `except`.
  [[nodiscard]] std::size_t best_bin(const Item& item, std::size_t except) const;
  void consider(const Item& item, std::size_t bin, std::size_t except, std::size_t& best, double& best_rise) const;
  [[nodiscard]] std::size_t neediest_bin() const;
  [[nodiscard]] std::size_t best_item_for(std::size_t bin) const;
  void order_bins();
  void reorder(std::size_t bin);

  // Calls look(item) for up to `neighbours` items that `fits` says, on each side of the size.
  template <class Fits, class Look>
  void near(double size, const Fits& fits, const Look& look) const;

  bool try_replace(std::size_t place);
  bool try_move(std::size_t item);
  bool try_swap(std::size_t item);
  [[nodiscard]] static bool lowers(double delta, double costs) { return delta < -kRelative * costs; }
  static constexpr double kRelative = 1e-9;

  [[nodiscard]] std::int32_t held(const Item& item) const;
  void hold_one(const Item& item);
  [[nodiscard]] std::size_t fullest_below_envelope(const Item& item) const;
  [[nodiscard]] std::optional<RunnerUp> runner_up(const Item& item) const;

  const BrFitParams params_;
  const Outlook& outlook_;
  const PromptSample& prompts_;
  const MeanAge& ages_;
  Loads look_weight_{};

  IdMap held_;                               // request -> rounds it was held
  std::vector<std::int32_t> closed_rounds_;  // in a row, by WorkerId

  // One round's state; the memory stays.
  const GroupView* group_ = nullptr;
  std::span<const Candidate> pool_;
  std::vector<std::size_t> waiting_;  // positions in it of those for which a worker has the KV space, oldest first
  std::size_t shut_out_ = kNowhere;   // position of the oldest of the others
  std::vector<Bin> bins_;
  std::vector<Item> items_;            // the window, oldest first
  std::vector<Sized> by_size_;         // its items by size, older first
  std::vector<std::size_t> put_;       // items in order of assignment
  std::vector<std::size_t> sequence_;  // scratch: items in some order
  std::vector<std::size_t> by_load_;   // open workers by projected load, in large groups
  std::vector<std::size_t> place_of_;  // of each worker in it
  std::int64_t sequences_ = 0;         // of all that wait
  std::int64_t all_free_ = 0;
  std::int64_t open_free_ = 0;
  std::int64_t slots_left_ = 0;
  bool deep_ = false;       // as many wait as slots are free
  bool saturated_ = false;  // as many wait as open slots are free
  double mean_ = 0;
  double envelope_ = 0;
  double least_ = 0;
  double worth_ = 0;  // v, tokens of envelope that one more running request is worth
  double late_unit_ = 0;
  Loads target_{};
  Loads ceiling_{};
  // Of squared distance from the ceiling, by look.
  Loads price_above_{};
  Loads price_below_{};
  std::size_t oldest_free_ = 0;
};

}  // namespace balanceroute
