// The fast group against the slow obvious one, step by step, on random scripts of bindings and aborts.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "engine/group.hpp"
#include "support/property.hpp"

namespace balanceroute::engine {
namespace {

struct NaiveSequence {
  std::uint64_t id = 0;
  std::int64_t prompt = 0;
  std::int64_t output = 0;
  std::int64_t generated = 0;
  std::size_t worker = 0;
};

// Counts every token of every sequence in every step.
class NaiveGroup {
 public:
  NaiveGroup(std::size_t workers, std::int64_t slots, std::int64_t kv_capacity, std::int64_t kv_block,
             const LoadModel& model, double tokens_per_step)
      : queues_(workers),
        slots_{slots},
        kv_capacity_{kv_capacity},
        kv_block_{kv_block},
        model_{model},
        tokens_per_step_{tokens_per_step} {}

  void bind(const NaiveSequence& sequence) { queues_[sequence.worker].push_back(sequence); }

  bool abort(std::uint64_t id) {
    const auto named = [id](const NaiveSequence& each) { return each.id == id; };
    for (auto& queue : queues_) {
      if (std::erase_if(queue, named) > 0) return true;
    }
    return std::erase_if(running_, named) > 0;
  }

  std::vector<std::uint64_t> leave() {
    const auto ended = [](const NaiveSequence& each) { return each.generated >= each.output; };
    std::vector<NaiveSequence> leaving;
    std::ranges::copy_if(running_, std::back_inserter(leaving), ended);
    std::ranges::stable_sort(leaving, std::ranges::greater{},
                             [](const NaiveSequence& each) { return each.generated - each.output; });
    std::erase_if(running_, ended);
    std::vector<std::uint64_t> left;
    thrown_away = 0;
    for (const auto& each : leaving) {
      left.push_back(each.id);
      thrown_away += each.generated - each.output;
    }
    return left;
  }

  std::vector<std::uint64_t> enter() {
    std::vector<std::uint64_t> entered;
    preempted.clear();
    for (std::size_t worker = 0; worker < queues_.size(); ++worker) {
      while (of(worker).size() > 1 && space_of(of(worker)) > kv_capacity_) preempt(of(worker).back());
      while (!queues_[worker].empty() && std::ssize(of(worker)) < slots_) {
        auto together = of(worker);
        together.push_back(queues_[worker].front());
        if (together.size() > 1 && space_of(together) > kv_capacity_) break;
        running_.push_back(queues_[worker].front());
        entered.push_back(queues_[worker].front().id);
        queues_[worker].pop_front();
      }
    }
    return entered;
  }

  // What this step brings lifts the sum over all steps to the whole tokens of mean * steps.
  void advance() {
    for (auto& each : running_) each.generated += growth();
    told_ += growth();
    ++steps_;
  }
  [[nodiscard]] std::int64_t growth() const {
    return static_cast<std::int64_t>(std::floor(tokens_per_step_ * static_cast<double>(steps_ + 1))) - told_;
  }

  // Running sequences of a worker in order of entry.
  std::vector<NaiveSequence> of(std::size_t worker) const {
    std::vector<NaiveSequence> result;
    std::ranges::copy_if(running_, std::back_inserter(result),
                         [worker](const NaiveSequence& each) { return each.worker == worker; });
    return result;
  }

  std::int64_t load(std::size_t worker) const {
    std::int64_t sum = 0;
    for (const auto& each : of(worker)) sum += model_.weight_of(Tokens{each.prompt + each.generated}).count();
    return sum;
  }

  std::int64_t queued(std::size_t worker) const { return std::ssize(queues_[worker]); }

  std::vector<std::uint64_t> preempted;  // by the last enter()
  std::int64_t thrown_away = 0;          // by the last leave()

 private:
  // With the tokens that each may be about to generate, in whole blocks.
  [[nodiscard]] std::int64_t space_of(const std::vector<NaiveSequence>& sequences) const {
    std::int64_t blocks = 0;
    for (const auto& each : sequences) {
      blocks +=
          (each.prompt + each.generated + static_cast<std::int64_t>(std::ceil(tokens_per_step_)) + kv_block_ - 1) /
          kv_block_;
    }
    return blocks * kv_block_;
  }

  void preempt(const NaiveSequence& youngest) {
    queues_[youngest.worker].push_front(youngest);
    preempted.push_back(youngest.id);
    std::erase_if(running_, [&](const NaiveSequence& each) { return each.id == youngest.id; });
  }

