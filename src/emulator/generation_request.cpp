#include "emulator/generation_request.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/request.hpp"

namespace balanceroute::emulator {
namespace {

namespace dom = simdjson::dom;

constexpr std::int64_t kMostAnswers = 16'384;  // vLLM's VLLM_MAX_N_SEQUENCES
constexpr std::string_view kNumberedToken = " t";

std::unexpected<ApiError> refuse(std::string message, std::string param) {
  return std::unexpected{ApiError{.message = std::move(message), .param = std::move(param)}};
}

// Of a text that ends in " t17": 17.
Tokens answered_at_end_of(std::string_view text) {
  const auto digits = text.find_last_not_of("0123456789") + 1;
  if (digits == text.size() || !text.substr(0, digits).ends_with(kNumberedToken)) return Tokens{0};
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data() + digits, text.data() + text.size(), number);
  return read.ec == std::errc{} && number <= kMaxTokens.count() ? Tokens{number} : Tokens{0};
}

Prompt prompt_of_text(std::string_view text) {
  return {.tokens = tokens_of_text(text.size()), .answered = answered_at_end_of(text), .ids = {}};
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

  // The bytes of an object, as `body` has them.
  std::optional<std::string> object_text(std::string_view name, std::string_view body) {
    const auto member = find(name);
    if (!member) return std::nullopt;
    if (!member->is_object()) {
      fault(name, *member, "an object");
      return std::nullopt;
    }
    const simdjson::padded_string padded{body};
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    std::string_view text;
    if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
        document.find_field_unordered(name).get_object().get(object) != simdjson::SUCCESS ||
        object.raw_json().get(text) != simdjson::SUCCESS) {
      return std::nullopt;
    }
    const auto last = text.find_last_of('}');
    return std::string{text.substr(0, last + 1)};
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

// Of the answer that the last message has begun.
Tokens answered_by(dom::element last_message) {
  std::string_view role;
  std::string_view content;
  if (last_message["role"].get_string().get(role) != simdjson::SUCCESS || role != "assistant") return Tokens{0};
  if (last_message["content"].get_string().get(content) != simdjson::SUCCESS) return Tokens{0};
  return answered_at_end_of(content);
}

std::expected<std::vector<Prompt>, ApiError> chat_prompt(Members& body) {
  const auto member = body.find("messages");
  dom::array messages;
  if (!member || member->get_array().get(messages) != simdjson::SUCCESS || messages.size() == 0) {
    return refuse("messages: expected a list of at least one message", "messages");
  }
  std::size_t bytes = 0;
  Prompt prompt;
  const bool goes_on = body.flag("continue_final_message");
  for (const auto message : messages) {
    dom::element content;
    if (message["content"].get(content) == simdjson::SUCCESS) bytes += content_bytes(content);
    prompt.answered = goes_on ? answered_by(message) : Tokens{0};
  }
  prompt.tokens = tokens_of_text(bytes);
  return std::vector{prompt};
}

// Of a member that is a text, or a list of parts or items with text.
std::size_t text_bytes(const Members& body, std::string_view name) {
  const auto member = body.find(name);
  return member ? content_bytes(*member) : 0;
}

// A text, or items of which some have content.
std::expected<std::vector<Prompt>, ApiError> responses_prompt(const Members& body) {
  const auto input = body.find("input");
  if (!input || (!input->is_string() && !input->is_array())) {
    return refuse("input: expected a text or a list of items", "input");
  }
  std::size_t bytes = text_bytes(body, "instructions") + content_bytes(*input);
  dom::array items;
  if (input->get_array().get(items) == simdjson::SUCCESS) {
    for (const auto item : items) {
      dom::element content;
      if (item["content"].get(content) == simdjson::SUCCESS) bytes += content_bytes(content);
    }
  }
  return std::vector{Prompt{.tokens = tokens_of_text(bytes), .ids = {}}};
}

std::expected<std::vector<Prompt>, ApiError> messages_prompt(Members& body) {
  if (!body.find("max_tokens")) return refuse("max_tokens: expected an integer, it is missing", "max_tokens");
  auto prompts = chat_prompt(body);
  if (prompts && body.find("system")) prompts->front().tokens += tokens_of_text(text_bytes(body, "system"));
  return prompts;
}

// One entry of a list of prompts: a text or a list of token ids.
std::optional<Prompt> one_prompt(dom::element entry) {
  std::string_view text;
  if (entry.get_string().get(text) == simdjson::SUCCESS) return prompt_of_text(text);
  dom::array ids;
  if (entry.get_array().get(ids) != simdjson::SUCCESS || ids.size() == 0) return std::nullopt;
  Prompt prompt;
  for (const auto entry_id : ids) {
    std::int64_t id = 0;
    if (entry_id.get_int64().get(id) != simdjson::SUCCESS) return std::nullopt;
    prompt.ids.push_back(id);
  }
  prompt.tokens = Tokens{std::ssize(prompt.ids)};
  const auto number = prompt.ids.back() - kFirstTokenId;
  if (number > 0 && number <= kMaxTokens.count()) prompt.answered = Tokens{number};
  return prompt;
}

// A text, a list of token ids, or a list of several of either.
std::expected<std::vector<Prompt>, ApiError> completion_prompts(const Members& body) {
  const auto member = body.find("prompt");
  if (!member) return refuse("prompt: expected a text or a list", "prompt");
  if (auto single = one_prompt(*member)) return std::vector{*std::move(single)};
  std::vector<Prompt> prompts;
  dom::array list;
  if (member->get_array().get(list) == simdjson::SUCCESS) {
    for (const auto entry : list) {
      auto prompt = one_prompt(entry);
      if (!prompt) return refuse("prompt: expected texts or lists of token ids, none of them empty", "prompt");
      prompts.push_back(*std::move(prompt));
    }
  }
  if (prompts.empty()) return refuse("prompt: expected a text or a list that is not empty", "prompt");
  return prompts;
}

void read_stream_options(Members& body, GenerationRequest& request) {
  auto options = body.object("stream_options");
  if (!options) return;
  request.stream_options = true;
  request.include_usage = options->flag("include_usage");
  request.continuous_usage = request.include_usage && options->flag("continuous_usage_stats");
  body.take_fault_of(*options);
}

void read_own_member(Members& body, GenerationRequest& request) {
  auto own = body.object("emulator");
  if (!own) return;
  if (const auto tokens = own->tokens("prompt_tokens")) {
    for (Prompt& prompt : request.prompts) prompt.tokens = std::min(*tokens + prompt.answered, kMaxTokens);
  }
  request.output = own->tokens("output_tokens");
  request.age = own->tokens("age", 0).value_or(Tokens{0});
  request.reasoning = own->tokens("reasoning_tokens", 0).value_or(Tokens{0});
  request.cached = own->tokens("cached_tokens", 0);
  body.take_fault_of(*own);
}

// Completions say how many alternatives they want, chats whether they want any.
bool wants_logprobs(Members& body) {
  const auto member = body.find("logprobs");
  bool wanted = false;
  if (member && member->get_bool().get(wanted) == simdjson::SUCCESS) return wanted;
  return body.integer("logprobs", 0, 1'000'000).has_value();
}

// The name of a function, given as {"type": "function", "function": {"name": ...}}; responses and messages have the
// name in the outer object.
std::string function_name(dom::element tool) {
  std::string_view name;
  if (tool["function"]["name"].get_string().get(name) == simdjson::SUCCESS) return std::string{name};
  if (tool["name"].get_string().get(name) == simdjson::SUCCESS) return std::string{name};
  return "";
}

// A call is made when tool_choice names a function, or says "required" (in messages an object of type "any"): then of
// the first tool.
void read_tools(Members& body, GenerationRequest& request) {
  const auto choice = body.find("tool_choice");
  if (!choice) return;
  std::string_view word;
  std::string_view type;
  if (choice->get_string().get(word) != simdjson::SUCCESS) {
    request.tool = function_name(*choice);
    request.tool_named = !request.tool.empty();
    if ((*choice)["type"].get_string().get(type) == simdjson::SUCCESS && type == "any") word = "required";
  }
  const auto tools = body.find("tools");
  if (word == "required" && tools) request.tool = function_name(tools->at(0));
}

// A value for each prompt: one alone, or a list of them. False when it is of another type.
template <class Value, class Read>
bool read_each(std::optional<dom::element> member, std::vector<Value>& values, Read read) {
  if (!member) return true;
  dom::array list;
  if (member->get_array().get(list) != simdjson::SUCCESS) return read(*member, values.emplace_back());
  for (const auto entry : list) {
    if (!read(entry, values.emplace_back())) return false;
  }
  return true;
}

void read_bootstrap(Members& body, TransferMembers& transfer) {
  const auto text = [](dom::element value, std::string& out) {
    std::string_view view;
    const bool right = value.get_string().get(view) == simdjson::SUCCESS;
    out = view;
    return right;
  };
  const auto number = [](dom::element value, std::int64_t& out) {
    return value.get_int64().get(out) == simdjson::SUCCESS && out >= 0;
  };
  const auto port = [&](dom::element value, std::optional<std::int64_t>& out) {
    return value.is_null() || number(value, out.emplace());
  };
  const auto check = [&](std::string_view name, bool right, const std::string& expected) {
    if (!right) body.fault(name, *body.find(name), expected);
  };
  check("bootstrap_host", read_each(body.find("bootstrap_host"), transfer.bootstrap_hosts, text),
        "a string, or one for each prompt");
  check("bootstrap_port", read_each(body.find("bootstrap_port"), transfer.bootstrap_ports, port),
        "a port or null, or one for each prompt");
  if (transfer.bootstrap_ports.empty()) transfer.bootstrap_ports.resize(transfer.bootstrap_hosts.size());  // null
  check("bootstrap_room", read_each(body.find("bootstrap_room"), transfer.bootstrap_rooms, number),
        "an integer 0..9223372036854775807, or one for each prompt");
}

void read_transfer(Members& body, std::string_view text, TransferMembers& transfer) {
  transfer.kv_transfer_params = body.object_text("kv_transfer_params", text);
  transfer.batch_kv_transfer_params = body.object_text("batch_kv_transfer_params", text);
  read_bootstrap(body, transfer);
  constexpr std::int64_t kMostRank = 1 << 20;
  transfer.routed_dp_rank = body.integer("data_parallel_rank", -kMostRank, kMostRank);
  if (const auto rank = body.integer("routed_dp_rank", -kMostRank, kMostRank)) transfer.routed_dp_rank = rank;
  transfer.disagg_prefill_dp_rank = body.integer("disagg_prefill_dp_rank", 0, kMostRank);
}

// Long prompts are not kept for nothing.
void forget_ids(GenerationRequest& request) {
  for (Prompt& prompt : request.prompts) std::vector<std::int64_t>{}.swap(prompt.ids);
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

std::expected<std::vector<Prompt>, ApiError> prompts_of(Api api, Members& body) {
  switch (api) {
    case Api::chat:
      return chat_prompt(body);
    case Api::completions:
      return completion_prompts(body);
    case Api::responses:
      return responses_prompt(body);
    case Api::messages:
      return messages_prompt(body);
  }
  std::unreachable();
}

// What only the Responses API has. Nothing is stored, as in a vLLM without a store.
std::optional<ApiError> refused_state(Members& body) {
  if (const auto id = body.text("previous_response_id"); !id.empty()) {
    return ApiError{.status = 404,
                    .type = "NotFoundError",
                    .message = "Response with id '" + id + "' not found.",
                    .param = "previous_response_id"};
  }
  if (body.flag("background")) return ApiError{.message = "background: nothing is stored here", .param = "background"};
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

ApiError unknown_model(std::string_view model) {
  return {.status = 404,
          .type = "NotFoundError",
          .message = "The model `" + std::string{model} + "` does not exist.",
          .param = "model"};
}

Tokens tokens_of_text(std::size_t bytes) {
  return Tokens{static_cast<std::int64_t>(std::max<std::size_t>(1, (bytes + kBytesPerToken - 1) / kBytesPerToken))};
}

std::expected<GenerationRequest, ApiError> parse_generation_request(Api api, std::string_view text) {
  dom::parser parser;
  dom::object object;
  if (parser.parse(text.data(), text.size()).get_object().get(object) != simdjson::SUCCESS) {
    return refuse("body: expected a JSON object", "");
  }
  Members body{object, ""};
  auto prompts = prompts_of(api, body);
  if (!prompts) return std::unexpected{prompts.error()};
  GenerationRequest request;
  request.api = api;
  request.prompts = *std::move(prompts);
  request.model = body.text("model");
  request.answers_per_prompt = body.integer("n", 1, kMostAnswers).value_or(1);
  request.limit = body.tokens("max_tokens");
  if (const auto limit = body.tokens("max_completion_tokens")) request.limit = limit;
  if (api == Api::responses) {
    if (auto problem = refused_state(body)) return std::unexpected{*std::move(problem)};
    request.limit = body.tokens("max_output_tokens");
  }
  request.min_tokens = body.integer("min_tokens", 0, kMaxTokens.count());
  request.stream = body.flag("stream");
  request.return_token_ids = body.flag("return_token_ids");
  request.logprobs = wants_logprobs(body);
  if (api != Api::completions) read_tools(body, request);
  read_stream_options(body, request);
  read_transfer(body, text, request.transfer);
  read_own_member(body, request);
  if (!request.return_token_ids) forget_ids(request);
  if (body.error()) return std::unexpected{*body.error()};
  if (auto problem = contradiction(request, body)) return std::unexpected{*std::move(problem)};
  return request;
}

}  // namespace balanceroute::emulator
