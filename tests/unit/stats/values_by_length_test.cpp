// Laws of figures by length: each request counts once in each division, at the edge of a class in the lower one.
#include "stats/values_by_length.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

// Law: a class ends with its last length; above the last end is one more class.
TEST(LengthBuckets, EndWithTheirLastLength) {
  EXPECT_EQ(length_bucket(Tokens{1}, kPromptBucketEnds), 0U);
  EXPECT_EQ(length_bucket(Tokens{512}, kPromptBucketEnds), 0U);
  EXPECT_EQ(length_bucket(Tokens{513}, kPromptBucketEnds), 1U);
  EXPECT_EQ(length_bucket(Tokens{32'768}, kPromptBucketEnds), 3U);
  EXPECT_EQ(length_bucket(Tokens{32'769}, kPromptBucketEnds), 4U);
  EXPECT_EQ(length_bucket(Tokens{128}, kOutputBucketEnds), 0U);
  EXPECT_EQ(length_bucket(Tokens{129}, kOutputBucketEnds), 1U);
}

// Law: all, by prompt and by output are three divisions of the same values.
TEST(ValuesByLength, TellsEachValueOnceInEachDivision) {
  ValuesByLength values;
  values.record({.prompt = Tokens{10}, .output = Tokens{10}}, 1);
  values.record({.prompt = Tokens{600}, .output = Tokens{100}}, 3);
  values.record({.prompt = Tokens{600}, .output = Tokens{200}}, 5);
  EXPECT_EQ(values.all().count, 3U);
  EXPECT_EQ(values.all().mean, 3);
  EXPECT_EQ(values.all().max, 5);
  EXPECT_EQ(values.by_prompt()[0].mean, 1);
  EXPECT_EQ(values.by_prompt()[1].mean, 4);
  EXPECT_EQ(values.by_prompt()[2].count, 0U);
  EXPECT_EQ(values.by_output()[0].mean, 2);
  EXPECT_EQ(values.by_output()[1].mean, 5);
  EXPECT_EQ(values.by_output()[4].count, 0U);
}

}  // namespace
}  // namespace balanceroute
