// The APIs beside chats and text completions: responses and messages, streamed and not, and usage details.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenario/emulator/fleet_fixture.hpp"

namespace balanceroute::emulator {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class ApisTest : public FleetFixture {
 protected:
  void SetUp() override { start(quick()); }

  Reply respond(const std::string& members) const {
    return post(port(), "/v1/responses", R"({"model": "emulated", "input": "hello")" + members + "}");
  }
  Reply message(const std::string& members) const {
    return post(port(), "/v1/messages",
                R"({"model": "emulated", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}])" +
                    members + "}");
  }

  // The data of a stream's events, each of which must bear the name of its type.
  static std::vector<json> events(const Reply& reply) {
    std::vector<json> all;
    const std::string text = testing_support::body_of(reply.raw);
    for (auto at = text.find("event: "); at != std::string::npos; at = text.find("event: ", at + 1)) {
      const auto data = text.find("\ndata: ", at);
      all.push_back(json::parse(text.substr(data + 7, text.find("\n\n", data) - data - 7)));
      EXPECT_EQ(all.back()["type"], text.substr(at + 7, data - at - 7));
    }
    return all;
  }
  static std::vector<std::string> types(const std::vector<json>& all) {
    std::vector<std::string> names;
    for (const auto& event : all) names.push_back(event["type"]);
    return names;
  }
};

constexpr const char* kThinks = R"(, "emulator": {"prompt_tokens": 9, "output_tokens": 3, "reasoning_tokens": 1})";

TEST_F(ApisTest, RespondsWhole) {
  const auto answer = respond(kThinks).json();
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["status"], "completed");
  ASSERT_EQ(answer["output"].size(), 2U);
  EXPECT_EQ(answer["output"][0]["content"][0]["text"], " t1");
  EXPECT_EQ(answer["output"][1]["content"][0]["text"], " t2 t3");
  EXPECT_EQ(answer["usage"]["input_tokens"], 9);
  EXPECT_EQ(answer["usage"]["output_tokens"], 3);
  EXPECT_EQ(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 1);
  const auto cut = respond(R"(, "max_output_tokens": 2, "emulator": {"output_tokens": 9})").json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

// Law: events are numbered from 0; every item is opened, told and closed; the last event holds the whole answer.
TEST_F(ApisTest, StreamsResponses) {
  const auto all = events(respond(R"(, "stream": true)" + std::string{kThinks}));
  EXPECT_THAT(types(all),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.delta",
                          "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
                          "response.output_item.added", "response.content_part.added", "response.output_text.delta",
                          "response.output_text.delta", "response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.completed"));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]["sequence_number"], i);
  EXPECT_EQ(all[12]["text"], " t2 t3");
  const auto& last = all.back()["response"];
  EXPECT_EQ(last["output"][1]["content"][0]["text"], " t2 t3");
  EXPECT_EQ(last["usage"]["output_tokens"], 3);
}

TEST_F(ApisTest, ResponsesCallFunctions) {
  const std::string tool = R"(, "tools": [{"type": "function", "name": "f"}], "tool_choice": "required",
                               "emulator": {"output_tokens": 2})";
  const auto call = respond(tool).json()["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "f");
  EXPECT_EQ(call["arguments"], R"({"text":" t1 t2"})");
  const auto all = events(respond(tool + R"(, "stream": true)"));
  std::string arguments;
  for (const auto& event : all) {
    if (event["type"] == "response.function_call_arguments.delta") arguments += event["delta"];
  }
  EXPECT_EQ(arguments, R"({"text":" t1 t2"})");
}

// Law: nothing is stored, so nothing is found.
TEST_F(ApisTest, ResponsesKeepNoState) {
  EXPECT_EQ(respond(R"(, "previous_response_id": "resp_1")").status(), 404);
  EXPECT_EQ(respond(R"(, "background": true)").status(), 400);
  EXPECT_EQ(get(port(), "/v1/responses/resp_1").status(), 404);
}

