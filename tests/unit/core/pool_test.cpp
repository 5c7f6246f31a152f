#include "core/pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace balanceroute {
namespace {

Candidate waiting(std::uint64_t serial) {
  return {.request = {.id = RequestId{serial}, .prompt = Tokens{1}}, .weight = Tokens{1}, .serial = serial};
}

Pool pool_of(std::uint64_t count) {
  Pool pool;
  for (std::uint64_t serial = 0; serial < count; ++serial) pool.push(waiting(serial));
  return pool;
}

std::vector<std::uint64_t> serials(const Pool& pool) {
  std::vector<std::uint64_t> found;
  for (const Candidate& candidate : pool.candidates()) found.push_back(candidate.serial);
  return found;
}

std::vector<std::int32_t> passes(const Pool& pool) {
  std::vector<std::int32_t> found;
  for (const Candidate& candidate : pool.candidates()) found.push_back(candidate.passes);
  return found;
}

// Law: the rest keep their order wherever one is removed.
TEST(Pool, EraseKeepsOrder) {
  for (std::size_t position = 0; position < 5; ++position) {
    Pool pool = pool_of(5);
    pool.erase(position);
    std::vector<std::uint64_t> expected{0, 1, 2, 3, 4};
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(position));
    EXPECT_EQ(serials(pool), expected);
    EXPECT_EQ(passes(pool), std::vector<std::int32_t>(4, 0));
  }
}

// Law: an admission is a pass for each older candidate that stays, and for no younger one.
TEST(Pool, TakeCountsPassesOfTheOlder) {
  Pool pool = pool_of(6);
  pool.take(std::array<std::size_t, 3>{1, 3, 4});
  EXPECT_EQ(serials(pool), (std::vector<std::uint64_t>{0, 2, 5}));
  EXPECT_EQ(passes(pool), (std::vector<std::int32_t>{3, 2, 0}));
  pool.take(std::array<std::size_t, 1>{2});
  EXPECT_EQ(passes(pool), (std::vector<std::int32_t>{4, 3}));
}

TEST(Pool, TakeOfNoneAndOfAll) {
  Pool pool = pool_of(3);
  pool.take({});
  EXPECT_EQ(pool.size(), 3U);
  pool.take(std::array<std::size_t, 3>{0, 1, 2});
  EXPECT_TRUE(pool.empty());
  pool.push(waiting(7));
  EXPECT_EQ(serials(pool), std::vector<std::uint64_t>{7});
}

// Law: one that comes back takes the place its serial gives it.
TEST(Pool, InsertGoesByOrderOfArrival) {
  Pool pool;
  for (const std::uint64_t serial : {3U, 1U, 2U, 0U}) pool.insert(waiting(serial));
  EXPECT_EQ(serials(pool), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(Pool, FindIsByRequest) {
  Pool pool = pool_of(3);
  pool.erase(0);
  EXPECT_EQ(pool.find(RequestId{2}), 1U);
  EXPECT_EQ(pool.find(RequestId{0}), std::nullopt);
}

// Law: a pool that is fed at the end and emptied at the head for ever needs no more memory than it holds.
TEST(Pool, RoomAtTheHeadIsReused) {
  Pool pool = pool_of(8);
  const Candidate* lowest = pool.candidates().data();
  const Candidate* highest = lowest;
  for (std::uint64_t serial = 8; serial < 10'000; ++serial) {
    pool.take(std::array<std::size_t, 1>{0});
    pool.push(waiting(serial));
    ASSERT_EQ(pool.candidates().front().serial, serial - 7);
    if (serial < 100) continue;  // warm from here on
    if (serial == 100) lowest = highest = pool.candidates().data();
    lowest = std::min(lowest, pool.candidates().data());
    highest = std::max(highest, pool.candidates().data());
  }
  EXPECT_LE(highest - lowest, 32);
}

}  // namespace
}  // namespace balanceroute
