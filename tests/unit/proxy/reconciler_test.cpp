#include "proxy/reconciler.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

RankReading says(std::int64_t running, std::int64_t waiting = 0) {
  RankReading reading;
  reading.running = running;
  reading.waiting = waiting;
  return reading;
}

MirrorWindow mirror(std::int64_t sequences, std::size_t waiting = 0) {
  return {.fewest = sequences, .most = sequences, .slots = 8, .waiting = waiting};
}

// Law: what a reading shows once or twice may be on its way; three in a row are somebody else's traffic, and the least
// of them is counted.
TEST(Reconciler, RepeatedExcessIsBackground) {
  Reconciler reconciler;
  EXPECT_FALSE(reconciler.compare(says(5), mirror(2)).background);
  EXPECT_FALSE(reconciler.compare(says(7), mirror(2)).background);
  EXPECT_FALSE(reconciler.compare(says(2), mirror(2)).background);  // the row begins anew
  EXPECT_FALSE(reconciler.compare(says(6), mirror(2)).background);
  EXPECT_FALSE(reconciler.compare(says(5), mirror(2)).background);
  EXPECT_EQ(reconciler.compare(says(7), mirror(2)).background, 3);
  EXPECT_EQ(reconciler.disagreements(), 5u);
}

// Law: background that is counted is part of the mirror; it shrinks when the others have gone, and grows when more
// come.
TEST(Reconciler, BackgroundFollowsTheOthers) {
  Reconciler reconciler;
  reconciler.set_background(3);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(reconciler.compare(says(5), mirror(5)).background);
  for (int i = 0; i < 2; ++i) reconciler.compare(says(8), mirror(5));
  EXPECT_EQ(reconciler.compare(says(8), mirror(5)).background, 6);
  for (int i = 0; i < 2; ++i) reconciler.compare(says(2), mirror(5));
  EXPECT_EQ(reconciler.compare(says(2), mirror(5)).background, 0);
}

// Law: the mirror's bounds count, not a point: what came or went while the engine was asked is no disagreement.
TEST(Reconciler, WhatIsOnItsWayIsNoDisagreement) {
  Reconciler reconciler;
  const MirrorWindow window{.fewest = 1, .most = 7, .slots = 8, .waiting = 0};
  for (const std::int64_t running : {0, 1, 4, 7, 8}) reconciler.compare(says(running), window);
  EXPECT_EQ(reconciler.disagreements(), 0u);
}

// Law: an account that ten readings in a row contradict is not to be trusted, whichever of the two is higher and
// whether or not it was corrected; one that agrees restores it.
TEST(Reconciler, TenContradictionsInARowEndTrust) {
  Reconciler reconciler;
  for (int i = 1; i < Reconciler::kFullReadings; ++i) {
    reconciler.compare(says(i % 2 == 0 ? 1 : 8), mirror(4));
    EXPECT_FALSE(reconciler.contradicted()) << i;
  }
  reconciler.compare(says(1), mirror(4));
  EXPECT_TRUE(reconciler.contradicted());
  reconciler.compare(says(4), mirror(4));
  EXPECT_FALSE(reconciler.contradicted());
}

// Law: a ledger that counts more than the engine has is told once.
TEST(Reconciler, MirrorThatIsTooHighIsToldOnce) {
  Reconciler reconciler;
  int told = 0;
  for (int i = 0; i < 10; ++i) told += reconciler.compare(says(1), mirror(6)).mirror_too_high ? 1 : 0;
  EXPECT_EQ(told, 1);
}

// Law: an engine that keeps requests waiting at a constant number of running ones has fewer slots than it was said to.
TEST(Reconciler, TooManySlotsAreTold) {
  Reconciler reconciler;
  int told = 0;
  for (int i = 0; i < 10; ++i) told += reconciler.compare(says(4, 2), mirror(6)).slots_too_many ? 1 : 0;
  EXPECT_EQ(told, 1);
}

// Law: the same in saturation, where the ledger never sees a free slot; only later, since there some always wait for
// prefill or for KV.
TEST(Reconciler, TooManySlotsAreToldInSaturation) {
  Reconciler reconciler;
  for (int i = 1; i < Reconciler::kFullReadings; ++i) {
    EXPECT_FALSE(reconciler.compare(says(4, 4), mirror(8, 5)).slots_too_many) << i;
  }
  int told = 0;
  for (int i = 0; i < 10; ++i) told += reconciler.compare(says(4, 4), mirror(8 - i % 2, 5)).slots_too_many ? 1 : 0;
  EXPECT_EQ(told, 1);
}

// Law: an engine without KV space runs as many as fit, however many slots it has; slots are not blamed.
TEST(Reconciler, QueueForKvSpaceIsNoQueueForSlots) {
  Reconciler reconciler;
  RankReading full = says(4, 4);
  full.kv_usage = 0.97;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(reconciler.compare(full, mirror(8, 5)).slots_too_many);
}

// Law: a queue before prefill is none: the running ones become more and fewer.
TEST(Reconciler, QueueBeforePrefillIsNormal) {
  Reconciler reconciler;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(reconciler.compare(says(4 + i % 2, 2 - i % 2), mirror(6)).slots_too_many);
  }
}

// Law: requests that wait here while the engine has room, and the ledger sees none, are told.
TEST(Reconciler, IdleSlotsAreTold) {
  Reconciler reconciler;
  int told = 0;
  for (int i = 0; i < 5; ++i) told += reconciler.compare(says(3), mirror(8, 5)).slots_left_idle ? 1 : 0;
  for (int i = 0; i < 5; ++i) told += reconciler.compare(says(3), mirror(8, 0)).slots_left_idle ? 1 : 0;
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace balanceroute::proxy
