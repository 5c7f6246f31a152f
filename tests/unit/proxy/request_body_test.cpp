// Laws of the request body: what is read is right, what is forbidden is refused, and splices change nothing else.
#include "proxy/request_body.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace balanceroute::proxy {
namespace {

GenerationBody chat(const std::string& body) {
  auto read = read_generation_body(body, GenerationKind::ChatCompletion);
  EXPECT_TRUE(read) << read.error().message << " in " << body;
  return read ? *read : GenerationBody{};
}

GenerationBody text(const std::string& body) {
  auto read = read_generation_body(body, GenerationKind::TextCompletion);
  EXPECT_TRUE(read) << read.error().message << " in " << body;
  return read ? *read : GenerationBody{};
}

std::string refusal(const std::string& body, GenerationKind kind = GenerationKind::TextCompletion) {
  const auto read = read_generation_body(body, kind);
  return read ? "accepted" : read.error().message;
}

std::string with_usage(const std::string& body) {
  const GenerationBody read = chat(body);
  BodyEdit edit{body, read};
  edit.ask_for_usage();
  return std::move(edit).apply();
}

TEST(RequestBody, ReadsWhatTheRouterNeeds) {
  const GenerationBody body =
      chat(R"({"messages":[{"role":"user","content":"hi"}],"model":"m","stream":true,"n":3,"x":{"n":9},)"
           R"("stream_options":{"include_usage":true}})");
  EXPECT_EQ(body.model, "m");
  EXPECT_TRUE(body.stream);
  EXPECT_EQ(body.sequences, 3);
  EXPECT_EQ(body.prompt.of(PromptPart::User), std::string{R"({"role":"user","content":"hi"})"}.size());
  EXPECT_TRUE(body.client_wants_usage());
  EXPECT_FALSE(chat(R"({"model":"m","stream":null,"n":null})").stream);
}

// Law: every shape of prompt gives the number of answers and the size of one prompt.
TEST(RequestBody, CountsEveryShapeOfPrompt) {
  EXPECT_EQ(text(R"({"model":"m","prompt":"12345678"})").prompt.of(PromptPart::Plain), 8u);
  const GenerationBody strings = text(R"({"model":"m","prompt":["1234","12345678"],"best_of":2,"n":1})");
  EXPECT_EQ(strings.sequences, 4);
  EXPECT_EQ(strings.prompt.of(PromptPart::Plain), 6u);
  const GenerationBody ids = text(R"({"model":"m","prompt":[1,2,3]})");
  EXPECT_EQ(ids.sequences, 1);
  EXPECT_EQ(ids.prompt_tokens, 3);
  const GenerationBody lists = text(R"({"model":"m","prompt":[[1,2,3],[4]],"n":2})");
  EXPECT_EQ(lists.sequences, 4);
  EXPECT_EQ(lists.prompt_tokens, 2);
}

TEST(RequestBody, RefusesWhatEnginesCouldReadOtherwise) {
  EXPECT_EQ(refusal("{"), refusal("{"));
  EXPECT_TRUE(refusal("{").starts_with("body is not valid JSON")) << refusal("{");
  EXPECT_TRUE(refusal(R"({"model":"m",})").starts_with("body is not valid JSON"));
  EXPECT_EQ(refusal("[]"), "body is not a JSON object");
  EXPECT_EQ(refusal(R"({"model":"m"} {})"), "body has something after the JSON object");
  EXPECT_EQ(refusal(R"({"stream":true})"), "'model' is missing");
  EXPECT_EQ(refusal(R"({"model":1})"), "'model': expected a string");
  EXPECT_EQ(refusal(R"({"model":"a","model":"b"})"), "'model': expected it once, but the body has it twice");
  EXPECT_EQ(refusal(R"({"model":"a","strea\u006d":true,"stream":false})"),
            "'stream': expected it once, but the body has it twice");
  EXPECT_EQ(refusal(R"({"model":"m","stream":"yes"})"), "'stream': expected true or false");
  EXPECT_EQ(refusal(R"({"model":"m","n":0})"), "'n': expected an integer 1..65536");
  EXPECT_EQ(refusal(R"({"model":"m","n":1.5})"), "'n': expected an integer 1..65536");
  EXPECT_EQ(refusal(R"({"model":"m","prompt":[]})"), "'prompt': expected at least one prompt");
  EXPECT_EQ(refusal(R"({"model":"m","prompt":{}})"), "'prompt': expected a string or an array");
  EXPECT_EQ(refusal(R"({"model":"m","prompt":[1,"a"]})"), "'prompt': expected a list of one kind");
  EXPECT_EQ(refusal(R"({"model":"m","stream_options":1})"), "'stream_options': expected an object");
  for (const char* member : {"kv_transfer_params", "bootstrap_room", "data_parallel_rank", "routed_dp_rank", "rid"}) {
    const std::string name = member;
    EXPECT_EQ(refusal("{\"model\":\"m\",\"" + name + "\":1}"), "'" + name + "' may not be sent by clients");
  }
}

TEST(RequestBody, AskingForUsageChangesOnlyStreamOptions) {
  EXPECT_EQ(with_usage(R"({"model":"m"})"), R"({"model":"m","stream_options":{"include_usage":true}})");
  EXPECT_EQ(with_usage(R"( { "model" : "m" } )"), R"( { "model" : "m" ,"stream_options":{"include_usage":true}} )");
  EXPECT_EQ(with_usage(R"({"stream_options":null,"model":"m"})"),
            R"({"stream_options":{"include_usage":true},"model":"m"})");
  EXPECT_EQ(with_usage(R"({"stream_options": {} ,"model":"m"})"),
            R"({"stream_options": {"include_usage":true} ,"model":"m"})");
  EXPECT_EQ(with_usage(R"({"stream_options":{ "a":1e400 },"model":"m"})"),
            R"({"stream_options":{"include_usage":true, "a":1e400 },"model":"m"})");
  EXPECT_EQ(with_usage(R"({"stream_options":{"include_usage" : false},"model":"m"})"),
            R"({"stream_options":{"include_usage" : true},"model":"m"})");
  EXPECT_EQ(with_usage(R"({"stream_options":{"include_usage":true},"model":"m"})"),
            R"({"stream_options":{"include_usage":true},"model":"m"})");
}

// Law: replacing the model changes only its value, whatever else is in the body.
TEST(RequestBody, ReplacingTheModelLeavesTheRestAlone) {
  const std::string before =
      R"({"a":[1.0,1e5,"\u00e9\"{"],"model" : "alias", "z":{"model":"other"},"big":123456789012345678901})";
  const GenerationBody body = chat(before);
  BodyEdit edit{before, body};
  edit.set(Member::Model, "\"real\"");
  std::string expected = before;
  expected.replace(expected.find("\"alias\""), 7, "\"real\"");
  EXPECT_EQ(std::move(edit).apply(), expected);
}

