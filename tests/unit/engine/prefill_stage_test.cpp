// Laws of prefill: order, one prompt at a time an instance, KV that stays until it is pulled.
#include "engine/prefill_stage.hpp"

#include <gtest/gtest.h>

namespace balanceroute::engine {
namespace {

using std::chrono::milliseconds;

// 10 ms and 1 ms a token.
PrefillStage stage(std::size_t instances, std::int64_t kv_capacity = 1'000'000) {
  return PrefillStage{
      {.instances = instances, .time = {.fixed_ms = 10, .per_token_ms = 1}, .kv_capacity = Tokens{kv_capacity}}};
}

void expect_next(PrefillStage& prefill, std::uint64_t id, std::size_t instance, std::int64_t at_ms) {
  ASSERT_TRUE(prefill.next());
  EXPECT_EQ(*prefill.next(), milliseconds{at_ms});
  const auto ready = prefill.pop();
  EXPECT_EQ(ready.id, RequestId{id});
  EXPECT_EQ(ready.instance, instance);
  EXPECT_EQ(ready.at, milliseconds{at_ms});
}

// Law: an instance takes one prompt at a time, in order of arrival, each for constant plus tokens.
TEST(PrefillStage, TakesOnePromptAtATime) {
  PrefillStage prefill = stage(1);
  EXPECT_FALSE(prefill.next());
  prefill.submit(RequestId{1}, Tokens{5}, milliseconds{0});
  prefill.submit(RequestId{2}, Tokens{20}, milliseconds{3});
  EXPECT_EQ(prefill.waiting(), 1U);
  expect_next(prefill, 1, 0, 15);
  expect_next(prefill, 2, 0, 45);
  EXPECT_FALSE(prefill.next());
}

// Law: several instances work beside one another; a free one takes the first that waits, and the one that is done first
// is told first.
TEST(PrefillStage, InstancesWorkBesideOneAnother) {
  PrefillStage prefill = stage(2);
  prefill.submit(RequestId{1}, Tokens{50}, milliseconds{0});
  prefill.submit(RequestId{2}, Tokens{5}, milliseconds{0});
  prefill.submit(RequestId{3}, Tokens{5}, milliseconds{0});
  expect_next(prefill, 2, 1, 15);
  expect_next(prefill, 3, 1, 30);
  expect_next(prefill, 1, 0, 60);
}

// Law: a cancelled prompt takes no more time and no space, waiting or at work, and the next one starts at once.
TEST(PrefillStage, CancelledPromptMakesRoom) {
  PrefillStage prefill = stage(1, 60);
  prefill.submit(RequestId{1}, Tokens{50}, milliseconds{0});
  prefill.submit(RequestId{2}, Tokens{40}, milliseconds{0});
  prefill.submit(RequestId{3}, Tokens{5}, milliseconds{0});
  EXPECT_TRUE(prefill.cancel(RequestId{2}, milliseconds{1}));
  EXPECT_EQ(prefill.waiting(), 1U);
  EXPECT_TRUE(prefill.at_work(0));
  EXPECT_TRUE(prefill.cancel(RequestId{1}, milliseconds{20}));
  EXPECT_EQ(prefill.held(0), Tokens{5});
  expect_next(prefill, 3, 0, 35);
  EXPECT_FALSE(prefill.at_work(0));
  EXPECT_FALSE(prefill.cancel(RequestId{3}, milliseconds{40}));  // its KV is held now
  EXPECT_EQ(prefill.held(0), Tokens{5});
}

// Law: of two free instances the one that holds less KV takes the prompt.
TEST(PrefillStage, PrefersTheInstanceThatHoldsLeast) {
  PrefillStage prefill = stage(2);
  prefill.submit(RequestId{1}, Tokens{50}, milliseconds{0});
  prefill.submit(RequestId{2}, Tokens{5}, milliseconds{0});
  prefill.pop();
  prefill.pop();
  EXPECT_EQ(prefill.held(0), Tokens{50});
  prefill.submit(RequestId{3}, Tokens{1}, milliseconds{100});
  expect_next(prefill, 3, 1, 111);
}

// Law: KV stays until it is pulled; a prompt without space waits for that, and nobody overtakes it.
TEST(PrefillStage, WaitsForKvSpace) {
  PrefillStage prefill = stage(1, 60);
  prefill.submit(RequestId{1}, Tokens{50}, milliseconds{0});
  prefill.submit(RequestId{2}, Tokens{20}, milliseconds{0});
  prefill.submit(RequestId{3}, Tokens{5}, milliseconds{0});
  expect_next(prefill, 1, 0, 60);
  EXPECT_FALSE(prefill.next());
  EXPECT_EQ(prefill.waiting(), 2U);
  prefill.pulled(0, Tokens{50}, milliseconds{200});
  expect_next(prefill, 2, 0, 230);
  expect_next(prefill, 3, 0, 245);
  EXPECT_EQ(prefill.held(0), Tokens{25});
}

// Law: an instance that holds nothing takes any prompt, so that none waits for ever.
TEST(PrefillStage, TakesAnyPromptWhenItHoldsNothing) {
  PrefillStage prefill = stage(1, 10);
  prefill.submit(RequestId{1}, Tokens{50}, milliseconds{0});
  expect_next(prefill, 1, 0, 60);
}

}  // namespace
}  // namespace balanceroute::engine
