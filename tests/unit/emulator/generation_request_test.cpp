// Laws of reading OpenAI requests: which members count, how prompts are measured, what is refused.
#include "emulator/generation_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace balanceroute::emulator {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

auto tokens(std::int64_t count) {
  return Field(&Prompt::tokens, Tokens{count});
}

GenerationRequest accepted(Api api, std::string_view body) {
  const auto request = parse_generation_request(api, body);
  EXPECT_TRUE(request) << request.error().message;
  return request.value_or(GenerationRequest{});
}

std::string refusal(Api api, std::string_view body) {
  const auto request = parse_generation_request(api, body);
  return request ? "accepted" : request.error().message;
}

TEST(GenerationRequest, ReadsWhatCounts) {
  const auto request = accepted(Api::chat, R"({"model": "m", "messages": [{"role": "user", "content": "12345678"}],
      "n": 2, "max_tokens": 9, "stream": true, "temperature": 0.5, "unknown": {"x": [1]},
      "stream_options": {"include_usage": true, "continuous_usage_stats": true}})");
  EXPECT_EQ(request.model, "m");
  EXPECT_THAT(request.prompts, ElementsAre(tokens(2)));
  EXPECT_EQ(request.answers_per_prompt, 2);
  EXPECT_EQ(request.limit, Tokens{9});
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.continuous_usage);
}

TEST(GenerationRequest, LeavesOutWhatIsMissingOrNull) {
  const auto request =
      accepted(Api::completions, R"({"prompt": "x", "model": null, "n": null, "max_tokens": null, "stream": null})");
  EXPECT_EQ(request.model, "");
  EXPECT_EQ(request.answers_per_prompt, 1);
  EXPECT_FALSE(request.limit);
  EXPECT_FALSE(request.output);
  EXPECT_FALSE(request.stream);
}

// Law: token ids count exactly; text counts a token for each 4 bytes begun, and never none.
TEST(GenerationRequest, MeasuresPrompts) {
  EXPECT_THAT(accepted(Api::completions, R"({"prompt": [5, 6, 7]})").prompts, ElementsAre(tokens(3)));
  EXPECT_THAT(accepted(Api::completions, R"({"prompt": [[5, 6, 7], [8]]})").prompts, ElementsAre(tokens(3), tokens(1)));
  EXPECT_THAT(accepted(Api::completions, R"({"prompt": ["12345", ""]})").prompts, ElementsAre(tokens(2), tokens(1)));
  EXPECT_THAT(accepted(Api::chat, R"({"messages": [{"content": "1234"}, {"role": "assistant"},
      {"content": [{"type": "text", "text": "5678"}, {"type": "image_url", "image_url": {"url": "x"}}]}]})")
                  .prompts,
              ElementsAre(tokens(2)));
}

// Law: max_completion_tokens is the newer name and wins.
TEST(GenerationRequest, NewerLimitWins) {
  EXPECT_EQ(accepted(Api::completions, R"({"prompt": "x", "max_completion_tokens": 5, "max_tokens": 9})").limit,
            Tokens{5});
}

// Law: the emulator's own member overrules every prompt and states answer and age.
TEST(GenerationRequest, OwnMemberStatesLengths) {
  const auto request =
      accepted(Api::completions,
               R"({"prompt": ["a", "b"], "emulator": {"prompt_tokens": 1200, "output_tokens": 80, "age": 25}})");
  EXPECT_THAT(request.prompts, ElementsAre(tokens(1200), tokens(1200)));
  EXPECT_EQ(request.output, Tokens{80});
  EXPECT_EQ(request.age, Tokens{25});
}

TEST(GenerationRequest, RefusesWithTheMemberTheValueAndWhatWasExpected) {
  const auto text = [](std::string_view members) {
    return refusal(Api::completions, R"({"prompt": "x", )" + std::string{members} + "}");
  };
  EXPECT_EQ(refusal(Api::chat, "{"), "body: expected a JSON object");
  EXPECT_EQ(refusal(Api::chat, "[]"), "body: expected a JSON object");
  EXPECT_EQ(refusal(Api::chat, "{}"), "messages: expected a list of at least one message");
  EXPECT_EQ(refusal(Api::chat, R"({"messages": []})"), "messages: expected a list of at least one message");
  EXPECT_THAT(refusal(Api::completions, "{}"), HasSubstr("prompt: expected"));
  EXPECT_THAT(refusal(Api::completions, R"({"prompt": []})"), HasSubstr("prompt: expected"));
  EXPECT_THAT(refusal(Api::completions, R"({"prompt": [[1], []]})"), HasSubstr("none of them empty"));
  EXPECT_EQ(text(R"("max_tokens": 0)"), "max_tokens = 0: expected an integer 1..2147483648");
  EXPECT_EQ(text(R"("max_tokens": "9")"), R"(max_tokens = "9": expected an integer 1..2147483648)");
  EXPECT_EQ(text(R"("n": 16385)"), "n = 16385: expected an integer 1..16384");
  EXPECT_EQ(text(R"("stream": 1)"), "stream = 1: expected true or false");
  EXPECT_EQ(text(R"("model": 1)"), "model = 1: expected a string");
  EXPECT_EQ(text(R"("emulator": 1)"), "emulator = 1: expected an object");
  EXPECT_EQ(text(R"("emulator": {"output_tokens": -4})"),
            "emulator.output_tokens = -4: expected an integer 1..2147483648");
  EXPECT_EQ(text(R"("emulator": {"output_tokens": 4, "age": 4})"),
            "emulator.age = 4: expected less than emulator.output_tokens");
  EXPECT_THAT(text(R"("emulator": {"age": 4})"), HasSubstr("emulator.age = 4"));
  EXPECT_EQ(text(R"("stream_options": {"include_usage": true})"),
            "Stream options can only be defined when `stream=True`.");
  EXPECT_THAT(refusal(Api::completions, R"({"prompt": ["x", "y"], "n": 16000})"), HasSubstr("at most 16384 answers"));
}

