#include "emulator/side_answers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/random.hpp"
#include "emulator/answer_text.hpp"

namespace balanceroute::emulator {
namespace {

using Json = nlohmann::ordered_json;
using Answer = std::expected<Json, ApiError>;

constexpr std::size_t kDimensions = 8;
constexpr std::int64_t kFirstTextId = std::int64_t{1} << 40;  // above the ids of numbered tokens

std::unexpected<ApiError> refuse(std::string message, std::string param) {
  return std::unexpected{ApiError{.message = std::move(message), .param = std::move(param)}};
}

// A number of [0, 256) for each place, made of the text.
std::uint64_t made_up(std::string_view text, std::size_t place) {
  std::uint64_t hash = place + 1;
  for (const char byte : text) hash = mix_bits(hash + static_cast<unsigned char>(byte));
  return mix_bits(hash) % 256;
}

std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && value.front().is_number_integer()) return value.dump();  // token ids
  if (value.is_object() && value.contains("text") && value["text"].is_string()) return value["text"].get<std::string>();
  return std::nullopt;
}

// A text, a list of token ids, or a list of several of either; nothing when it is something else.
std::optional<std::vector<std::string>> texts_of(const Json& value) {
  if (const auto one = text_of(value)) return std::vector{*one};
  if (!value.is_array() || value.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& entry : value) {
    const auto text = text_of(entry);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

std::expected<std::vector<std::string>, ApiError> member_texts(const Json& body, const std::string& name) {
  const auto texts = body.contains(name) ? texts_of(body[name]) : std::nullopt;
  if (!texts) return refuse(name + ": expected a text or a list that is not empty", name);
  return *texts;
}

Json usage_of(const std::vector<std::string>& texts, bool completion = true) {
  Tokens sum{0};
  for (const auto& text : texts) sum += tokens_of_text(text.size());
  Json usage{{"prompt_tokens", sum.count()}, {"total_tokens", sum.count()}};
  if (completion) usage["completion_tokens"] = 0;
  return usage;
}

Json list_of(const SideContext& context, std::string_view id, Json data, Json usage) {
  return {{"id", std::string{id} + "-" + context.id},
          {"object", "list"},
          {"created", context.created},
          {"model", context.model},
          {"data", std::move(data)},
          {"usage", std::move(usage)}};
}

std::array<float, kDimensions> embedding(std::string_view text) {
  std::array<float, kDimensions> vector{};
  for (std::size_t i = 0; i < kDimensions; ++i) vector[i] = static_cast<float>(made_up(text, i)) / 128.0F - 1.0F;
  return vector;
}

// Little-endian floats, as clients read them.
std::string base64(const std::array<float, kDimensions>& vector) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint32_t> bytes;
  for (const float value : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back((bits >> shift) & 0xFFU);
  }
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t triple = 0;
    for (std::size_t j = i; j < i + 3; ++j) triple = triple << 8U | (j < bytes.size() ? bytes[j] : 0U);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[triple >> shift & 63U];
  }
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - missing, missing, missing, '=');
}

Answer embeddings(const Json& body, const SideContext& context) {
  const auto texts = member_texts(body, "input");
  if (!texts) return std::unexpected{texts.error()};
  const bool packed = body.value("encoding_format", Json("float")) == "base64";
  Json data = Json::array();
  for (const auto& text : *texts) {
    const auto vector = embedding(text);
    data.push_back({{"index", data.size()}, {"object", "embedding"}});
    data.back()["embedding"] = packed ? Json(base64(vector)) : Json(vector);
  }
  return list_of(context, "embd", std::move(data), usage_of(*texts));
}

double relevance(std::string_view query, std::string_view document) {
  return static_cast<double>(made_up(std::string{query} + "\n" + std::string{document}, 0)) / 256.0;
}

Answer rerank(const Json& body, const SideContext& context) {
  const auto query = member_texts(body, "query");
  if (!query) return std::unexpected{query.error()};
  const auto documents = member_texts(body, "documents");
  if (!documents) return std::unexpected{documents.error()};
  struct Ranked {
    std::size_t index;
    double score;
  };
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < documents->size(); ++i) ranked.push_back({i, relevance(query->front(), (*documents)[i])});
  std::ranges::stable_sort(ranked, std::ranges::greater{}, &Ranked::score);
  const auto top = body.value("top_n", Json(0));
  if (!top.is_number_integer() || top < 0) return refuse("top_n: expected an integer of at least 0", "top_n");
  if (top > 0 && top.get<std::size_t>() < ranked.size()) ranked.resize(top.get<std::size_t>());
  Json results = Json::array();
  for (const auto& [index, score] : ranked) {
    results.push_back({{"index", index}, {"document", {{"text", (*documents)[index]}}}, {"relevance_score", score}});
  }
  return Json{{"id", "rerank-" + context.id},
              {"model", context.model},
              {"usage", usage_of(*documents, false)},
              {"results", std::move(results)}};
}

