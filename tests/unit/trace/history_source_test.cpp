#include "trace/history_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "history/store.hpp"
#include "support/finished_requests.hpp"
#include "support/temporary_folder.hpp"

namespace balanceroute::trace {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing_support::finished_request;
using testing_support::finished_requests;

class HistorySourceTest : public ::testing::Test {
 protected:
  void keep(const std::vector<history::Record>& records) {
    auto store = history::Store::open(path_, {}, milliseconds{0});
    ASSERT_TRUE(store && store->append(records));
  }
  HistorySource source() const { return {.history = path_}; }

  testing_support::TemporaryFolder folder_;
  std::string path_ = (folder_ / "history.db").string();
};

// Law: a history is a stream of what was generated, in order of arrival, from the first such arrival on; who asked for
// several answers is as many requests, who got nothing is none.
TEST_F(HistorySourceTest, IsAStreamOfRequests) {
  auto records = finished_requests(4);
  records[0].output = Tokens{0};
  records[2].sequences = 3;
  records[2].output = Tokens{31};
  records[3].complete = false;
  keep(records);
  const auto trace = read_history(source());
  ASSERT_TRUE(trace) << trace.error();
  EXPECT_EQ(trace->name, "history.db");
  EXPECT_EQ(trace->kind, TraceKind::history);
  ASSERT_EQ(trace->requests.size(), 5U);
  EXPECT_EQ(trace->requests[0].arrival, milliseconds{0});
  EXPECT_EQ(trace->requests[0].prompt, Tokens{101});
  EXPECT_EQ(trace->requests[1].arrival, milliseconds{1});
  EXPECT_EQ(trace->requests[3].output, Tokens{11});
  EXPECT_EQ(trace->requests[4].output, Tokens{20});
  EXPECT_EQ(read_history(source(), {.limit = 2})->requests.size(), 2U);
}

// Law: equal prompts have equal keys in the stream, and only they.
TEST_F(HistorySourceTest, KnowsEqualPrompts) {
  auto records = finished_requests(3);
  records[2].prompt_key = records[0].prompt_key;
  keep(records);
  const auto trace = read_history(source());
  EXPECT_EQ(prompt_key(trace->requests[0]), prompt_key(trace->requests[2]));
  EXPECT_NE(prompt_key(trace->requests[0]), prompt_key(trace->requests[1]));
}

// Law: fleet and days narrow it; days are counted back from its last request, not from today.
TEST_F(HistorySourceTest, IsNarrowedByFleetAndDays) {
  auto records = finished_requests(3);
  records[0].fleet = "other";
  records[1].arrived -= std::chrono::days{3};
  keep(records);
  HistorySource chosen = source();
  chosen.history_fleet = "chat";
  EXPECT_EQ(read_history(chosen)->requests.size(), 2U);
  chosen.history_days = 2;
  EXPECT_EQ(read_history(chosen)->requests.size(), 1U);
  chosen.history_fleet = "none";
  EXPECT_THAT(read_history(chosen).error(), HasSubstr("at the fleet none"));
}

// Law: what is exported as Azure's CSV is read as the same requests, but for the keys of prompts.
TEST_F(HistorySourceTest, RoundTripsThroughAzureCsv) {
  auto records = finished_requests(200);
  for (std::size_t i = 0; i < records.size(); ++i) records[i].arrived += std::chrono::minutes{13 * i};
  keep(records);
  std::ostringstream csv;
  const auto rows = write_azure_csv(source(), csv);
  ASSERT_TRUE(rows);
  EXPECT_EQ(*rows, 200);
  EXPECT_THAT(csv.str(),
              ::testing::StartsWith("TIMESTAMP,ContextTokens,GeneratedTokens\n2025-06-15 15:06:40.000,100,20\n"));
  const auto again = parse_trace(csv.str(), "again");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->kind, TraceKind::azure_csv);
  auto expected = read_history(source())->requests;
  for (TraceRequest& request : expected) request.prefix_blocks.clear();
  EXPECT_EQ(again->requests, expected);
}

// Law: a trace or a history, not both and not none; a file that is none is named.
TEST_F(HistorySourceTest, IsOneOfTwo) {
  keep(finished_requests(1));
  EXPECT_TRUE(read_either("", source()));
  EXPECT_THAT(read_either("", {}).error(), HasSubstr("--trace and --history"));
  EXPECT_THAT(read_either("trace.csv", source()).error(), HasSubstr("--trace and --history"));
  EXPECT_THAT(read_either("", {.history = "/none.db"}).error(), HasSubstr("/none.db"));
}

}  // namespace
}  // namespace balanceroute::trace
