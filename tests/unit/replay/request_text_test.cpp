// Laws of request bodies: exact prompt lengths, shared prefixes, hidden or stated answer lengths.
#include "replay/request_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace balanceroute::replay {
namespace {

using nlohmann::json;

std::vector<int> prompt_of(const RequestText& request) {
  return json::parse(request_body(request))["prompt"];
}

TEST(RequestText, PromptHasTheStatedLength) {
  for (const std::int64_t length : {1, 2, 511, 512, 513, 5000}) {
    const auto prompt = prompt_of({.model = "m", .prompt = Tokens{length}, .output = Tokens{1}});
    EXPECT_EQ(std::ssize(prompt), length);
    EXPECT_TRUE(std::ranges::all_of(prompt, [](int id) { return id >= 100 && id < 1000; }));
  }
}

// Law: equal blocks at equal positions are equal tokens; behind them the prompts differ.
TEST(RequestText, SharedBlocksAreSharedTokens) {
  const std::vector<std::int64_t> blocks{7, 8};
  const std::vector<std::int64_t> others{7, 9};
  const auto a = prompt_of({.prompt = Tokens{1100}, .output = Tokens{1}, .prefix_blocks = blocks, .seed = 1});
  const auto b = prompt_of({.prompt = Tokens{1200}, .output = Tokens{1}, .prefix_blocks = blocks, .seed = 2});
  const auto c = prompt_of({.prompt = Tokens{1200}, .output = Tokens{1}, .prefix_blocks = others, .seed = 1});
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 1024, b.begin()));
  EXPECT_FALSE(std::equal(a.begin() + 1024, a.end(), b.begin() + 1024));
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 512, c.begin()));
  EXPECT_FALSE(std::equal(a.begin() + 512, a.begin() + 1024, c.begin() + 512));
  EXPECT_EQ(prompt_of({.prompt = Tokens{600}, .output = Tokens{1}, .prefix_blocks = blocks}).size(), 600U);
}

TEST(RequestText, LengthIsStatedOrKeptFromTheRouter) {
  const auto stated = json::parse(request_body({.model = "m", .prompt = Tokens{3}, .output = Tokens{9}}));
  EXPECT_EQ(stated["max_tokens"], 9);
  EXPECT_EQ(stated["ignore_eos"], true);
  EXPECT_FALSE(stated.contains("emulator"));
  const auto hidden = json::parse(
      request_body({.model = "m", .prompt = Tokens{3}, .output = Tokens{9}, .length_member = LengthMember::emulator}));
  EXPECT_EQ(hidden["emulator"]["output_tokens"], 9);
  EXPECT_FALSE(hidden.contains("max_tokens"));
}

// Law: who asks for a limit alone gets a body without members that only some engines know.
TEST(RequestText, LimitHasNoForeignMember) {
  const auto limited = json::parse(
      request_body({.model = "m", .prompt = Tokens{3}, .output = Tokens{9}, .length_member = LengthMember::limit}));
  EXPECT_EQ(limited["max_tokens"], 9);
  EXPECT_FALSE(limited.contains("ignore_eos"));
}

// Law: a chat's prompt is four bytes of words for each token, and its shared blocks are shared text.
TEST(RequestText, ChatPromptIsAWordForEachToken) {
  const auto text_of = [](std::int64_t length, std::uint64_t seed) {
    const std::vector<std::int64_t> blocks{7};
    const auto body = json::parse(request_body(
        {.route = Route::chat, .prompt = Tokens{length}, .output = Tokens{1}, .prefix_blocks = blocks, .seed = seed}));
    EXPECT_FALSE(body.contains("prompt"));
    EXPECT_EQ(body["messages"][0]["role"], "user");
    return body["messages"][0]["content"].get<std::string>();
  };
  const auto a = text_of(600, 1);
  const auto b = text_of(700, 2);
  EXPECT_EQ(a.size(), 4U * 600);
  EXPECT_EQ(std::ranges::count(a, ' '), 600);
  EXPECT_EQ(a.substr(0, 4 * 512), b.substr(0, 4 * 512));
  EXPECT_NE(a.substr(4 * 512, 200), b.substr(4 * 512, 200));
  EXPECT_EQ(path_of(Route::chat), "/v1/chat/completions");
}

TEST(RequestText, StreamsAskForUsage) {
  const auto streamed = json::parse(request_body({.model = "a\"b", .prompt = Tokens{3}, .output = Tokens{9}}));
  EXPECT_EQ(streamed["model"], "a\"b");
  EXPECT_EQ(streamed["stream"], true);
  EXPECT_EQ(streamed["stream_options"]["include_usage"], true);
  const auto whole =
      json::parse(request_body({.model = "m", .prompt = Tokens{3}, .output = Tokens{9}, .stream = false}));
  EXPECT_FALSE(whole.contains("stream"));
  EXPECT_FALSE(whole.contains("stream_options"));
}

}  // namespace
}  // namespace balanceroute::replay
