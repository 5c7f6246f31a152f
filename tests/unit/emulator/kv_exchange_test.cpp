// Laws of prefill in real time and of handing KV over, on a clock that the test moves.
#include "emulator/kv_exchange.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "net/task_group.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

// A prompt takes 1 ms a token, a lease 100 ms.
class KvExchangeTest : public testing::Test {
 protected:
  void advance(net::Duration by) {
    clock.advance(by);
    thread.timers().fire_due(clock.now());
    run();
  }
  void run() {
    thread.context().restart();
    thread.context().poll();
  }
  KvOffer computed(std::string key, std::int64_t tokens) {
    auto prompt = engine.submit(Tokens{tokens});
    advance(milliseconds{tokens});
    EXPECT_TRUE(prompt->computed().is_set());
    return {.key = std::move(key), .proof = "p", .engine_id = "e", .kv = std::move(prompt)};
  }
  // Waits for the key in a task of its own.
  net::TaskGroup::Handle wait_for(std::string key) {
    const auto task = tasks.spawn([](KvExchangeTest& test, std::string wanted) -> asio::awaitable<void> {
      auto offer = co_await test.exchange.wait_for(std::move(wanted));
      test.ended = true;
      test.got = offer.has_value();
    }(*this, std::move(key)));
    run();
    return task;
  }

  net::ManualClock clock;
  net::IoThread thread{"test", clock};
  net::TaskGroup tasks{thread, [](const std::exception_ptr& failure) { std::rethrow_exception(failure); }};
  PrefillEngine engine{thread, {.fixed_ms = 0, .per_token_ms = 1}, Tokens{50}};
  KvExchange exchange{thread, milliseconds{100}};
  bool ended = false;
  bool got = false;
};

// Law: prompts are computed in turn, in their time; one that is given up takes none.
TEST_F(KvExchangeTest, PromptsAreComputedInTurn) {
  auto first = engine.submit(Tokens{10});
  auto second = engine.submit(Tokens{10});
  const auto third = engine.submit(Tokens{10});
  EXPECT_EQ(engine.running(), 1);
  EXPECT_EQ(engine.waiting(), 2);
  advance(milliseconds{9});
  EXPECT_FALSE(first->computed().is_set());
  advance(milliseconds{1});
  EXPECT_TRUE(first->computed().is_set());
  second.reset();
  advance(milliseconds{10});
  EXPECT_TRUE(third->computed().is_set());
  EXPECT_EQ(engine.held(), Tokens{20});
  first.reset();
  EXPECT_EQ(engine.held(), Tokens{10});
  EXPECT_EQ(engine.computed_tokens(), 20);
}

// Law: a full engine computes nothing until KV has left it.
TEST_F(KvExchangeTest, FullEngineWaitsForItsKvToLeave) {
  exchange.offer(computed("a", 40));
  const auto next = engine.submit(Tokens{20});
  advance(milliseconds{50});
  EXPECT_FALSE(next->computed().is_set());
  EXPECT_TRUE(exchange.take("a"));
  advance(milliseconds{20});
  EXPECT_TRUE(next->computed().is_set());
}

// Law: what is taken is taken once.
TEST_F(KvExchangeTest, OfferIsTakenOnce) {
  exchange.offer(computed("a", 10));
  EXPECT_EQ(exchange.offers_of("e"), 1U);
  EXPECT_EQ(exchange.take("a")->proof, "p");
  EXPECT_FALSE(exchange.take("a"));
  EXPECT_EQ(engine.live_prompts(), 0U);
}

// Law: a key that is on offer takes no second offer, and somebody made a mistake.
TEST_F(KvExchangeTest, SecondOfferUnderAKeyIsAFault) {
  EXPECT_TRUE(exchange.offer(computed("a", 10)));
  EXPECT_FALSE(exchange.offer(computed("a", 20)));
  EXPECT_EQ(exchange.counters().relay_faults, 1);
  EXPECT_EQ(engine.held(), Tokens{10});
}

// Law: a lease that ends gives the KV up, is counted, and nothing is there any more.
TEST_F(KvExchangeTest, LeaseEnds) {
  exchange.offer(computed("a", 10));
  advance(milliseconds{99});
  EXPECT_EQ(exchange.offers(), 1U);
  advance(milliseconds{1});
  EXPECT_EQ(exchange.offers(), 0U);
  EXPECT_EQ(exchange.counters().leases_expired, 1);
  EXPECT_FALSE(exchange.take("a"));
  EXPECT_EQ(engine.held(), Tokens{0});
}

// Law: a waiter gets the offer that comes in time, and none after a lease.
TEST_F(KvExchangeTest, WaiterGetsTheOffer) {
  wait_for("a");
  EXPECT_FALSE(ended);
  exchange.offer(computed("a", 10));
  run();
  EXPECT_TRUE(got);
  EXPECT_EQ(exchange.offers(), 0U);
  ended = got = false;
  wait_for("b");
  advance(milliseconds{100});
  EXPECT_TRUE(ended);
  EXPECT_FALSE(got);
}

// Law: a waiter that leaves has no KV kept for it.
TEST_F(KvExchangeTest, WaiterThatLeavesAbandonsTheKey) {
  const auto waiter = wait_for("a");
  waiter.cancel();
  run();
  EXPECT_FALSE(exchange.offer(computed("a", 10)));
  EXPECT_EQ(exchange.counters().abandoned, 1);
  EXPECT_EQ(engine.live_prompts(), 0U);
}

// Law: who hands over learns that it was taken, and withdraws when it is cancelled.
TEST_F(KvExchangeTest, HandingOverEndsWithTheTaking) {
  bool taken = false;
  const auto hand_over = [&](std::string key) {
    return tasks.spawn([](KvExchange& to, KvOffer offer, bool& out) -> asio::awaitable<void> {
      out = co_await to.hand_over(std::move(offer));
    }(exchange, computed(std::move(key), 10), taken));
  };
  hand_over("a");
  run();
  EXPECT_FALSE(taken);
  EXPECT_TRUE(exchange.take("a"));
  run();
  EXPECT_TRUE(taken);
  const auto leaves = hand_over("b");
  run();
  EXPECT_EQ(exchange.offers(), 1U);
  leaves.cancel();
  run();
  EXPECT_EQ(exchange.offers(), 0U);
  EXPECT_EQ(engine.live_prompts(), 0U);
}

// Law: an engine that is gone has no offers.
TEST_F(KvExchangeTest, ForgetsOffersOfAnEngine) {
  exchange.offer(computed("a", 10));
  exchange.forget("other");
  EXPECT_EQ(exchange.offers(), 1U);
  exchange.forget("e");
  EXPECT_EQ(exchange.offers(), 0U);
}

}  // namespace
}  // namespace balanceroute::emulator
