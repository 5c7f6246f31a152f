// Laws of the prefill side's account.
#include "proxy/prefill_book.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

net::TimePoint at(net::Duration since_start) {
  return net::TimePoint{since_start};
}

// Law: the instance with the least work takes the next prompt; KV that it only holds does not count as work.
TEST(PrefillBook, LeastWorkTakesTheNext) {
  PrefillBook book{{.instances = 2}};
  PrefillLease first = *book.take(Tokens{100});
  PrefillLease second = *book.take(Tokens{50});
  EXPECT_EQ(first.instance(), PrefillId{0});
  EXPECT_EQ(second.instance(), PrefillId{1});
  EXPECT_EQ(book.take(Tokens{1})->instance(), PrefillId{1});
  first.computed(Tokens{120});
  EXPECT_EQ(book.take(Tokens{1})->instance(), PrefillId{0});
  EXPECT_EQ(book.instances()[0].held, Tokens{120});
  first.fetched();
  EXPECT_EQ(book.instances()[0].budget(), Tokens{0});
}

// Law: the high-water mark bounds work and KV together, but an empty instance takes a prompt of any size.
TEST(PrefillBook, HighWaterMarkBoundsWorkAndKv) {
  PrefillBook book{{.instances = 1, .high_water = Tokens{100}}};
  PrefillLease huge = *book.take(Tokens{500});
  EXPECT_FALSE(book.take(Tokens{1}));
  huge.computed(Tokens{80});
  EXPECT_FALSE(book.take(Tokens{21}));
  const auto fits = book.take(Tokens{20});
  EXPECT_TRUE(fits);
}

// Law: unfinished work is given back at once; KV that nobody fetched stays charged until the engine's lease ends.
TEST(PrefillBook, KvOfWhoLeftIsStrandedUntilItsLeaseEnds) {
  PrefillBook book{{.instances = 1, .engine_lease = 30s}};
  book.set_now(at(10s));
  {
    const auto cancelled = book.take(Tokens{40});
  }
  EXPECT_EQ(book.instances()[0].budget(), Tokens{0});
  {
    auto computed = book.take(Tokens{40});
    computed->computed(Tokens{44});
    book.set_now(at(20s));
  }
  EXPECT_EQ(book.instances()[0].stranded, Tokens{44});
  EXPECT_EQ(book.instances()[0].requests, 0u);
  EXPECT_EQ(book.next_change(), at(40s));
  book.set_now(at(40s) - 1ns);
  EXPECT_EQ(book.instances()[0].stranded, Tokens{44});
  book.set_now(at(40s));
  EXPECT_EQ(book.instances()[0].stranded, Tokens{0});
  EXPECT_EQ(book.next_change(), net::kNever);
}

// Law: an instance that fails twice in a row is left alone, longer each time, until it answers.
TEST(PrefillBook, FailingInstanceIsLeftAlone) {
  PrefillBook book{{.instances = 2}};
  book.failed(PrefillId{0});
  EXPECT_EQ(book.take(Tokens{1})->instance(), PrefillId{0});
  book.failed(PrefillId{0});
  EXPECT_EQ(book.take(Tokens{1})->instance(), PrefillId{1});
  book.failed(PrefillId{1});
  book.failed(PrefillId{1});
  EXPECT_FALSE(book.any_ready());
  EXPECT_FALSE(book.take(Tokens{1}));
  book.set_now(at(500ms));
  EXPECT_TRUE(book.any_ready());
  book.failed(PrefillId{0});
  EXPECT_EQ(book.next_change(), at(1500ms));  // twice as long as before
  book.answered(PrefillId{0});
  EXPECT_EQ(book.next_change(), net::kNever);
}

// Law: the instance that failed a request gets it again only if no other one can have it.
TEST(PrefillBook, AvoidedInstanceIsTheLastChoice) {
  PrefillBook book{{.instances = 2}};
  const PrefillLease busy = *book.take(Tokens{10});
  EXPECT_EQ(busy.instance(), PrefillId{0});
  EXPECT_EQ(book.take(Tokens{1}, PrefillId{1})->instance(), PrefillId{0});
  book.failed(PrefillId{0});
  book.failed(PrefillId{0});
  EXPECT_EQ(book.take(Tokens{1}, PrefillId{1})->instance(), PrefillId{1});
}

// Law: after any mix of ends every count is zero once the leases of stranded KV have passed.
TEST(PrefillBook, AnyMixOfEndsLeavesNothing) {
  std::mt19937_64 random{7};
  PrefillBook book{{.instances = 3, .high_water = Tokens{5000}, .engine_lease = 5s}};
  std::vector<PrefillLease> leases;
  net::Duration now{0};
  for (int round = 0; round < 5000; ++round) {
    now += std::chrono::milliseconds{random() % 200};
    book.set_now(at(now));
    if (auto lease = book.take(Tokens{static_cast<std::int64_t>(random() % 900)})) leases.push_back(std::move(*lease));
    if (leases.empty()) continue;
    PrefillLease& one = leases[random() % leases.size()];
    switch (random() % 4) {
      case 0:
        one.computed(Tokens{static_cast<std::int64_t>(random() % 900)});
        break;
      case 1:
        one.fetched();
        break;
      case 2:
        std::swap(one, leases.back());
        leases.pop_back();
        break;
      default:
        break;
    }
  }
  leases.clear();
  book.set_now(at(now + 5s));
  for (const PrefillCounts& instance : book.instances()) {
    EXPECT_EQ(instance.computing, Tokens{0});
    EXPECT_EQ(instance.held, Tokens{0});
    EXPECT_EQ(instance.stranded, Tokens{0});
    EXPECT_EQ(instance.requests, 0u);
  }
}

}  // namespace
}  // namespace balanceroute::proxy
