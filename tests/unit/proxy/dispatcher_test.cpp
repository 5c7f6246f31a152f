// The books of a fleet against what its streams show, event by event in an order of the test's choice.
#include "proxy/dispatcher.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "policy/registry.hpp"

namespace balanceroute::proxy {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep{10};

// Two engines that step together, one stream on each.
class BooksOfStreams : public testing::Test {
 protected:
  BooksOfStreams() {
    dispatcher_.change([](Router& router) {
      for (const std::int32_t rank : {0, 1}) router.add_worker(GroupId{0}, "http://host", rank, 4).value();
      return true;
    });
  }

  // Of so many tokens; placed at once.
  Placement ask(std::int64_t prompt) {
    Placement placement = dispatcher_.request(thread_, 0, {.prompt = Tokens{prompt}, .sequences = 1}, "default");
    pass(milliseconds{0});
    pass(milliseconds{3});  // the longest wait for a round
    return placement;
  }
  void pass(milliseconds time) {
    clock_.advance(time);
    thread_.context().restart();
    thread_.context().poll();
    thread_.timers().fire_due(clock_.now());
    thread_.context().restart();
    thread_.context().poll();
  }
  // The streams show so many tokens, one after the other.
  struct Shown {
    Placement& stream;
    std::int64_t tokens;
  };
  void show(const std::vector<Shown>& shown) {
    for (const auto& [stream, tokens] : shown) {
      stream.progress(tokens);
      pass(milliseconds{0});
    }
  }
  // A step in which they do.
  void step(const std::vector<Shown>& shown) {
    show(shown);
    pass(kStep * 3 / 5);
    pass(kStep * 2 / 5);
  }
  std::int64_t load(std::size_t worker) { return dispatcher_.snapshot(false).workers[worker].load.count(); }

  net::ManualClock clock_;
  net::IoThread thread_{"test", clock_};
  Dispatcher dispatcher_{
      thread_, 1, make_policy({.name = "least_tokens"}).value(), {.fleet = "f", .router = {}}, {"g"}};
};

// Law: a stream that is the first of all to show the step it began in has no token too many in the books once that step
// is over.
TEST_F(BooksOfStreams, FirstToShowItsFirstStep) {
  Placement old = ask(100);
  for (std::int64_t t = 1; t <= 5; ++t) step({{old, t}});
  Placement fresh = ask(50);
  step({{fresh, 1}, {old, 6}});
  EXPECT_EQ(load(0), 100 + 6);
  EXPECT_EQ(load(1), 50 + 1);
  step({{fresh, 2}, {old, 7}});
  EXPECT_EQ(load(0), 100 + 7);
  EXPECT_EQ(load(1), 50 + 2);
}

// Law: so it is when another step begins before its time.
TEST_F(BooksOfStreams, FirstToShowAShortFirstStep) {
  Placement old = ask(100);
  for (std::int64_t t = 1; t <= 5; ++t) step({{old, t}});
  Placement fresh = ask(50);
  show({{fresh, 1}, {old, 6}});
  pass(kStep * 2 / 5);
  show({{old, 7}});
  pass(kStep / 5);
  step({{fresh, 2}});
  EXPECT_EQ(load(0), 100 + 7);
  EXPECT_EQ(load(1), 50 + 2);
}

// Law: a stream whose first events are read steps late is right in the books once it has been looked at, and the others
// always are.
TEST_F(BooksOfStreams, FirstEventReadLate) {
  Placement old = ask(100);
  step({{old, 1}});
  Placement late = ask(50);
  for (std::int64_t t = 2; t <= 4; ++t) step({{old, t}});
  show({{late, 1}, {late, 2}, {late, 3}, {old, 5}});
  EXPECT_EQ(load(0), 100 + 5);
  pass(kStep);
  EXPECT_EQ(load(1), 50 + 3);
  for (std::int64_t t = 6; t <= 120; ++t) {
    step({{old, t}, {late, t - 2}});
    ASSERT_EQ(load(0), 100 + t);
    ASSERT_EQ(load(1), 50 + t - 2);
  }
}

// Law: where a stream has put the clock ahead all the same, the others are right when no more comes.
TEST_F(BooksOfStreams, EventReadLateBeforeSilence) {
  Placement old = ask(100);
  Placement late = ask(50);
  for (std::int64_t t = 1; t <= 10; ++t) step({{old, t}, {late, t}});
  show({{old, 11}});
  pass(kStep);
  show({{late, 12}, {late, 13}});
  for (int i = 0; i < 200; ++i) pass(kStep);
  EXPECT_EQ(load(0), 100 + 11);
  EXPECT_EQ(load(1), 50 + 13);
}

// Law: a stream that is read no further for a while grows in the books as the others do.
TEST_F(BooksOfStreams, StreamThatIsNotRead) {
  Placement old = ask(100);
  Placement stopped = ask(50);
  for (std::int64_t t = 1; t <= 10; ++t) step({{old, t}, {stopped, t}});
  for (std::int64_t t = 11; t <= 300; ++t) step({{old, t}});
  EXPECT_EQ(load(1), 50 + 300);
}

// Law: a stream whose events come for several steps at once grows in between as the others do.
TEST_F(BooksOfStreams, EventsForSeveralSteps) {
  Placement every = ask(100);
  Placement eighth = ask(50);
  step({{every, 1}, {eighth, 1}});
  for (std::int64_t t = 2; t <= 300; ++t) {
    if (t % 8 == 1) {
      step({{every, t}, {eighth, t}});
    } else {
      step({{every, t}});
    }
    ASSERT_EQ(load(1), 50 + t);
  }
}

// Law: only a count is a reason to refuse a prompt for its size; an estimate that no worker could hold is taken for the
// largest prompt that one could.
TEST(Estimates, RefuseNothing) {
  net::ManualClock clock;
  net::IoThread thread{"test", clock};
  Dispatcher dispatcher{thread, 1, make_policy({.name = "least_tokens"}).value(), {.fleet = "f", .router = {}}, {"g"}};
  dispatcher.change([](Router& router) {
    router.add_worker(GroupId{0}, "http://host", 0, 4, {.capacity = Tokens{1000}}).value();
    return true;
  });
  for (const bool counted : {true, false}) {
    for (const Tokens prompt : {Tokens{1001}, Tokens{std::int64_t{1} << 40}}) {
      const Placement placement =
          dispatcher.request(thread, 0, {.prompt = prompt, .sequences = 1, .counted = counted}, "default");
      thread.context().restart();
      thread.context().poll();
      clock.advance(milliseconds{3});
      thread.timers().fire_due(clock.now());
      const FleetSnapshot state = dispatcher.snapshot(true);
      ASSERT_EQ(state.leases.size(), counted ? 0u : 1u);
      EXPECT_EQ(state.workers[0].load, Tokens{counted ? 0 : 1000});
    }
    thread.context().restart();
    thread.context().poll();
  }
}

}  // namespace
}  // namespace balanceroute::proxy
