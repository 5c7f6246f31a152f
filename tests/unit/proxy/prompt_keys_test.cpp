#include "proxy/prompt_keys.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace balanceroute::proxy {
namespace {

const history::KeyedHash kHash{history::HashKey{7}};

PromptKeys keys_of(const std::string& body, GenerationKind kind = GenerationKind::ChatCompletion,
                   std::string_view model = "m") {
  return prompt_keys(kHash, model, read_generation_body(body, kind).value(), body);
}

std::string chat(const std::string& messages, const std::string& more = "") {
  return R"({"model":"m","messages":[)" + messages + "]" + more + "}";
}

const std::string kSystem = R"({"role":"system","content":"Be brief."})";
const std::string kHi = R"({"role":"user","content":"hi"})";
const std::string kHo = R"({"role":"user","content":"ho"})";

// Law: the same prompt has the same key, however an answer is asked for; another prompt or model has another.
TEST(PromptKeys, AreEqualForEqualPrompts) {
  const auto key = keys_of(chat(kHi)).prompt;
  EXPECT_NE(key, 0U);
  EXPECT_EQ(keys_of(chat(kHi, R"(,"stream":true,"max_tokens":5,"temperature":0.3,"n":2)")).prompt, key);
  EXPECT_NE(keys_of(chat(kHo)).prompt, key);
  EXPECT_NE(keys_of(chat(kHi + "," + kHo)).prompt, key);
  EXPECT_NE(keys_of(chat(kHi, R"(,"tools":[{"type":"function"}])")).prompt, key);
  EXPECT_NE(keys_of(chat(kHi), GenerationKind::ChatCompletion, "other").prompt, key);
  EXPECT_NE(prompt_keys(history::KeyedHash{history::HashKey{8}}, "m",
                        read_generation_body(chat(kHi), GenerationKind::ChatCompletion).value(), chat(kHi))
                .prompt,
            key);
}

// Law: every way to say a prompt counts: texts, lists of texts, token ids, input and instructions.
TEST(PromptKeys, KnowEveryKindOfPrompt) {
  using enum GenerationKind;
  for (const char* prompt : {R"("a")", R"(["a"])", R"([ 1, 2 ])", R"([[1],[2]])"}) {
    const std::string body = std::string{R"({"model":"m","prompt":)"} + prompt + "}";
    const std::string other = std::string{R"({"model":"m","prompt":)"} + R"("b"})";
    EXPECT_NE(keys_of(body, TextCompletion).prompt, 0U) << prompt;
    EXPECT_EQ(keys_of(body, TextCompletion).prompt, keys_of(body + " ", TextCompletion).prompt) << prompt;
    EXPECT_NE(keys_of(body, TextCompletion).prompt, keys_of(other, TextCompletion).prompt) << prompt;
    EXPECT_EQ(keys_of(body, TextCompletion).opening, 0U) << prompt;
  }
  const auto answer = keys_of(R"({"model":"m","input":"a","instructions":"b"})", Response);
  EXPECT_NE(answer.prompt, keys_of(R"({"model":"m","input":"a","instructions":"c"})", Response).prompt);
  EXPECT_EQ(answer.opening, keys_of(R"({"model":"m","input":"d","instructions":"b"})", Response).opening);
  const auto message = keys_of(R"({"model":"m","system":"b","messages":[)" + kHi + "]}", Message);
  EXPECT_NE(message.opening, 0U);
  EXPECT_NE(message.opening, message.prompt);
}

// Law: the opening is tools and the system messages before all others; who asks something else after it has the same.
TEST(PromptKeys, KnowTheOpening) {
  const auto opening = keys_of(chat(kSystem + "," + kHi)).opening;
  EXPECT_NE(opening, 0U);
  EXPECT_EQ(keys_of(chat(kSystem + ", " + kHo + "," + kSystem)).opening, opening);
  EXPECT_NE(keys_of(chat(kSystem + "," + kSystem + "," + kHi)).opening, opening);
  EXPECT_NE(keys_of(chat(kSystem + "," + kHi, R"(,"tools":[])")).opening, opening);
  EXPECT_EQ(keys_of(chat(kHi + "," + kSystem)).opening, 0U);
  EXPECT_EQ(keys_of(chat("")).opening, 0U);
}

std::optional<std::int64_t> limit_in(const std::string& member, GenerationKind kind = GenerationKind::ChatCompletion) {
  return read_generation_body(chat(kHi, "," + member), kind).value().output_limit;
}

// Law: the limit of an answer is the newest member that has one; what is no limit is none.
TEST(OutputLimit, IsReadFromEachApi) {
  EXPECT_EQ(limit_in(R"("max_tokens": 12 )"), 12);
  EXPECT_EQ(limit_in(R"("max_tokens":12,"max_completion_tokens":7)"), 7);
  EXPECT_EQ(limit_in(R"("max_tokens":12,"max_completion_tokens":null)"), 12);
  EXPECT_EQ(limit_in(R"("max_tokens":9)", GenerationKind::Message), 9);
  EXPECT_EQ(read_generation_body(R"({"model":"m","input":"a","max_output_tokens":5})", GenerationKind::Response)
                .value()
                .output_limit,
            5);
  for (const char* none : {"0", "-1", "1.5", "\"7\"", "null", "99999999999999999999"}) {
    EXPECT_EQ(limit_in(std::string{R"("max_tokens":)"} + none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace balanceroute::proxy