TEST_F(ApisTest, AnswersMessagesWhole) {
  const auto answer = message(kThinks).json();
  EXPECT_EQ(answer["type"], "message");
  EXPECT_EQ(answer["stop_reason"], "end_turn");
  EXPECT_EQ(answer["content"][0]["thinking"], " t1");
  EXPECT_EQ(answer["content"][1]["text"], " t2 t3");
  EXPECT_EQ(answer["usage"]["input_tokens"], 9);
  EXPECT_EQ(answer["usage"]["output_tokens"], 3);
  EXPECT_EQ(message(R"(, "emulator": {"output_tokens": 99})").json()["stop_reason"], "max_tokens");
}

TEST_F(ApisTest, StreamsMessages) {
  const auto all = events(message(R"(, "stream": true)" + std::string{kThinks}));
  EXPECT_THAT(types(all),
              ElementsAre("message_start", "content_block_start", "content_block_delta", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_delta", "content_block_delta",
                          "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(all[0]["message"]["usage"]["input_tokens"], 9);
  EXPECT_EQ(all[2]["delta"]["thinking"], " t1");
  EXPECT_EQ(all[5]["index"], 1);
  EXPECT_EQ(all[7]["delta"]["text"], " t3");
  EXPECT_EQ(all[9]["delta"]["stop_reason"], "end_turn");
  EXPECT_EQ(all[9]["usage"]["output_tokens"], 3);
}

TEST_F(ApisTest, MessagesUseTools) {
  const std::string tool = R"(, "tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"},
                               "emulator": {"output_tokens": 2})";
  const auto answer = message(tool).json();
  EXPECT_EQ(answer["stop_reason"], "tool_use");
  EXPECT_EQ(answer["content"][0]["name"], "f");
  EXPECT_EQ(answer["content"][0]["input"]["text"], " t1 t2");
  std::string input;
  for (const auto& event : events(message(tool + R"(, "stream": true)"))) {
    if (event["type"] == "content_block_delta") input += event["delta"]["partial_json"];
  }
  EXPECT_EQ(input, R"({"text":" t1 t2"})");
}

// Law: errors of messages have the shape of that API, those on demand too, and in mid-stream they are an event.
TEST_F(ApisTest, MessagesFailInTheirOwnShape) {
  const auto refused = post(port(), "/v1/messages", R"({"messages": [{"role": "user", "content": "x"}]})");
  EXPECT_EQ(refused.status(), 400);
  EXPECT_EQ(refused.json()["type"], "error");
  EXPECT_THAT(refused.error(), HasSubstr("max_tokens"));
  const std::string body = R"({"max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "x"}]})";
  EXPECT_EQ(post(port(), "/v1/messages", body, "X-Emulator-Fault: status:503\r\n").json()["type"], "error");
  const auto all = events(post(port(), "/v1/messages", body, "X-Emulator-Fault: kv_loss:2\r\n"));
  EXPECT_EQ(all.back()["type"], "error");
  EXPECT_EQ(all.back()["error"]["type"], "InternalServerError");
}

// Law: cached tokens are told where the request says that there are some, and are not computed.
TEST_F(ApisTest, CachedTokensAreToldAndNotComputed) {
  const auto usage =
      complete(port(),
               R"({"prompt": "x", "emulator": {"prompt_tokens": 100, "cached_tokens": 60, "output_tokens": 1}})")
          .json()["usage"];
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 60);
  EXPECT_FALSE(
      complete(port(), R"({"prompt": "x", "max_tokens": 1})").json()["usage"].contains("prompt_tokens_details"));
  const auto of_responses =
      respond(R"(, "emulator": {"prompt_tokens": 100, "cached_tokens": 200, "output_tokens": 1})").json()["usage"];
  EXPECT_EQ(of_responses["input_tokens_details"]["cached_tokens"], 99);  // the last one is always computed
}

TEST_F(ApisTest, SideAnswersAreRoutes) {
  EXPECT_EQ(post(port(), "/v1/embeddings", R"({"input": "x"})").status(), 200);
  EXPECT_EQ(post(port(), "/tokenize", R"({"prompt": "hello"})").json()["count"], 2);
  EXPECT_EQ(get(port(), "/rerank").status(), 405);
  EXPECT_EQ(post(port(), "/classify", R"({"model": "other", "input": "x"})").status(), 404);
}

}  // namespace
}  // namespace balanceroute::emulator