// Pairs of one with each, or of each with its like; under any of the names that servers know them by.
Answer score(const Json& body, const SideContext& context) {
  const std::string first = body.contains("text_1") ? "text_1" : body.contains("data_1") ? "data_1" : "queries";
  const std::string second = body.contains("text_2")   ? "text_2"
                             : body.contains("data_2") ? "data_2"
                             : body.contains("items")  ? "items"
                                                       : "documents";
  const auto left = member_texts(body, first);
  if (!left) return std::unexpected{left.error()};
  const auto right = member_texts(body, second);
  if (!right) return std::unexpected{right.error()};
  if (left->size() != 1 && left->size() != right->size()) {
    return refuse(first + ": expected one text or as many as " + second, first);
  }
  Json data = Json::array();
  for (std::size_t i = 0; i < right->size(); ++i) {
    data.push_back({{"index", i}, {"object", "score"}});
    data.back()["score"] = relevance((*left)[left->size() == 1 ? 0 : i], (*right)[i]);
  }
  return list_of(context, "score", std::move(data), usage_of(*right));
}

Answer classify(const Json& body, const SideContext& context) {
  const auto texts = member_texts(body, "input");
  if (!texts) return std::unexpected{texts.error()};
  Json data = Json::array();
  for (const auto& text : *texts) {
    const double one = static_cast<double>(made_up(text, 0)) / 256.0;
    data.push_back({{"index", data.size()},
                    {"label", one > 0.5 ? "LABEL_1" : "LABEL_0"},
                    {"probs", {1.0 - one, one}},
                    {"num_classes", 2}});
  }
  return list_of(context, "classify", std::move(data), usage_of(*texts));
}

Answer tokenize(const Json& body, const SideContext& context) {
  std::string text;
  if (body.contains("messages") && body["messages"].is_array()) {
    for (const auto& message : body["messages"]) {
      if (message.is_object() && message.value("content", Json()).is_string()) text += message["content"];
    }
  } else if (body.contains("prompt") && body["prompt"].is_string()) {
    text = body["prompt"];
  } else {
    return refuse("prompt: expected a text, or messages", "prompt");
  }
  Json ids = Json::array();
  for (std::size_t at = 0; at < text.size(); at += kBytesPerToken) {
    std::int64_t packed = 0;
    for (const char byte : std::string_view{text}.substr(at, kBytesPerToken)) {
      packed = packed * 256 + static_cast<unsigned char>(byte);
    }
    ids.push_back(kFirstTextId + packed);
  }
  return Json{{"count", ids.size()},
              {"max_model_len", context.max_model_len.count()},
              {"tokens", std::move(ids)},
              {"token_strs", nullptr}};
}

std::string text_of_token(std::int64_t id) {
  std::string text;
  if (id < kFirstTextId) {
    append_token_text(text, Tokens{std::max<std::int64_t>(0, id - kFirstTokenId)}, true);
    return text;
  }
  for (auto packed = id - kFirstTextId; packed > 0; packed /= 256) text += static_cast<char>(packed % 256);
  return {text.rbegin(), text.rend()};
}

Answer detokenize(const Json& body, const SideContext& /*context*/) {
  if (!body.contains("tokens") || !body["tokens"].is_array()) {
    return refuse("tokens: expected a list of token ids", "tokens");
  }
  std::string text;
  for (const auto& id : body["tokens"]) {
    if (!id.is_number_integer()) return refuse("tokens: expected a list of token ids", "tokens");
    text += text_of_token(id.get<std::int64_t>());
  }
  return Json{{"prompt", text}};
}

struct SideRoute {
  std::string_view path;
  Answer (*answer)(const Json& body, const SideContext& context);
};

constexpr std::array kSideRoutes{
    SideRoute{"/v1/embeddings", &embeddings}, SideRoute{"/rerank", &rerank},     SideRoute{"/v1/rerank", &rerank},
    SideRoute{"/v2/rerank", &rerank},         SideRoute{"/score", &score},       SideRoute{"/v1/score", &score},
    SideRoute{"/classify", &classify},        SideRoute{"/tokenize", &tokenize}, SideRoute{"/detokenize", &detokenize}};

}  // namespace

bool is_side_path(std::string_view path) {
  return std::ranges::find(kSideRoutes, path, &SideRoute::path) != kSideRoutes.end();
}

std::expected<std::string, ApiError> side_answer(std::string_view path, std::string_view text,
                                                 const SideContext& context) {
  const auto body = Json::parse(text, nullptr, false);
  if (!body.is_object()) return refuse("body: expected a JSON object", "");
  const auto model = body.value("model", Json());
  if (model.is_string() && model != context.model) return std::unexpected{unknown_model(model.get<std::string>())};
  const auto route = std::ranges::find(kSideRoutes, path, &SideRoute::path);
  const auto answer = route->answer(body, context);
  if (!answer) return std::unexpected{answer.error()};
  return json_text(*answer);
}

}  // namespace balanceroute::emulator
