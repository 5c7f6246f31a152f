// Laws of derived streams: what stays, what changes, and that one seed gives one stream.
#include "trace/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace balanceroute::trace {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Request i arrives at i seconds and is told apart by its lengths.
std::vector<TraceRequest> numbered(int count) {
  std::vector<TraceRequest> requests;
  for (int i = 0; i < count; ++i) requests.push_back({seconds{i}, Tokens{100 + i}, Tokens{1 + i}, {i}});
  return requests;
}

// Law: a permutation holds each number once, and differs between seeds.
TEST(Arrivals, PermutationHoldsEachNumberOnce) {
  Random random{7};
  Random other{8};
  const auto order = permutation(1000, random);
  EXPECT_NE(order, permutation(1000, other));
  auto sorted = order;
  std::ranges::sort(sorted);
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_TRUE(permutation(0, random).empty());
}

// Law: each of the six orders of three is equally likely (chi-square with 5 degrees, 0.1 % point 20.5).
TEST(Arrivals, PermutationIsUniform) {
  Random random{1};
  std::vector<int> seen(27);
  for (int i = 0; i < 6000; ++i) {
    const auto order = permutation(3, random);
    ++seen[9 * order[0] + 3 * order[1] + order[2]];
  }
  double chi_square = 0;
  for (const int count : seen) {
    if (count > 0) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  }
  EXPECT_EQ(std::ranges::count(seen, 0), 21);
  EXPECT_LT(chi_square, 20.5);
}

// Law: shuffling keeps the times in place, keeps each request whole, and moves the requests.
TEST(Arrivals, ShuffleKeepsTimesAndRequests) {
  Random random{7};
  auto mixed = shuffled(numbered(100), random);
  EXPECT_NE(mixed, numbered(100));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(mixed[static_cast<std::size_t>(i)].arrival, seconds{i});
  std::ranges::sort(mixed, {}, &TraceRequest::prompt);
  for (int i = 0; i < 100; ++i) {
    const auto& request = mixed[static_cast<std::size_t>(i)];
    EXPECT_EQ(request.prompt, Tokens{100 + i});
    EXPECT_EQ(request.output, Tokens{1 + i});
    EXPECT_EQ(request.prefix_blocks, std::vector<std::int64_t>{i});
  }
}

// Law: Poisson gaps have the mean 1/rate and a standard deviation equal to it; lengths and order stay.
TEST(Arrivals, PoissonGapsHaveTheirMeanAndSpread) {
  Random random{7};
  constexpr int count = 20'000;
  const auto stream = with_poisson_arrivals(numbered(count), 50, random);
  EXPECT_EQ(stream.front().arrival, nanoseconds{0});
  EXPECT_EQ(stream[17].output, Tokens{18});
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 1; i < stream.size(); ++i) {
    const std::chrono::duration<double> gap = stream[i].arrival - stream[i - 1].arrival;
    ASSERT_GE(gap.count(), 0);
    sum += gap.count();
    squares += gap.count() * gap.count();
  }
  const double mean = sum / (count - 1);
  EXPECT_NEAR(mean, 0.02, 0.02 * 0.03);
  EXPECT_NEAR(squares / (count - 1) / (2 * mean * mean), 1, 0.05);  // E[x^2] = 2 mean^2
}

TEST(Arrivals, OneSeedGivesOneStream) {
  Random first{3};
  Random second{3};
  EXPECT_EQ(with_poisson_arrivals(shuffled(numbered(50), first), 2, first),
            with_poisson_arrivals(shuffled(numbered(50), second), 2, second));
}

TEST(Arrivals, SpeedDividesTimes) {
  const auto faster = at_speed(numbered(4), 4);
  EXPECT_EQ(faster[3].arrival, std::chrono::milliseconds{750});
  EXPECT_EQ(faster[3].prompt, Tokens{103});
}

}  // namespace
}  // namespace balanceroute::trace
