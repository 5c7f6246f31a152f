// Laws of the arrivals of a run: order, rate, permutations, what the seed decides and what it does not.
#include "sim/request_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace balanceroute::sim {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

trace::TraceRequest request(std::int64_t at_s, std::int64_t prompt, std::int64_t output) {
  return {.arrival = seconds{at_s}, .prompt = Tokens{prompt}, .output = Tokens{output}};
}

std::vector<Arrival> all_of(RequestStream stream) {
  std::vector<Arrival> all;
  for (; !stream.done(); stream.pop()) all.push_back(stream.next());
  return all;
}

std::vector<std::int64_t> prompts(const std::vector<Arrival>& arrivals) {
  std::vector<std::int64_t> all;
  for (const Arrival& arrival : arrivals) all.push_back(arrival.prompt.count());
  return all;
}

std::vector<std::int64_t> times_s(const std::vector<Arrival>& arrivals) {
  std::vector<std::int64_t> all;
  for (const Arrival& arrival : arrivals) all.push_back(std::chrono::duration_cast<seconds>(arrival.at).count());
  return all;
}

const std::vector kTrace{request(0, 1, 10), request(10, 2, 20), request(40, 3, 30), request(60, 4, 40)};

// Law: played once, lengths come in the order of the file.
TEST(RequestStream, PlaysATraceOnceInItsOwnOrder) {
  const auto all = all_of({kTrace, {.rate_per_second = 2, .seed = 5}});
  EXPECT_THAT(prompts(all), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(all[2].output, Tokens{30});
}

// Law: the trace's own times, stretched so that the mean rate is the one asked for: 1/20 a second at first, here 1/10.
TEST(RequestStream, StretchesTheTracesOwnTimesToTheRate) {
  const auto all = all_of({kTrace, {.arrivals = ArrivalLaw::trace, .rate_per_second = 0.1}});
  EXPECT_THAT(times_s(all), ElementsAre(0, 5, 20, 30));
}

// Law: repeated, the pattern of times starts again a mean gap after its end.
TEST(RequestStream, RepeatsTheTracesOwnTimesOneMeanGapApart) {
  const auto all = all_of({kTrace, {.repeat = 2, .arrivals = ArrivalLaw::trace, .rate_per_second = 0.05}});
  EXPECT_THAT(times_s(all), ElementsAre(0, 10, 40, 60, 80, 90, 120, 140));
}

// Law: each playing of a repeated trace is a permutation of it, and they differ.
TEST(RequestStream, PlaysPermutationsWhenRepeated) {
  const std::vector<trace::TraceRequest> trace = [] {
    std::vector<trace::TraceRequest> requests;
    for (std::int64_t i = 0; i < 50; ++i) requests.push_back(request(i, i + 1, i + 1));
    return requests;
  }();
  const auto all = prompts(all_of({trace, {.repeat = 2}}));
  ASSERT_EQ(all.size(), 100U);
  std::vector first(all.begin(), all.begin() + 50);
  std::vector second(all.begin() + 50, all.end());
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::ranges::adjacent_find(first), first.end());
}

// Law: Poisson arrivals have the rate asked for and exponential gaps (mean and deviation alike), the first at 0.
TEST(RequestStream, DrawsPoissonArrivalsAtTheRate) {
  const auto all = all_of({kTrace, {.repeat = 5000, .rate_per_second = 4}});
  EXPECT_EQ(all.front().at, Nanoseconds{0});
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double gap = std::chrono::duration<double>{all[i].at - all[i - 1].at}.count();
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(all.size() - 1);
  EXPECT_NEAR(sum / count, 0.25, 0.25 * 0.02);
  EXPECT_NEAR(squares / count, 2 * 0.25 * 0.25, 2 * 0.25 * 0.25 * 0.05);
}

// Law: another rate stretches the times and leaves lengths and their order alone; another seed draws both anew.
TEST(RequestStream, RateAndSeedDecideApart) {
  const auto slow = all_of({kTrace, {.repeat = 25, .rate_per_second = 1, .seed = 9}});
  const auto fast = all_of({kTrace, {.repeat = 25, .rate_per_second = 2, .seed = 9}});
  const auto other = all_of({kTrace, {.repeat = 25, .rate_per_second = 1, .seed = 10}});
  EXPECT_EQ(prompts(slow), prompts(fast));
  for (std::size_t i = 0; i < slow.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(slow[i].at.count()), 2 * static_cast<double>(fast[i].at.count()), 2);
  }
  EXPECT_NE(prompts(slow), prompts(other));
  EXPECT_NE(times_s(slow), times_s(other));
}

// Law: requests with the same blocks carry the same key of their prompt, others another; none where none are recorded.
TEST(RequestStream, TellsEqualPromptsByTheirBlocks) {
  std::vector<trace::TraceRequest> script;
  for (const std::vector<std::int64_t>& blocks :
       std::vector<std::vector<std::int64_t>>{{1, 2}, {1, 2}, {2, 1}, {1, 2, 0}, {1}, {0}, {}}) {
    script.push_back(request(std::ssize(script), 5, 5));
    script.back().prefix_blocks = blocks;
  }
  const auto all = all_of({script, {.arrivals = ArrivalLaw::trace, .rate_per_second = 1}});
  EXPECT_EQ(all[0].prompt_key, all[1].prompt_key);
  EXPECT_EQ(all[6].prompt_key, 0U);
  std::vector<std::uint64_t> keys;
  for (const Arrival& arrival : all) keys.push_back(arrival.prompt_key);
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::unique(keys).size(), 1U);
}

}  // namespace
}  // namespace balanceroute::sim