  std::vector<std::deque<NaiveSequence>> queues_;
  std::int64_t slots_;
  std::int64_t kv_capacity_;
  std::int64_t kv_block_;
  LoadModel model_;
  double tokens_per_step_;
  std::int64_t steps_ = 0;
  std::int64_t told_ = 0;               // tokens of all those steps
  std::vector<NaiveSequence> running_;  // in order of entry
};

std::vector<std::uint64_t> ids(std::span<const SequenceMove> moves) {
  std::vector<std::uint64_t> result;
  for (const auto& move : moves) result.push_back(move.id.value());
  return result;
}

void check_equal(const Group& fast, const NaiveGroup& slow) {
  std::int64_t active = 0;
  for (std::size_t worker = 0; worker < fast.workers(); ++worker) {
    const auto expected = slow.of(worker);
    require(fast.load(worker).count() == slow.load(worker));
    require(fast.active(worker) == std::ssize(expected));
    require(fast.queued(worker) == slow.queued(worker));
    active += fast.active(worker);
    std::size_t place = 0;
    fast.for_each_running(worker, [&](const RunningSequence& each) {
      require(place < expected.size());
      require(each.id.value() == expected[place].id);
      require(each.generated.count() == std::min(expected[place].generated, expected[place].output));
      require(each.finished() == (expected[place].generated >= expected[place].output));
      ++place;
    });
    require(place == expected.size());
  }
  require(fast.active() == active);
}

// Drives both groups with one script and compares them after every action.
class Duel {
 public:
  Duel(std::size_t workers, std::int64_t slots, std::int64_t kv_capacity, std::int64_t kv_block, const LoadModel& model,
       double tokens_per_step)
      : fast_{workers, slots, Tokens{kv_capacity}, Tokens{kv_block}, model, TokenPace{tokens_per_step}},
        slow_{workers, slots, kv_capacity, kv_block, model, tokens_per_step} {}

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      require(ids(fast_.leave()) == slow_.leave());
      require(fast_.thrown_away() == Tokens{slow_.thrown_away});
      disturb();
      require(ids(fast_.enter()) == slow_.enter());
      require(ids(fast_.preempted()) == slow_.preempted);
      check_loads();
      disturb();
      fast_.advance();
      slow_.advance();
      disturb();
    }
  }

 private:
  void disturb() {
    for (int count = *rc::gen::inRange(0, 3); count > 0; --count) bind();
    if (!handles_.empty() && *rc::gen::inRange(0, 3) == 0) abort();
    check_equal(fast_, slow_);
  }

  void bind() {
    NaiveSequence sequence{.id = handles_.size(),
                           .prompt = *rc::gen::inRange(0, 5000),
                           .output = *rc::gen::element(1, 2, 3, 7, 20, 1500),
                           .worker = *rc::gen::inRange(std::size_t{0}, fast_.workers())};
    sequence.generated = *rc::gen::inRange(std::int64_t{0}, sequence.output);
    slow_.bind(sequence);
    handles_.push_back(fast_.bind(sequence.worker, {RequestId{sequence.id}, Tokens{sequence.prompt},
                                                    Tokens{sequence.output}, Tokens{sequence.generated}}));
  }

  // Of any sequence ever bound, so that stale handles occur too.
  void abort() {
    const auto id = *rc::gen::inRange(std::size_t{0}, handles_.size());
    require(fast_.abort(handles_[id]) == slow_.abort(id));
  }

  void check_loads() const {
    const auto told = fast_.step_loads();
    std::int64_t envelope = 0;
    for (std::size_t worker = 0; worker < fast_.workers(); ++worker) {
      require(told.loads[worker].count() == slow_.load(worker));
      envelope = std::max(envelope, slow_.load(worker));
    }
    require(told.envelope.count() == envelope);
    require(told.active == fast_.active());
    require(told.growth == Tokens{slow_.growth()});
  }

  Group fast_;
  NaiveGroup slow_;
  std::vector<SequenceHandle> handles_;  // by id
};

TEST(GroupProperty, EqualsTheNaiveGroupStepByStep) {
  check_property(1000, [] {
    const auto workers = *rc::gen::inRange(std::size_t{1}, std::size_t{6});
    const auto slots = *rc::gen::inRange(1, 5);
    const auto kv_capacity = *rc::gen::element<std::int64_t>(1, 3000, 6000, Group::kUnlimited.count());
    const auto kv_block = *rc::gen::element<std::int64_t>(1, 16);
    const auto model = *rc::gen::element(LoadModel{}, LoadModel::paged(Tokens{7}), LoadModel::windowed(Tokens{900}, 3),
                                         LoadModel::affine(2, Tokens{50}));
    const auto tokens_per_step = *rc::gen::element(1.0, 1.0, 2.0, 1.75, 3.3125);  // exact in binary
    Duel{workers, slots, kv_capacity, kv_block, model, tokens_per_step}.run(*rc::gen::inRange(1, 60));
  });
}

}  // namespace
}  // namespace balanceroute::engine