// Law: a transfer object is kept byte by byte, whatever is in it and however it is spelled.
TEST(GenerationRequest, KeepsTransferObjectsAsTheyAre) {
  const std::string object = R"({ "remote_block_ids":[[1 , 2]],"x":18446744073709551557, "e":1.0e0 ,"s":"\u0041}" })";
  const auto request = accepted(Api::completions, R"({"kv_transfer_params" : )" + object + R"( , "prompt": "x"})");
  EXPECT_EQ(request.transfer.kv_transfer_params, object);
  EXPECT_FALSE(request.transfer.batch_kv_transfer_params);
  EXPECT_EQ(refusal(Api::completions, R"({"prompt": "x", "kv_transfer_params": 5})"),
            "kv_transfer_params = 5: expected an object");
}

// Law: the members of a room are one for each prompt, alone or in lists; a port may be null.
TEST(GenerationRequest, ReadsRooms) {
  const auto one = accepted(Api::chat, R"({"messages": [{"content": "x"}], "bootstrap_host": "h",
      "bootstrap_port": null, "bootstrap_room": 9223372036854775807, "data_parallel_rank": 1})");
  EXPECT_THAT(one.transfer.bootstrap_hosts, ElementsAre("h"));
  EXPECT_THAT(one.transfer.bootstrap_ports, ElementsAre(std::nullopt));
  EXPECT_THAT(one.transfer.bootstrap_rooms, ElementsAre(9223372036854775807));
  EXPECT_EQ(one.transfer.routed_dp_rank, 1);
  const auto two = accepted(Api::completions, R"({"prompt": ["x", "y"], "bootstrap_host": ["h", "i"],
      "bootstrap_port": [1, null], "bootstrap_room": [3, 4], "data_parallel_rank": 1, "routed_dp_rank": 2})");
  EXPECT_THAT(two.transfer.bootstrap_hosts, ElementsAre("h", "i"));
  EXPECT_THAT(two.transfer.bootstrap_ports, ElementsAre(1, std::nullopt));
  EXPECT_THAT(two.transfer.bootstrap_rooms, ElementsAre(3, 4));
  EXPECT_EQ(two.transfer.routed_dp_rank, 2);
  EXPECT_THAT(refusal(Api::completions, R"({"prompt": "x", "bootstrap_room": -1})"), HasSubstr("bootstrap_room = -1"));
}

// Law: a prompt that ends in the engine's own tokens says how many of the answer there are.
TEST(GenerationRequest, RecognisesABegunAnswer) {
  const auto answered = [](Api api, std::string_view body) { return accepted(api, body).prompts.front().answered; };
  EXPECT_EQ(answered(Api::completions, R"({"prompt": "x t1 t2 t17"})"), Tokens{17});
  EXPECT_EQ(answered(Api::completions, R"({"prompt": "x at17"})"), Tokens{0});
  EXPECT_EQ(answered(Api::completions, R"({"prompt": "17"})"), Tokens{0});
  EXPECT_EQ(answered(Api::completions, R"({"prompt": [5, 6, 1000001, 1000002]})"), Tokens{2});
  EXPECT_EQ(answered(Api::completions, R"({"prompt": [5, 6]})"), Tokens{0});
  constexpr std::string_view kBegun = R"("messages": [{"role": "user", "content": "x"},
      {"role": "assistant", "content": " t1 t2"}])";
  EXPECT_EQ(answered(Api::chat, "{" + std::string{kBegun} + R"(, "continue_final_message": true})"), Tokens{2});
  EXPECT_EQ(answered(Api::chat, "{" + std::string{kBegun} + "}"), Tokens{0});
}

// Law: ids of prompts are kept for those who want them back only.
TEST(GenerationRequest, KeepsIdsOnRequest) {
  EXPECT_THAT(accepted(Api::completions, R"({"prompt": [5, 6], "return_token_ids": true})").prompts.front().ids,
              ElementsAre(5, 6));
  EXPECT_THAT(accepted(Api::completions, R"({"prompt": [5, 6]})").prompts.front().ids, IsEmpty());
}

// Law: an answer calls a function when the request forces it to.
TEST(GenerationRequest, ReadsForcedCalls) {
  const auto call = [](std::string_view choice) {
    const auto request = accepted(Api::chat, R"({"messages": [{"content": "x"}],
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": )" +
                                                 std::string{choice} + "}");
    return std::pair{request.tool, request.tool_named};
  };
  EXPECT_EQ(call(R"("auto")"), std::pair(std::string{}, false));
  EXPECT_EQ(call(R"("required")"), std::pair(std::string{"f"}, false));
  EXPECT_EQ(call(R"({"type": "function", "function": {"name": "g"}})"), std::pair(std::string{"g"}, true));
}

TEST(GenerationRequest, ErrorsHaveTheShapeOfTheEngine) {
  EXPECT_EQ(to_json({.status = 404, .type = "NotFoundError", .message = "no \"x\"", .param = "model"}),
            R"({"error":{"message":"no \"x\"","type":"NotFoundError","param":"model","code":404}})");
  EXPECT_EQ(to_json({.message = "bad \xff"}),
            "{\"error\":{\"message\":\"bad \xef\xbf\xbd\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}");
}

}  // namespace
}  // namespace balanceroute::emulator
