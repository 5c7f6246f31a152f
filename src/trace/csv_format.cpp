// csv_format.cpp - the CSV kinds of trace, as a table of their columns.
//
// Columns are found by name in the header, so that more columns or another order do no harm. Quoted fields do not
// occur in any of these files and are not supported: a quote makes a bad value.

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "trace/row_format.hpp"

namespace balanceroute::trace {
namespace {

struct CsvLayout {
  TraceKind kind;
  std::string_view arrival;  // empty: the file has no times
  std::optional<std::chrono::nanoseconds> (*parse_arrival)(std::string_view);
  const char* expected_arrival;
  std::string_view prompt;
  std::string_view output;
};

constexpr std::array kLayouts{
    CsvLayout{TraceKind::azure_csv, "TIMESTAMP", parse_wall_clock, kExpectedWallClock, "ContextTokens",
              "GeneratedTokens"},
    CsvLayout{TraceKind::burstgpt_csv, "Timestamp", parse_seconds, kExpectedSeconds, "Request tokens",
              "Response tokens"},
    CsvLayout{TraceKind::lengths_csv, "", nullptr, "", "num_prefill_tokens", "num_decode_tokens"},
};

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const auto comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> index_of(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

struct Columns {
  std::size_t count = 0;
  std::size_t arrival = 0;  // meaningless when the layout has no arrival
  std::size_t prompt = 0;
  std::size_t output = 0;
};

std::optional<Columns> locate(const CsvLayout& layout, std::span<const std::string_view> names) {
  const auto arrival = layout.arrival.empty() ? std::optional<std::size_t>{0} : index_of(names, layout.arrival);
  const auto prompt = index_of(names, layout.prompt);
  const auto output = index_of(names, layout.output);
  if (!arrival || !prompt || !output) return std::nullopt;
  return Columns{names.size(), *arrival, *prompt, *output};
}

class CsvFormat final : public RowFormat {
 public:
  CsvFormat(const CsvLayout& layout, const Columns& columns)
      : layout_{&layout}, columns_{columns}, expected_count_{std::to_string(columns.count) + " fields"} {}

  TraceKind kind() const override { return layout_->kind; }
  bool first_line_is_header() const override { return true; }

  std::expected<TraceRequest, FieldError> parse(std::string_view line) override {
    split(line, fields_);
    if (fields_.size() != columns_.count) {
      return std::unexpected{FieldError{"row", std::string{line}, expected_count_}};
    }
    TraceRequest request;
    if (layout_->parse_arrival != nullptr) {
      const auto arrival = layout_->parse_arrival(fields_[columns_.arrival]);
      if (!arrival) return refuse(layout_->arrival, columns_.arrival, layout_->expected_arrival);
      request.arrival = *arrival;
    }
    const auto prompt = parse_tokens(fields_[columns_.prompt]);
    if (!prompt) return refuse(layout_->prompt, columns_.prompt, kExpectedTokens);
    const auto output = parse_tokens(fields_[columns_.output]);
    if (!output) return refuse(layout_->output, columns_.output, kExpectedTokens);
    request.prompt = *prompt;
    request.output = *output;
    return request;
  }

 private:
  std::unexpected<FieldError> refuse(std::string_view name, std::size_t column, const char* expected) const {
    return std::unexpected{FieldError{std::string{name}, std::string{fields_[column]}, expected}};
  }

  const CsvLayout* layout_;
  Columns columns_;
  std::string expected_count_;
  std::vector<std::string_view> fields_;
};

}  // namespace

std::unique_ptr<RowFormat> detect_csv_format(std::string_view header) {
  std::vector<std::string_view> names;
  split(header, names);
  for (const auto& layout : kLayouts) {
    if (const auto columns = locate(layout, names)) return std::make_unique<CsvFormat>(layout, *columns);
  }
  return nullptr;
}

std::string known_formats() {
  std::string text;
  for (const auto& layout : kLayouts) {
    text += "a header with ";
    if (!layout.arrival.empty()) text.append(layout.arrival).append(",");
    text.append(layout.prompt).append(",").append(layout.output).append("; ");
  }
  return text + R"(or JSON lines with "timestamp","input_length","output_length")";
}

}  // namespace balanceroute::trace
