// What an engine answers beside generation.
#include "emulator/side_answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace balanceroute::emulator {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const SideContext kContext{.model = "m", .id = "r1", .created = 1700, .max_model_len = Tokens{4096}};

json answered(std::string_view path, const json& body) {
  const auto answer = side_answer(path, body.dump(), kContext);
  return answer ? json::parse(*answer) : json{{"refused", answer.error().message}};
}

// Law: one embedding for each input in order, the same for the same text, and the same numbers in either encoding.
TEST(SideAnswers, EmbeddingsAreAFunctionOfTheText) {
  const auto list = answered("/v1/embeddings", {{"model", "m"}, {"input", {"one", "two", "one"}}});
  ASSERT_EQ(list["data"].size(), 3U);
  EXPECT_EQ(list["data"][0]["embedding"], list["data"][2]["embedding"]);
  EXPECT_NE(list["data"][0]["embedding"], list["data"][1]["embedding"]);
  EXPECT_EQ(list["data"][1]["index"], 1);
  EXPECT_EQ(list["usage"]["prompt_tokens"], 3);
  const auto packed = answered("/v1/embeddings", {{"input", "one"}, {"encoding_format", "base64"}});
  const std::string text = packed["data"][0]["embedding"];
  EXPECT_EQ(text.size(), 44U);  // 32 bytes
  EXPECT_TRUE(text.ends_with("="));
}

// Law: documents come back by falling relevance, each with its index, at most top_n of them.
TEST(SideAnswers, RerankOrdersDocuments) {
  const json documents{"a", "b", "c", "d"};
  const auto all = answered("/rerank", {{"query", "q"}, {"documents", documents}})["results"];
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["document"]["text"], documents[all[i]["index"].get<std::size_t>()]);
    EXPECT_GE(all[i > 0 ? i - 1 : 0]["relevance_score"], all[i]["relevance_score"]);
  }
  const auto two = answered("/v1/rerank", {{"query", "q"}, {"documents", documents}, {"top_n", 2}})["results"];
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0], all[0]);
}

TEST(SideAnswers, ScoresAndClassesAreOneForEachText) {
  const auto scores = answered("/score", {{"text_1", "q"}, {"text_2", {"a", "b"}}});
  ASSERT_EQ(scores["data"].size(), 2U);
  EXPECT_EQ(scores["data"][1]["object"], "score");
  EXPECT_EQ(answered("/v1/score", {{"queries", "q"}, {"documents", {"a", "b"}}})["data"], scores["data"]);
  const auto classes = answered("/classify", {{"input", {"a", "b"}}});
  ASSERT_EQ(classes["data"].size(), 2U);
  EXPECT_EQ(classes["data"][0]["num_classes"], classes["data"][0]["probs"].size());
}

// Law: /detokenize gives back what /tokenize took, of any bytes, and knows the numbered tokens of answers.
TEST(SideAnswers, TokensHoldTheirText) {
  for (const std::string text : {"", "a", "hello", "é😀 and more", "12345678"}) {
    const auto tokens = answered("/tokenize", {{"prompt", text}});
    EXPECT_EQ(tokens["count"], (text.size() + 3) / 4);
    EXPECT_EQ(tokens["max_model_len"], 4096);
    EXPECT_EQ(answered("/detokenize", {{"tokens", tokens["tokens"]}})["prompt"], text);
  }
  EXPECT_EQ(answered("/detokenize", {{"tokens", {1'000'001, 1'000'017}}})["prompt"], " t1 t17");
  EXPECT_EQ(answered("/tokenize", {{"messages", {{{"role", "user"}, {"content", "hello"}}}}})["count"], 2);
}

TEST(SideAnswers, RefusalsNameTheMember) {
  const auto refusal = [](std::string_view path, const json& body) -> std::string {
    return answered(path, body).value("refused", "");
  };
  EXPECT_THAT(refusal("/v1/embeddings", {{"input", 5}}), HasSubstr("input: expected"));
  EXPECT_THAT(refusal("/rerank", {{"query", "q"}}), HasSubstr("documents: expected"));
  EXPECT_THAT(refusal("/rerank", {{"query", "q"}, {"documents", {"a"}}, {"top_n", -1}}), HasSubstr("top_n: expected"));
  EXPECT_THAT(refusal("/score", {{"text_1", {"a", "b"}}, {"text_2", {"c"}}}), HasSubstr("text_1: expected one text"));
  EXPECT_THAT(refusal("/tokenize", json::object()), HasSubstr("prompt: expected"));
  EXPECT_THAT(refusal("/detokenize", {{"tokens", {"x"}}}), HasSubstr("tokens: expected"));
  EXPECT_THAT(refusal("/classify", {{"model", "other"}, {"input", "x"}}), HasSubstr("`other` does not exist"));
  EXPECT_THAT(side_answer("/tokenize", "[", kContext).error().message, HasSubstr("JSON object"));
}

}  // namespace
}  // namespace balanceroute::emulator
