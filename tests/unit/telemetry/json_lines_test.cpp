// Log lines as JSON: what was a field stays one, and everything is valid JSON.
#include "telemetry/json_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

#include "telemetry/log.hpp"

namespace balanceroute::telemetry {
namespace {

using nlohmann::json;
using testing::MatchesRegex;

json members(std::string_view line) {
  return json::parse("{" + to_json_members(line) + "}");
}

// Law: fields become members; what counts or measures becomes a number, whatever else looks like one stays text.
TEST(JsonLines, FieldsAreMembers) {
  const json line =
      members("request id=0123 worker=h:8000 rank=3 output_tokens=17 ttft_ms=12.5 score=-2.25 status=200");
  EXPECT_EQ(line, (json{{"message", "request"},
                        {"id", "0123"},
                        {"worker", "h:8000"},
                        {"rank", 3},
                        {"output_tokens", 17},
                        {"ttft_ms", 12.5},
                        {"score", -2.25},
                        {"status", 200}}));
  EXPECT_TRUE(line["rank"].is_number_integer());
}

// Law: a time that never came is null.
TEST(JsonLines, TimesThatNeverCame) {
  EXPECT_TRUE(members("request prefill_ms=-1.0")["prefill_ms"].is_null());
}

// Law: any text that log_value() has quoted comes back as it was, if it is UTF-8.
TEST(JsonLines, QuotedValuesComeBack) {
  std::mt19937_64 random{5};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t n = random() % 20; n > 0; --n) text.push_back(static_cast<char>(random() % 128));
    EXPECT_EQ(members("request reason=" + log_value(text) + " tries=1")["reason"], text) << text;
  }
}

// Law: words stay in the message, so does a member that every line has, and a second field of one name.
TEST(JsonLines, WordsStay) {
  EXPECT_EQ(members("worker http://h:1 of group g runs 3 sequences; set slots = 4"),
            (json{{"message", "worker http://h:1 of group g runs 3 sequences; set slots = 4"}}));
  EXPECT_EQ(members("late level=error a=1 a=2 b=\"open"),
            (json{{"message", "late level=error a=2 b=\"open"}, {"a", "1"}}));
}

// Law: bytes that are no UTF-8 leave a line that is.
TEST(JsonLines, BytesThatAreNoText) {
  EXPECT_EQ(members("request client=\"\xff\"")["client"], "\xef\xbf\xbd");
}

// Law: each line is one JSON object, with the time in UTC.
TEST(JsonLines, OneObjectALine) {
  std::ostringstream out;
  spdlog::logger logger{"serve", std::make_shared<spdlog::sinks::ostream_sink_st>(out)};
  logger.set_formatter(make_json_formatter());
  logger.warn("retry worker={}", log_value("a b"));
  const json line = json::parse(out.str());
  EXPECT_THAT(line["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["logger"], "serve");
  EXPECT_EQ(line["message"], "retry");
  EXPECT_EQ(line["worker"], "a b");
  EXPECT_EQ(out.str().back(), '\n');
}

}  // namespace
}  // namespace balanceroute::telemetry
