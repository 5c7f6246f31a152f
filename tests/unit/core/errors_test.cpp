#include "core/errors.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/ledger.hpp"
#include "core/request.hpp"

namespace balanceroute {
namespace {

// Law: each error has words of its own.
template <class Error>
void expect_different_words(std::initializer_list<Error> errors) {
  std::set<std::string_view> words;
  for (const Error error : errors) words.insert(to_string(error));
  EXPECT_EQ(words.size(), errors.size());
  EXPECT_FALSE(words.contains(""));
}

TEST(Errors, EachHasItsOwnWords) {
  expect_different_words({RequestError::NoSequence, RequestError::NegativeTokens, RequestError::TooManyTokens});
  expect_different_words({AdmitError::NoSequence, AdmitError::NegativeTokens, AdmitError::TooManyTokens,
                          AdmitError::UnknownWorker, AdmitError::WorkerNotReady, AdmitError::NoFreeSlots,
                          AdmitError::NoKvSpace, AdmitError::AlreadyAdmitted});
  expect_different_words({SubmitError::NoSequence, SubmitError::NegativeTokens, SubmitError::TooManyTokens,
                          SubmitError::NoWorkerReady, SubmitError::TooManySequences, SubmitError::ExceedsKvSpace,
                          SubmitError::ExceedsQuota, SubmitError::UnknownTenant, SubmitError::AlreadyKnown});
  expect_different_words({WorkerError::UnknownGroup, WorkerError::UnknownWorker, WorkerError::DuplicateWorker,
                          WorkerError::NoSlots, WorkerError::NoKvSpace, WorkerError::WorkerDead,
                          WorkerError::StillBusy});
  expect_different_words(
      {WorkerState::absent, WorkerState::ready, WorkerState::draining, WorkerState::dead, WorkerState::removed});
  expect_different_words({LeaseState::dispatched, LeaseState::running});
}

// Law: counts up to 2^31 are taken, for one sequence and for all together; not one token more.
TEST(Request, SizesHaveALimit) {
  EXPECT_TRUE(check({.id = RequestId{1}, .prompt = kMaxTokens}));
  EXPECT_TRUE(check({.id = RequestId{1}, .prompt = kMaxTokens - Tokens{1}, .generated = Tokens{1}}));
  EXPECT_EQ(check({.id = RequestId{1}, .prompt = kMaxTokens, .generated = Tokens{1}}).error(),
            RequestError::TooManyTokens);
  EXPECT_EQ(check({.id = RequestId{1}, .prompt = Tokens{1}, .generated = kMaxTokens + Tokens{1}}).error(),
            RequestError::TooManyTokens);
  EXPECT_EQ(check({.id = RequestId{1}, .prompt = Tokens{3}, .sequences = 2'000'000'000}).error(),
            RequestError::TooManyTokens);
  EXPECT_TRUE(check({.id = RequestId{1}, .prompt = Tokens{0}}));
  EXPECT_EQ(check({.id = RequestId{1}, .prompt = Tokens{0}, .sequences = -1}).error(), RequestError::NoSequence);
  EXPECT_EQ(check({.id = RequestId{1}, .prompt = Tokens{1}, .generated = Tokens{-1}}).error(),
            RequestError::NegativeTokens);
}

}  // namespace
}  // namespace balanceroute
