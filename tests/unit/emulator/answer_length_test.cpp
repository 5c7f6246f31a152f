// Laws of answer lengths: who decides, what cuts, and which reason is told.
#include "emulator/answer_length.hpp"

#include <gtest/gtest.h>

namespace balanceroute::emulator {
namespace {

constexpr LengthLaw kLaw{.max_model_len = Tokens{1000}, .mean_output_tokens = 50};

struct Chosen {
  std::int64_t output = 0;
  std::string_view reason;
  friend bool operator==(const Chosen&, const Chosen&) = default;
};

Chosen choose(const GenerationRequest& request, std::int64_t prompt = 100) {
  Random random{1};
  const auto length = choose_length(request, Prompt{.tokens = Tokens{prompt}}, kLaw, random);
  return length ? Chosen{length->output.count(), length->finish_reason} : Chosen{-1, "refused"};
}

TEST(AnswerLength, StatedLengthEndsByItself) {
  EXPECT_EQ(choose({.output = Tokens{80}}), (Chosen{80, "stop"}));
  EXPECT_EQ(choose({.limit = Tokens{80}, .output = Tokens{80}}), (Chosen{80, "stop"}));
}

TEST(AnswerLength, LimitCutsALongerAnswer) {
  EXPECT_EQ(choose({.limit = Tokens{79}, .output = Tokens{80}}), (Chosen{79, "length"}));
}

// Law: the end is a token of its own, which comes after min_tokens; a limit cuts all the same.
TEST(AnswerLength, EndComesAfterTheLeastTokens) {
  EXPECT_EQ(choose({.output = Tokens{1}, .min_tokens = 1}), (Chosen{2, "stop"}));
  EXPECT_EQ(choose({.limit = Tokens{1}, .output = Tokens{1}, .min_tokens = 1}), (Chosen{1, "length"}));
  EXPECT_EQ(choose({.output = Tokens{80}, .min_tokens = 79}), (Chosen{80, "stop"}));
  EXPECT_EQ(choose({.output = Tokens{900}, .min_tokens = 900}), (Chosen{900, "length"}));
}

// Law: who only states a limit gets that much.
TEST(AnswerLength, LimitAloneIsReached) {
  EXPECT_EQ(choose({.limit = Tokens{30}}), (Chosen{30, "length"}));
  EXPECT_EQ(choose({.api = Api::completions, .limit = Tokens{30}}), (Chosen{30, "length"}));
}

TEST(AnswerLength, CompletionsWithoutALimitHaveSixteenTokens) {
  EXPECT_EQ(choose({.api = Api::completions}), (Chosen{16, "length"}));
  EXPECT_EQ(choose({.api = Api::completions, .output = Tokens{40}}), (Chosen{40, "stop"}));
  EXPECT_EQ(choose({.api = Api::completions}, 990), (Chosen{10, "length"}));
}

// Law: what fits the context exactly is taken, one token more is refused.
TEST(AnswerLength, PromptAndAnswerFitTheContext) {
  EXPECT_EQ(choose({.output = Tokens{900}}, 100), (Chosen{900, "stop"}));
  EXPECT_EQ(choose({.output = Tokens{901}}, 100), (Chosen{-1, "refused"}));
  EXPECT_EQ(choose({.limit = Tokens{901}}, 100), (Chosen{-1, "refused"}));
  EXPECT_EQ(choose({}, 1000), (Chosen{-1, "refused"}));
}

// Law: a prompt that ends with a part of the answer gets the rest of the stated length; a limit counts what is new.
TEST(AnswerLength, ContinuedAnswerHasTheRest) {
  Random random{1};
  const Prompt prompt{.tokens = Tokens{100}, .answered = Tokens{30}};
  const auto length = [&](const GenerationRequest& request) {
    return choose_length(request, prompt, kLaw, random)->output.count();
  };
  EXPECT_EQ(length({.output = Tokens{80}}), 50);
  EXPECT_EQ(length({.limit = Tokens{20}, .output = Tokens{80}}), 20);
  EXPECT_EQ(length({.output = Tokens{30}}), 1);
}

// Law: drawn lengths have the stated mean, are at least 1, and repeat with the seed.
TEST(AnswerLength, DrawsHaveTheirMean) {
  Random random{7};
  Random same{7};
  const LengthLaw law{.max_model_len = Tokens{1'000'000}, .mean_output_tokens = 50};
  const Prompt prompt{.tokens = Tokens{1}};
  double sum = 0;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    const auto length = choose_length({}, prompt, law, random);
    ASSERT_TRUE(length);
    ASSERT_GE(length->output, Tokens{1});
    EXPECT_EQ(length->finish_reason, "stop");
    EXPECT_EQ(length->output, choose_length({}, prompt, law, same)->output);
    sum += static_cast<double>(length->output.count());
  }
  EXPECT_NEAR(sum / draws, 50.5, 1.5);  // 1 + floor of an exponential of mean 50
}

}  // namespace
}  // namespace balanceroute::emulator
