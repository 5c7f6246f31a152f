#include "proxy/prompt_content.hpp"

#include <gtest/gtest.h>

#include <string>

#include "proxy/prompt_estimator.hpp"
#include "proxy/request_body.hpp"

namespace balanceroute::proxy {
namespace {

PromptContent content_of(const std::string& members, GenerationKind kind = GenerationKind::ChatCompletion) {
  const auto read = read_generation_body(R"({"model":"m",)" + members + "}", kind);
  EXPECT_TRUE(read) << read.error().message;
  return read ? read->prompt : PromptContent{};
}

// Law: each message counts, as JSON, for whoever says it; tools and the instructions beside the messages count too.
TEST(PromptContent, IsByRole) {
  const std::string system = R"({"role":"system","content":"be brief"})";
  const std::string developer = R"({"content":"and kind","role":"developer"})";
  const std::string user = R"({"role":"user","content":[{"type":"text","text":"what is it?"}]})";
  const std::string assistant = R"({"role":"assistant","content":null,"tool_calls":[{"id":"1"}]})";
  const std::string tool = R"({"role":"tool","tool_call_id":"1","content":"42"})";
  const PromptContent content = content_of(R"("messages":[)" + system + "," + developer + ", " + user + "," +
                                           assistant + "," + tool + R"(],"tools":[{"type":"function"}])");
  EXPECT_EQ(content.of(PromptPart::System), system.size() + developer.size());
  EXPECT_EQ(content.of(PromptPart::User), user.size());
  EXPECT_EQ(content.of(PromptPart::Assistant), assistant.size());
  EXPECT_EQ(content.of(PromptPart::Tool), tool.size());
  EXPECT_EQ(content.of(PromptPart::Tools), std::string_view{R"([{"type":"function"}])"}.size());
  EXPECT_EQ(content.of(PromptPart::Media), 0u);
  const PromptContent message = content_of(R"("messages":[],"system":"be brief")", GenerationKind::Message);
  EXPECT_EQ(message.of(PromptPart::System), 10u);
}

// Law: media count by number, in every API's shape, and their bytes not at all.
TEST(PromptContent, CountsMediaByNumber) {
  const std::string data(100'000, 'A');
  const std::string image = R"({"type":"image_url","image_url":{"url":"data:image/png;base64,)" + data + R"("}})";
  const std::string sound = R"({"type":"input_audio","input_audio":{"data":")" + data + R"("}})";
  const std::string text = R"({"type":"text","text":"what is it?"})";
  const std::string before = R"({"role":"user","content":[)";
  const PromptContent chat = content_of(R"("messages":[)" + before + text + "," + image + "," + sound + "]}]");
  EXPECT_EQ(chat.of(PromptPart::Media), 2u);
  EXPECT_EQ(chat.of(PromptPart::User), before.size() + text.size() + std::string_view{",,]}"}.size());

  const std::string source = R"({"type":"image","source":{"type":"base64","data":")" + data + R"("}})";
  const PromptContent message = content_of(
      R"("messages":[{"role":"user","content":[{"type":"tool_result","content":[)" + source + "]}," + source + "]}]",
      GenerationKind::Message);
  EXPECT_EQ(message.of(PromptPart::Media), 2u);
  EXPECT_LT(message.of(PromptPart::User), 100u);

  const PromptContent response =
      content_of(R"("input":[{"role":"user","content":[{"type":"input_image","image_url":")" + data + R"("}]}])",
                 GenerationKind::Response);
  EXPECT_EQ(response.of(PromptPart::Media), 1u);
  EXPECT_LT(response.of(PromptPart::User), 100u);
}

// Law: shapes that no message has are counted as text and left to the engine.
TEST(PromptContent, OddShapesAreText) {
  EXPECT_EQ(content_of(R"("messages":["hi",1,null])").of(PromptPart::User), 4u + 1u + 4u);
  EXPECT_EQ(content_of(R"("messages":[{"role":7,"content":[3,{"type":[]}]}])").of(PromptPart::User),
            std::string_view{R"({"role":7,"content":[3,{"type":[]}]})"}.size());
  EXPECT_EQ(content_of(R"("input":"hi")", GenerationKind::Response).of(PromptPart::User), 4u);
  EXPECT_FALSE(
      read_generation_body(R"({"model":"m","messages":[{"role":"user","content":}]})", GenerationKind::ChatCompletion));
}

PromptContent bytes(PromptPart part, std::size_t amount) {
  PromptContent content;
  content.add(part, amount);
  return content;
}

// Law: an image is not taken for its bytes, nor is a text for its images.
TEST(PromptEstimator, MediaAreAConstantBeforeAnyIsKnown) {
  const PromptEstimator estimator;
  EXPECT_EQ(estimator.estimate(bytes(PromptPart::Media, 2)), Tokens{2048});
  EXPECT_EQ(estimator.estimate(bytes(PromptPart::User, 400)), Tokens{100});
  EXPECT_EQ(estimator.estimate(PromptContent{}), Tokens{1});
}

// Law: where parts differ in their tokens per byte, each is learned from sums in which they are mixed.
TEST(PromptEstimator, LearnsEachPartFromSums) {
  PromptEstimator estimator;
  for (int i = 0; i < 4000; ++i) {
    PromptContent mixed;
    const auto code = static_cast<std::size_t>(200 + 37 * (i % 50));
    const auto text = static_cast<std::size_t>(3000 - 41 * (i % 70));
    mixed.add(PromptPart::Tool, code);
    mixed.add(PromptPart::User, text);
    mixed.add(PromptPart::Media, static_cast<std::size_t>(i % 3));
    estimator.learn(mixed, static_cast<std::int64_t>(code / 2 + text / 5) + 300 * (i % 3));
  }
  EXPECT_NEAR(static_cast<double>(estimator.estimate(bytes(PromptPart::Tool, 1000)).count()), 500, 50);
  EXPECT_NEAR(static_cast<double>(estimator.estimate(bytes(PromptPart::User, 1000)).count()), 200, 20);
  EXPECT_NEAR(static_cast<double>(estimator.estimate(bytes(PromptPart::Media, 1)).count()), 300, 30);
}

// Law: no report, however odd, makes a byte worth less than a 64th of a token or more than four.
TEST(PromptEstimator, OddReportsAreBounded) {
  PromptEstimator estimator;
  for (int i = 0; i < 1000; ++i) estimator.learn(bytes(PromptPart::User, 10), 1'000'000);
  EXPECT_LE(estimator.estimate(bytes(PromptPart::User, 1000)), Tokens{4000});
  for (int i = 0; i < 10'000; ++i) estimator.learn(bytes(PromptPart::User, 1'000'000), 1);
  EXPECT_GE(estimator.estimate(bytes(PromptPart::User, 6400)), Tokens{100});
  estimator.learn(bytes(PromptPart::User, 0), 5);
  estimator.learn(bytes(PromptPart::User, 100), 0);
}

}  // namespace
}  // namespace balanceroute::proxy
