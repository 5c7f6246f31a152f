// body_fuzz.cpp - what the body reader accepts is edited rightly: nothing but what a leg wants differs after.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "proxy/dialects/dialect.hpp"
#include "proxy/request_body.hpp"
#include "require.hpp"

using namespace balanceroute::proxy;

namespace {

// The reader leaves the validity of what it does not read to the engine, so only valid bodies are compared.
void check_edits(std::string_view body, const GenerationBody& read) {
  for (const auto* parts : {&read.prompt_parts, &read.opening_parts}) {
    for (const Span& part : *parts) require(part.length > 0 && part.offset + part.length <= body.size());
  }
  const nlohmann::json before = nlohmann::json::parse(body, nullptr, false);
  BodyEdit usage{body, read};
  usage.ask_for_usage(true);
  usage.set(Member::Model, "\"other\"");
  const nlohmann::json asked = nlohmann::json::parse(std::move(usage).apply(), nullptr, false);
  BodyEdit one_token{body, read};
  const FirstToken first = body.size() % 2 == 0 ? FirstToken::MayBeLast : FirstToken::IsNotLast;
  ask_for_one_token(one_token, first);
  const nlohmann::json prefill = nlohmann::json::parse(std::move(one_token).apply(), nullptr, false);
  if (before.is_discarded()) return;

  require(!asked.is_discarded());
  nlohmann::json expected = before;
  expected["model"] = "other";
  expected["stream_options"] = asked["stream_options"];
  require(asked["stream_options"]["include_usage"] == true);
  require(asked["stream_options"]["continuous_usage_stats"] == true);
  require(expected == asked);

  require(!prefill.is_discarded());
  expected = before;
  for (const char* name : {"stream_options", "min_tokens", "min_completion_tokens"}) expected.erase(name);
  for (const char* name : {"max_completion_tokens", "n", "best_of"}) {
    if (before.contains(name)) expected[name] = 1;
  }
  if (before.contains("stream")) expected["stream"] = false;
  expected["max_tokens"] = 1;
  if (first == FirstToken::IsNotLast) expected["min_tokens"] = 1;
  require(expected == prefill);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body{reinterpret_cast<const char*>(data), size};
  for (const GenerationKind kind : {GenerationKind::ChatCompletion, GenerationKind::TextCompletion}) {
    const auto read = read_generation_body(body, kind);
    if (read) {
      check_edits(body, *read);
    } else {
      require(!read.error().message.empty());
    }
  }
  return 0;
}
