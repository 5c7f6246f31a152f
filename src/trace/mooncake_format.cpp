// mooncake_format.cpp - Mooncake's JSON lines: one object a request.

#include <simdjson.h>

#include "trace/line_reader.hpp"
#include "trace/row_format.hpp"

namespace balanceroute::trace {
namespace {

static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);

std::unexpected<FieldError> refuse(std::string_view name, simdjson::simdjson_result<simdjson::dom::element> member,
                                   const char* expected) {
  std::string value = member.error() == simdjson::SUCCESS ? simdjson::minify(member.value_unsafe()) : "missing";
  return std::unexpected{FieldError{std::string{name}, std::move(value), expected}};
}

std::optional<Tokens> tokens_of(simdjson::simdjson_result<simdjson::dom::element> member) {
  std::int64_t count = 0;
  if (member.get_int64().get(count) != simdjson::SUCCESS) return std::nullopt;
  return checked_tokens(count);
}

std::optional<std::chrono::nanoseconds> arrival_of(simdjson::simdjson_result<simdjson::dom::element> member) {
  double milliseconds = 0;
  if (member.get_double().get(milliseconds) != simdjson::SUCCESS) return std::nullopt;
  return checked_seconds(milliseconds / 1e3);
}

bool append_ids(simdjson::dom::element member, std::vector<std::int64_t>& ids) {
  simdjson::dom::array array;
  if (member.get_array().get(array) != simdjson::SUCCESS) return false;
  ids.reserve(array.size());
  for (const auto element : array) {
    std::int64_t id = 0;
    if (element.get_int64().get(id) != simdjson::SUCCESS) return false;
    ids.push_back(id);
  }
  return true;
}

class MooncakeFormat final : public RowFormat {
 public:
  TraceKind kind() const override { return TraceKind::mooncake_jsonl; }
  bool first_line_is_header() const override { return false; }

  std::expected<TraceRequest, FieldError> parse(std::string_view line) override {
    simdjson::dom::object row;
    // The line reader guarantees the padding, so simdjson needs no copy.
    if (parser_.parse(line.data(), line.size(), false).get_object().get(row) != simdjson::SUCCESS) {
      return std::unexpected{FieldError{"row", std::string{line}, "one JSON object a line"}};
    }
    const auto arrival = arrival_of(row.at_key("timestamp"));
    if (!arrival) return refuse("timestamp", row.at_key("timestamp"), kExpectedMilliseconds);
    const auto prompt = tokens_of(row.at_key("input_length"));
    if (!prompt) return refuse("input_length", row.at_key("input_length"), kExpectedTokens);
    const auto output = tokens_of(row.at_key("output_length"));
    if (!output) return refuse("output_length", row.at_key("output_length"), kExpectedTokens);
    TraceRequest request{*arrival, *prompt, *output, {}};
    if (const auto ids = row.at_key("hash_ids"); ids.error() == simdjson::SUCCESS) {
      if (!append_ids(ids.value_unsafe(), request.prefix_blocks)) {
        return refuse("hash_ids", ids, "a list of whole numbers");
      }
    }
    return request;
  }

 private:
  simdjson::dom::parser parser_;
};

}  // namespace

std::unique_ptr<RowFormat> make_mooncake_format() {
  return std::make_unique<MooncakeFormat>();
}

}  // namespace balanceroute::trace
