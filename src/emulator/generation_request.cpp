#include "emulator/generation_request.hpp"

#include <simdjson.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/request.hpp"

namespace balanceroute::emulator {
namespace {

namespace dom = simdjson::dom;

constexpr std::int64_t kMostAnswers = 16'384;  // vLLM's VLLM_MAX_N_SEQUENCES
constexpr std::size_t kBytesPerToken = 4;

std::unexpected<ApiError> refuse(std::string message, std::string param) {
  return std::unexpected{ApiError{.message = std::move(message), .param = std::move(param)}};
}

Tokens tokens_of_text(std::size_t bytes) {
  return Tokens{static_cast<std::int64_t>(std::max<std::size_t>(1, (bytes + kBytesPerToken - 1) / kBytesPerToken))};
}

// Reads members of one object and remembers the first that is not what it should be.
class Members {
 public:
  Members(dom::object object, std::string prefix) : object_{object}, prefix_{std::move(prefix)} {}

  // Nothing for a member that is missing or null.
  std::optional<dom::element> find(std::string_view name) const {
    dom::element value;
    if (object_.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) {
    const auto member = find(name);
    if (!member) return std::nullopt;
    std::int64_t value = 0;
    if (member->get_int64().get(value) != simdjson::SUCCESS || value < low || value > high) {
      fault(name, *member, "an integer " + std::to_string(low) + ".." + std::to_string(high));
      return std::nullopt;
    }
    return value;
  }

  std::optional<Tokens> tokens(std::string_view name, std::int64_t low = 1) {
    const auto count = integer(name, low, kMaxTokens.count());
    return count ? std::optional{Tokens{*count}} : std::nullopt;
  }

  bool flag(std::string_view name) {
    const auto member = find(name);
    bool value = false;
    if (member && member->get_bool().get(value) != simdjson::SUCCESS) fault(name, *member, "true or false");
    return value;
  }

  std::string text(std::string_view name) {
    const auto member = find(name);
    std::string_view value;
    if (member && member->get_string().get(value) != simdjson::SUCCESS) fault(name, *member, "a string");
    return std::string{value};
  }

  std::optional<Members> object(std::string_view name) {
    const auto member = find(name);
    if (!member) return std::nullopt;
    dom::object value;
    if (member->get_object().get(value) != simdjson::SUCCESS) {
      fault(name, *member, "an object");
      return std::nullopt;
    }
    return Members{value, prefix_ + std::string{name} + "."};
  }

  void fault(std::string_view name, dom::element value, const std::string& expected) {
    constexpr std::size_t kShownBytes = 60;
    if (error_) return;
    const auto path = prefix_ + std::string{name};
    error_ =
        ApiError{.message = path + " = " + simdjson::minify(value).substr(0, kShownBytes) + ": expected " + expected,
                 .param = path};
  }
  void take_fault_of(const Members& inner) {
    if (!error_) error_ = inner.error_;
  }
  const std::optional<ApiError>& error() const { return error_; }

 private:
  dom::object object_;
  std::string prefix_;
  std::optional<ApiError> error_;
};

// Bytes of text in a message: its content is a string, or parts of which some have text.
std::size_t content_bytes(dom::element content) {
  std::string_view text;
  if (content.get_string().get(text) == simdjson::SUCCESS) return text.size();
  dom::array parts;
  if (content.get_array().get(parts) != simdjson::SUCCESS) return 0;
  std::size_t bytes = 0;
  for (const auto part : parts) {
    if (part["text"].get_string().get(text) == simdjson::SUCCESS) bytes += text.size();
  }
  return bytes;
}

std::expected<std::vector<Tokens>, ApiError> chat_prompt(const Members& body) {
  const auto member = body.find("messages");
  dom::array messages;
  if (!member || member->get_array().get(messages) != simdjson::SUCCESS || messages.size() == 0) {
    return refuse("messages: expected a list of at least one message", "messages");
  }
  std::size_t bytes = 0;
  for (const auto message : messages) {
    dom::element content;
    if (message["content"].get(content) == simdjson::SUCCESS) bytes += content_bytes(content);
  }
  return std::vector{tokens_of_text(bytes)};
}

// Length of one entry of a list of prompts: a text or a list of token ids.
std::optional<Tokens> prompt_length(dom::element prompt) {
  std::string_view text;
  if (prompt.get_string().get(text) == simdjson::SUCCESS) return tokens_of_text(text.size());
  dom::array ids;
  if (prompt.get_array().get(ids) != simdjson::SUCCESS || ids.size() == 0) return std::nullopt;
  std::int64_t count = 0;
  for (const auto id : ids) {
    if (!id.is_int64()) return std::nullopt;
    ++count;  // size() of an array saturates at 2^24
  }
  return Tokens{count};
}

// A text, a list of token ids, or a list of several of either.
std::expected<std::vector<Tokens>, ApiError> completion_prompts(const Members& body) {
  const auto member = body.find("prompt");
  if (!member) return refuse("prompt: expected a text or a list", "prompt");
  if (const auto single = prompt_length(*member)) return std::vector{*single};
  std::vector<Tokens> prompts;
  dom::array list;
  if (member->get_array().get(list) == simdjson::SUCCESS) {
    for (const auto entry : list) {
      const auto length = prompt_length(entry);
      if (!length) return refuse("prompt: expected texts or lists of token ids, none of them empty", "prompt");
      prompts.push_back(*length);
    }
  }
  if (prompts.empty()) return refuse("prompt: expected a text or a list that is not empty", "prompt");
  return prompts;
}

void read_stream_options(Members& body, GenerationRequest& request) {
  auto options = body.object("stream_options");
  if (!options) return;
  request.include_usage = options->flag("include_usage");
  request.continuous_usage = request.include_usage && options->flag("continuous_usage_stats");
  body.take_fault_of(*options);
}

void read_own_member(Members& body, GenerationRequest& request) {
  auto own = body.object("emulator");
  if (!own) return;
  if (const auto prompt = own->tokens("prompt_tokens")) std::ranges::fill(request.prompts, *prompt);
  request.output = own->tokens("output_tokens");
  request.age = own->tokens("age", 0).value_or(Tokens{0});
  body.take_fault_of(*own);
}

// What pairs of members must not be.
std::optional<ApiError> contradiction(const GenerationRequest& request, const Members& body) {
  if (!request.stream && body.find("stream_options")) {
    return ApiError{.message = "Stream options can only be defined when `stream=True`.", .param = "stream_options"};
  }
  if (std::ssize(request.prompts) * request.answers_per_prompt > kMostAnswers) {
    return ApiError{.message = "n times prompts: expected at most " + std::to_string(kMostAnswers) + " answers",
                    .param = "n"};
  }
  if (request.age > Tokens{0} && (!request.output || request.age >= *request.output)) {
    return ApiError{.message = "emulator.age = " + std::to_string(request.age.count()) +
                               ": expected less than emulator.output_tokens",
                    .param = "emulator.age"};
  }
  return std::nullopt;
}

}  // namespace

std::string to_json(const ApiError& error) {
  nlohmann::ordered_json param;
  if (!error.param.empty()) param = error.param;
  return nlohmann::ordered_json{
      {"error", {{"message", error.message}, {"type", error.type}, {"param", param}, {"code", error.status}}}}
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::expected<GenerationRequest, ApiError> parse_generation_request(Api api, std::string_view text) {
  dom::parser parser;
  dom::object object;
  if (parser.parse(text.data(), text.size()).get_object().get(object) != simdjson::SUCCESS) {
    return refuse("body: expected a JSON object", "");
  }
  Members body{object, ""};
  auto prompts = api == Api::chat ? chat_prompt(body) : completion_prompts(body);
  if (!prompts) return std::unexpected{prompts.error()};
  GenerationRequest request;
  request.api = api;
  request.prompts = *std::move(prompts);
  request.model = body.text("model");
  request.answers_per_prompt = body.integer("n", 1, kMostAnswers).value_or(1);
  request.limit = body.tokens("max_tokens");
  if (const auto limit = body.tokens("max_completion_tokens")) request.limit = limit;
  request.stream = body.flag("stream");
  read_stream_options(body, request);
  read_own_member(body, request);
  if (body.error()) return std::unexpected{*body.error()};
  if (auto problem = contradiction(request, body)) return std::unexpected{*std::move(problem)};
  return request;
}

}  // namespace balanceroute::emulator
