// Laws of the trace readers: what each format means, and what is refused, with which words.
#include "trace/reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace balanceroute::trace {
namespace {

using std::chrono_literals::operator""ns;
using testing::HasSubstr;
using testing::StartsWith;

const std::string azure_header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

// A file in a folder of its own, gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view name)
      : folder_{std::filesystem::temp_directory_path() /
                ("balanceroute_" + std::to_string(::getpid()) + "_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name())},
        path_{folder_ / name} {
    std::filesystem::create_directories(folder_);
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(std::string_view bytes) const { std::ofstream{path_, std::ios::binary} << bytes; }
  void write_gzip(std::string_view bytes) const {
    gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

std::string error_of(const std::expected<Trace, std::string>& result) {
  return result ? "no error, " + std::to_string(result->requests.size()) + " rows" : result.error();
}

std::string azure_rows(int count) {
  std::string text = azure_header;
  for (int i = 0; i < count; ++i) text += "2024-05-12 00:00:00," + std::to_string(1 + i * 7919 % 10007) + ",7\n";
  return text;
}

// Law: 2023 rows have CRLF, seven digits of fraction, no zone, and no end after the last row.
TEST(TraceReader, ReadsAzure2023) {
  const auto trace = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"
      "2023-11-16 18:15:50.9951690,396,109",
      "conv.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->kind, TraceKind::azure_csv);
  EXPECT_EQ(trace->name, "conv.csv");
  ASSERT_EQ(trace->requests.size(), 2U);
  EXPECT_EQ(trace->requests[0], (TraceRequest{0ns, Tokens{374}, Tokens{44}, {}}));
  EXPECT_EQ(trace->requests[1], (TraceRequest{4'314'579'000ns, Tokens{396}, Tokens{109}, {}}));
}

// Law: 2024 rows have a zone, and no fraction when it is zero; instants compare across zones.
TEST(TraceReader, ReadsAzure2024WithZonesAndDroppedFraction) {
  const auto trace = parse_trace(azure_header +
                                     "2024-05-12 00:00:00+00:00,1452,3\n2024-05-12 02:00:00.041683+02:00,584,3\n"
                                     "2024-05-11T19:00:01-05:00,862,38\n2024-05-12 00:00:01.5Z,1,1\n",
                                 "t.csv");
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace->requests.size(), 4U);
  EXPECT_EQ(trace->requests[1].arrival, 41'683'000ns);
  EXPECT_EQ(trace->requests[2].arrival, 1'000'000'000ns);
  EXPECT_EQ(trace->requests[3].arrival, 1'500'000'000ns);
}

// Law: the clock runs over midnight, month end and leap day.
TEST(TraceReader, TimesRunOverTheCalendar) {
  const auto trace = parse_trace(
      azure_header + "2024-02-28 23:59:59,1,1\n2024-02-29 00:00:00,1,1\n2024-03-01 00:00:00,1,1\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->requests[1].arrival, std::chrono::seconds{1});
  EXPECT_EQ(trace->requests[2].arrival, std::chrono::seconds{1} + std::chrono::hours{24});
}

TEST(TraceReader, ReadsBurstGpt) {
  const auto trace = parse_trace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
      "45.25,GPT-4,1087,230,1317,API log\n",
      "BurstGPT_1.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->kind, TraceKind::burstgpt_csv);
  EXPECT_EQ(trace->requests[1], (TraceRequest{40'250'000'000ns, Tokens{1087}, Tokens{230}, {}}));
}

// Law: columns are found by name, so further columns and another order are welcome.
TEST(TraceReader, FindsColumnsByName) {
  const auto trace =
      parse_trace("Response tokens,Session ID,Timestamp,Request tokens\n18,abc,1,472\n19,abc,2,473\n", "burst2.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->requests[1], (TraceRequest{1'000'000'000ns, Tokens{473}, Tokens{19}, {}}));
}

TEST(TraceReader, ReadsMooncake) {
  const auto trace = parse_trace(
      "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47, 2354]}\n"
      "{\"timestamp\": 30535.5, \"input_length\": 6472, \"output_length\": 26}\n",
      "mooncake.jsonl");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->kind, TraceKind::mooncake_jsonl);
  EXPECT_EQ(trace->requests[0], (TraceRequest{0ns, Tokens{6955}, Tokens{52}, {46, 47, 2354}}));
  EXPECT_EQ(trace->requests[1], (TraceRequest{3'053'500'000ns, Tokens{6472}, Tokens{26}, {}}));
}

// Law: a file of lengths has no arrivals, and says so.
TEST(TraceReader, ReadsLengthsWithoutTimes) {
  const auto trace = parse_trace(
      "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85185185185185\n", "v.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_FALSE(trace->has_arrivals());
  EXPECT_EQ(trace->requests[0], (TraceRequest{0ns, Tokens{3772}, Tokens{54}, {}}));
}

TEST(TraceReader, ReadsTheFixtureOfTheWeek) {
  const auto trace = read_trace("tests/data/traces/azure2024_conv_head.csv");
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace->requests.size(), 10U);
  EXPECT_EQ(trace->requests[9].arrival, 604'799'994'297'000ns);  // 00:00:00.001163 to 23:59:59.995460, six days on
  EXPECT_EQ(trace->requests[9].output, Tokens{366});
}

TEST(TraceReader, ReadsTheBundledSegment) {
  const auto trace = read_trace("examples/traces/azure2023_conv_segment.csv");
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace->requests.size(), 3000U);
  EXPECT_EQ(trace->skipped_rows, 0);
  EXPECT_EQ(trace->requests.front(), (TraceRequest{0ns, Tokens{1209}, Tokens{396}, {}}));
  EXPECT_EQ(trace->requests.back().prompt, Tokens{958});
}

// Law: gzip is told by content; the rows are the same as in the plain file.
TEST(TraceReader, GzipEqualsPlain) {
  const auto text = azure_rows(5000);
  const TemporaryFile file{"misnamed.csv"};
  file.write_gzip(text);
  const auto zipped = read_trace(file.path());
  const auto plain = parse_trace(text, "misnamed.csv");
  ASSERT_TRUE(zipped) << zipped.error();
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(zipped->requests, plain->requests);
  EXPECT_EQ(zipped->requests.size(), 5000U);
}

TEST(TraceReader, BlankLinesAndByteOrderMarkCarryNothing) {
  const auto trace = parse_trace("\xef\xbb\xbf" + azure_header + "\n2024-05-12 00:00:00,1,1\n\r\n\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->requests.size(), 1U);
}

// Law: with a limit, what stands behind the last wanted row does not matter.
TEST(TraceReader, LimitStopsBeforeALaterFault) {
  const auto text = azure_header + "2024-05-12 00:00:00,1,1\n2024-05-12 00:00:01,2,2\nbroken\n";
  const auto two = parse_trace(text, "t.csv", {.limit = 2});
  ASSERT_TRUE(two) << two.error();
  EXPECT_EQ(two->requests.size(), 2U);
  EXPECT_FALSE(parse_trace(text, "t.csv", {.limit = 3}));
}

// Law: a file that is none at all is refused by what it is.
TEST(TraceReader, RefusesWhatIsNoFile) {
  EXPECT_EQ(error_of(read_trace("/no/such/trace.csv")), "/no/such/trace.csv: no such file: expected a trace");
  EXPECT_EQ(error_of(read_trace("tests/data")), "tests/data: is a directory: expected a trace file");
  const TemporaryFile file{"empty.csv"};
  file.write("");
  EXPECT_THAT(error_of(read_trace(file.path())), HasSubstr("empty.csv: is empty: expected a trace"));
  EXPECT_EQ(error_of(parse_trace(azure_header, "t.csv")), "t.csv: has no rows: expected at least one request");
}

TEST(TraceReader, RefusesAnUnknownHeaderNamingTheKnownOnes) {
  const auto error = error_of(parse_trace("time,in,out\n1,2,3\n", "t.csv"));
  EXPECT_THAT(error, StartsWith(R"(t.csv:1: first line = "time,in,out": expected a header with TIMESTAMP)"));
  EXPECT_THAT(error, HasSubstr("Request tokens"));
  EXPECT_THAT(error, HasSubstr("num_prefill_tokens"));
  EXPECT_THAT(error, HasSubstr("input_length"));
}

struct BadRow {
  std::string row;
  std::string problem;
};

// Law: a bad row is named by file, line, field, value and expectation; or skipped, counted, and the others stay.
TEST(TraceReader, BadAzureRowsAreNamedOrSkipped) {
  const std::vector<BadRow> cases{
      BadRow{"2024-05-12 00:00:01,-3,4", R"(ContextTokens = "-3": expected a whole number 1..2147483648)"},
      BadRow{"2024-05-12 00:00:01,3,0", R"(GeneratedTokens = "0": expected a whole number 1..2147483648)"},
      BadRow{"2024-05-12 00:00:01,2147483649,4", R"(ContextTokens = "2147483649": expected)"},
      BadRow{"2024-05-12 00:00:01,3,99999999999999999999", R"(GeneratedTokens = "99999999999999999999": expected)"},
      BadRow{"2024-05-12 00:00:01,3.5,4", R"(ContextTokens = "3.5": expected)"},
      BadRow{"2024-05-12 00:00:01,,4", R"(ContextTokens = "": expected)"},
      BadRow{"2024-05-12 00:00:01,3, 4", R"(GeneratedTokens = " 4": expected)"},
      BadRow{"2024-05-12 00:00:01,3", R"(row = "2024-05-12 00:00:01,3": expected 3 fields)"},
      BadRow{"2024-05-12 00:00:01,3,4,5", R"(row = "2024-05-12 00:00:01,3,4,5": expected 3 fields)"},
      BadRow{"2024-13-12 00:00:01,3,4", R"(TIMESTAMP = "2024-13-12 00:00:01": expected a time like)"},
      BadRow{"2023-02-29 00:00:01,3,4", R"(TIMESTAMP = "2023-02-29 00:00:01": expected)"},
      BadRow{"2024-05-12 24:00:01,3,4", R"(TIMESTAMP = "2024-05-12 24:00:01": expected)"},
      BadRow{"2024-05-12 00:00:01.,3,4", R"(TIMESTAMP = "2024-05-12 00:00:01.": expected)"},
      BadRow{"2024-05-12 00:00:01+0000,3,4", R"(TIMESTAMP = "2024-05-12 00:00:01+0000": expected)"},
      BadRow{"2024-05-12 00:00:01 UTC,3,4", R"(TIMESTAMP = "2024-05-12 00:00:01 UTC": expected)"},
      BadRow{"1715472001,3,4", R"(TIMESTAMP = "1715472001": expected)"},
      BadRow{"2024-05-11 23:59:59,3,4", R"(row = "2024-05-11 23:59:59,3,4": expected a time not before the row above)"},
      BadRow{std::string{"\x01\xff\0", 3}, R"(row = "\x01\xff\x00": expected 3 fields)"}};
  for (const auto& [row, problem] : cases) {
    SCOPED_TRACE(row);
    const auto text = azure_header + "2024-05-12 00:00:00,10,20\n" + row + "\n2024-05-12 00:00:09,30,40\n";
    EXPECT_THAT(error_of(parse_trace(text, "t.csv")), StartsWith("t.csv:3: " + problem));
    const auto rest = parse_trace(text, "t.csv", {.skip_bad_rows = true});
    ASSERT_TRUE(rest) << rest.error();
    EXPECT_EQ(rest->skipped_rows, 1);
    ASSERT_EQ(rest->requests.size(), 2U);
    EXPECT_EQ(rest->requests[1], (TraceRequest{std::chrono::seconds{9}, Tokens{30}, Tokens{40}, {}}));
  }
}

TEST(TraceReader, BadMooncakeRowsAreNamed) {
  const std::vector<BadRow> cases{
      BadRow{R"({"timestamp": 1, "input_length": 2)", R"(row = "{)"},
      BadRow{R"({"input_length": 2, "output_length": 3})",
             R"(timestamp = "missing": expected milliseconds from the start of the trace, 0..1e12)"},
      BadRow{R"({"timestamp": -1, "input_length": 2, "output_length": 3})", R"(timestamp = "-1")"},
      BadRow{R"({"timestamp": "1", "input_length": 2, "output_length": 3})", R"(timestamp = ""1"")"},
      BadRow{R"({"timestamp": 1, "input_length": -2, "output_length": 3})", R"(input_length = "-2")"},
      BadRow{R"({"timestamp": 1, "input_length": 2, "output_length": 3e9})", R"(output_length = ")"},
      BadRow{R"({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1, "x"]})",
             R"(hash_ids = "[1,"x"]": expected a list of whole numbers)"}};
  for (const auto& [row, problem] : cases) {
    EXPECT_THAT(error_of(parse_trace(row + "\n", "m.jsonl")), StartsWith("m.jsonl:1: " + problem)) << row;
  }
}

TEST(TraceReader, SkippingEverythingIsStillAnError) {
  EXPECT_EQ(error_of(parse_trace(azure_header + "x,1,1\ny,1,1\n", "t.csv", {.skip_bad_rows = true})),
            R"(t.csv: no good row, 2 skipped, the first being t.csv:2: TIMESTAMP = "x": )"
            "expected a time like 2023-11-16 18:15:46.6805900 or with a zone, +00:00");
}

// Law: a gzip stream that is cut or damaged is an error at the line where it shows, even when bad rows are skipped.
TEST(TraceReader, RefusesACutOrDamagedGzipStream) {
  const TemporaryFile whole{"whole.csv.gz"};
  whole.write_gzip(azure_rows(20'000));
  std::string bytes(std::filesystem::file_size(whole.path()), '\0');
  std::ifstream{whole.path(), std::ios::binary}.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));

  whole.write(std::string_view{bytes}.substr(0, bytes.size() / 2));
  const auto cut = error_of(read_trace(whole.path(), {.skip_bad_rows = true}));
  EXPECT_THAT(cut, HasSubstr("whole.csv.gz:"));
  EXPECT_THAT(cut, HasSubstr("gzip stream ends early: expected a complete file"));

  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  whole.write(bytes);
  EXPECT_FALSE(read_trace(whole.path(), {.skip_bad_rows = true}));
}

// Law: a line without end costs bounded memory and time; the file here has one line of 1 GiB (sparse on disk).
TEST(TraceReader, BoundsTheLengthOfALine) {
  const TemporaryFile file{"endless.csv"};
  file.write(azure_header + "2024-05-12 00:00:00,1,1\n");
  std::filesystem::resize_file(file.path(), std::uintmax_t{1} << 30);
  EXPECT_THAT(error_of(read_trace(file.path(), {.skip_bad_rows = true})),
              HasSubstr("endless.csv:3: line is longer than 1048576 bytes: expected a trace row"));
}

// Law: rows are cut at line ends only, wherever the reads of the file happen to end.
TEST(TraceReader, LongRowsCrossBufferEnds) {
  std::string text;
  for (int row = 0; row < 40; ++row) {
    text += R"({"timestamp": )" + std::to_string(row) + R"(, "input_length": 5, "output_length": 6, "hash_ids": [0)";
    for (int i = 1; i < 1000 * row; ++i) text += "," + std::to_string(i);
    text += "]}\n";
  }
  const auto trace = parse_trace(text, "m.jsonl");
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace->requests.size(), 40U);
  for (std::size_t row = 1; row < 40; ++row) {
    ASSERT_EQ(trace->requests[row].prefix_blocks.size(), 1000 * row);
    EXPECT_EQ(trace->requests[row].prefix_blocks.back(), static_cast<std::int64_t>(1000 * row) - 1);
  }
}

}  // namespace
}  // namespace balanceroute::trace