// Law: asking for usage in a random body gives valid JSON that differs only in stream_options.
TEST(RequestBody, AskingForUsageIsRightOnRandomBodies) {
  std::mt19937_64 random{3};
  for (int round = 0; round < 3000; ++round) {
    nlohmann::ordered_json body;
    for (std::size_t i = random() % 4; i > 0; --i) body["k" + std::to_string(random() % 9)] = random() % 100;
    body["model"] = "m{}\"\\";
    if (random() % 2 == 0) body["messages"] = {{{"role", "user"}, {"content", "}{\"stream_options\":"}}};
    switch (random() % 5) {
      case 0:
        body["stream_options"] = nullptr;
        break;
      case 1:
        body["stream_options"] = nlohmann::ordered_json::object();
        break;
      case 2:
        body["stream_options"]["include_usage"] = random() % 2 == 0;
        break;
      case 3:
        body["stream_options"]["continuous_usage_stats"] = true;
        break;
      default:
        break;
    }
    for (std::size_t i = random() % 3; i > 0; --i) body["z" + std::to_string(random() % 9)] = {{"deep", {1, 2}}};
    const std::string spaced = body.dump(random() % 2 == 0 ? -1 : 2);
    nlohmann::ordered_json after = nlohmann::ordered_json::parse(with_usage(spaced));
    ASSERT_EQ(after["stream_options"]["include_usage"], true);
    body["stream_options"] = after["stream_options"];
    ASSERT_EQ(nlohmann::json(after), nlohmann::json(body));
  }
}

// Law: what would be stored, or was, is refused by name; what stores nothing passes.
TEST(RequestBody, ResponsesKeepNoState) {
  const auto refusal = [](const std::string& members) {
    const auto body = read_generation_body(R"({"model":"m","input":"hi",)" + members + "}", GenerationKind::Response);
    return body ? "" : body.error().param;
  };
  EXPECT_EQ(refusal(R"("store":true)"), "store");
  EXPECT_EQ(refusal(R"("background":true)"), "background");
  EXPECT_EQ(refusal(R"("previous_response_id":"resp_1")"), "previous_response_id");
  EXPECT_EQ(refusal(R"("input":"twice")"), "input");
  EXPECT_EQ(refusal(R"("store":false,"background":null,"previous_response_id":null,"n":"x")"), "");
  EXPECT_TRUE(read_generation_body(R"({"model":"m","prompt":"x","store":true})", GenerationKind::TextCompletion));
}

// Law: a message counts for whoever says it, and an answer is one sequence.
TEST(RequestBody, ResponsesAndMessagesAreOneSequence) {
  const auto response =
      read_generation_body(R"({"model":"m","input":[{"content":"hi"}] ,"n":3})", GenerationKind::Response);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->prompt.of(PromptPart::User), std::string_view{R"({"content":"hi"})"}.size());
  EXPECT_EQ(response->sequences, 1);
  const auto message = read_generation_body(R"({"model":"m","messages":[],"stream":true})", GenerationKind::Message);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->stream);
  EXPECT_EQ(message->prompt.of(PromptPart::User), 0U);
}

// Law: what reaches into an engine is let through from a trusted client, and named, so that who writes it can refuse
// it.
TEST(RequestBody, TrustedClientsReachIntoEngines) {
  const std::string text = R"({"model":"m","prompt":"x","rid":"r","kv_transfer_params":{}})";
  EXPECT_EQ(read_generation_body(text, GenerationKind::TextCompletion).error().param, "rid");
  const auto read = read_generation_body(text, GenerationKind::TextCompletion, Trust::full);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->engine_member, "rid");
  EXPECT_TRUE(read_generation_body(R"({"model":"m","prompt":"x"})", GenerationKind::TextCompletion, Trust::full)
                  ->engine_member.empty());
}

// Law: of a request that generates nothing only the model is read, which may be missing; engines stay out of reach.
TEST(RequestBody, OtherRequestsHaveAModelAtMost) {
  const auto other = [](const std::string& body) { return read_generation_body(body, GenerationKind::Other); };
  EXPECT_EQ(other(R"({"model":"m","prompt":7,"n":"x","stream":1})")->model, "m");
  EXPECT_FALSE(other(R"({"prompt":"x"})")->place(Member::Model));
  EXPECT_FALSE(other(R"({"model":"m","kv_transfer_params":{}})"));
  EXPECT_FALSE(other(R"({"model":"m","model":"k"})"));
}

}  // namespace
}  // namespace balanceroute::proxy
