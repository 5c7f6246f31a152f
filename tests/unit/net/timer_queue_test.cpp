// Laws of TimerQueue: order of firing, cancelling, and callbacks that change the queue.
#include "net/timer_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace balanceroute::net {
namespace {

TimePoint at(std::int64_t ns) {
  return TimePoint{Duration{ns}};
}

// Law: timers fire by deadline, equal deadlines in the order of arming, and not before their time.
TEST(TimerQueue, FiresByDeadlineThenByArming) {
  TimerQueue queue;
  std::vector<int> fired;
  Timer late{queue}, early{queue}, early_too{queue};
  late.arm(at(20), [&] { fired.push_back(3); });
  early.arm(at(10), [&] { fired.push_back(1); });
  early_too.arm(at(10), [&] { fired.push_back(2); });
  queue.fire_due(at(9));
  EXPECT_TRUE(fired.empty());
  EXPECT_EQ(queue.next_deadline(), at(10));
  queue.fire_due(at(20));
  EXPECT_EQ(fired, (std::vector{1, 2, 3}));
  EXPECT_EQ(queue.next_deadline(), kNever);
}

// Law: a cancelled or destroyed timer never fires; arming again replaces the deadline.
TEST(TimerQueue, CancelledDestroyedAndReplacedTimersDoNotFire) {
  TimerQueue queue;
  int fired = 0;
  Timer cancelled{queue};
  cancelled.arm(at(1), [&] { ++fired; });
  cancelled.cancel();
  {
    Timer destroyed{queue};
    destroyed.arm(at(1), [&] { ++fired; });
  }
  Timer moved{queue};
  moved.arm(at(1), [&] { fired += 10; });
  moved.arm(at(5), [&] { fired += 100; });
  queue.fire_due(at(4));
  EXPECT_EQ(fired, 0);
  queue.fire_due(at(5));
  EXPECT_EQ(fired, 100);
}

// Law: a callback may destroy other timers and arm its own again.
TEST(TimerQueue, CallbackMayChangeTheQueue) {
  TimerQueue queue;
  int fired = 0;
  auto victim = std::make_unique<Timer>(queue);
  Timer again{queue};
  victim->arm(at(2), [&] { fired += 100; });
  again.arm(at(1), [&] {
    ++fired;
    victim.reset();
    again.arm(at(3), [&] { ++fired; });
  });
  queue.fire_due(at(10));
  EXPECT_EQ(fired, 2);
}

// Law: on_earlier is told exactly when the next deadline moves forward.
TEST(TimerQueue, TellsWhenTheNextDeadlineMovesForward) {
  TimerQueue queue;
  int told = 0;
  queue.on_earlier([&] { ++told; });
  Timer a{queue}, b{queue}, c{queue};
  a.arm(at(10), [] {});
  b.arm(at(20), [] {});
  EXPECT_EQ(told, 1);
  c.arm(at(5), [] {});
  EXPECT_EQ(told, 2);
}

// Law: after any mix of arming and cancelling, what fires is what a sorted list says.
TEST(TimerQueue, AgreesWithASortedListOnRandomScripts) {
  std::mt19937_64 random{7};
  for (int script = 0; script < 200; ++script) {
    TimerQueue queue;
    std::vector<std::unique_ptr<Timer>> timers;
    std::vector<std::pair<std::int64_t, int>> expected;  // deadline, timer; kept in order of arming
    std::vector<int> fired;
    for (int i = 0; i < 20; ++i) timers.push_back(std::make_unique<Timer>(queue));
    for (int op = 0; op < 60; ++op) {
      const int i = static_cast<int>(random() % 20);
      std::erase_if(expected, [i](const auto& entry) { return entry.second == i; });
      if (random() % 3 == 0) {
        timers[static_cast<std::size_t>(i)]->cancel();
        continue;
      }
      const auto deadline = static_cast<std::int64_t>(random() % 50);
      timers[static_cast<std::size_t>(i)]->arm(at(deadline), [&fired, i] { fired.push_back(i); });
      expected.emplace_back(deadline, i);
    }
    std::ranges::stable_sort(expected, {}, &std::pair<std::int64_t, int>::first);
    queue.fire_due(at(100));
    ASSERT_EQ(fired.size(), expected.size());
    for (std::size_t i = 0; i < fired.size(); ++i) ASSERT_EQ(fired[i], expected[i].second);
  }
}

}  // namespace
}  // namespace balanceroute::net
