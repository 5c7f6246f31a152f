#include "history/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "history/reader.hpp"
#include "history/schema.hpp"
#include "support/finished_requests.hpp"
#include "support/temporary_folder.hpp"

namespace balanceroute::history {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing_support::finished_request;
using testing_support::finished_requests;
using testing_support::kNoon;
using testing_support::TemporaryFolder;

constexpr milliseconds kBusy{0};

Store opened(const std::filesystem::path& path, const StoreLimits& limits = {}) {
  auto store = Store::open(path, limits, kBusy);
  if (!store) throw std::runtime_error(store.error().message);
  return *std::move(store);
}

std::vector<Record> all_of(const std::filesystem::path& path, const Selection& selection = {}) {
  auto reader = Reader::open(path);
  if (!reader) throw std::runtime_error(reader.error().message);
  std::vector<Record> records;
  const auto done = reader->each(selection, [&](const Record& record) { records.push_back(record); });
  if (!done) throw std::runtime_error(done.error().message);
  return records;
}

void run_sql(const std::filesystem::path& path, const std::string& sql) {
  auto database = Database::open(path, Database::Use::create, kBusy);
  ASSERT_TRUE(database);
  const auto done = database->execute(sql);
  ASSERT_TRUE(done) << done.error().message;
}

// Law: what was appended is read back member by member, in order of arrival; what was not known stays so.
TEST(Store, KeepsRecordsAsTheyWere) {
  const TemporaryFolder folder;
  Record bare;
  bare.arrived = kNoon - milliseconds{5};
  bare.fleet = "chat";
  bare.outcome = "rejected";
  bare.status = 503;
  const std::vector<Record> written{finished_request(7), bare, finished_request(3)};
  ASSERT_TRUE(opened(folder / "h.db").append(written));
  EXPECT_EQ(all_of(folder / "h.db"), (std::vector<Record>{bare, written[2], written[0]}));
}

// Law: a selection names fleet, first and last moment; the latest are those that ended last, in order of their ends.
TEST(Store, IsReadByFleetAndTime) {
  const TemporaryFolder folder;
  auto records = finished_requests(10);
  records[4].fleet = "other";
  ASSERT_TRUE(opened(folder / "h.db").append(records));
  const auto some =
      all_of(folder / "h.db", {.fleet = "chat", .since = kNoon + milliseconds{3}, .until = kNoon + milliseconds{6}});
  EXPECT_EQ(some, (std::vector<Record>{records[3], records[5]}));
  const auto latest = Reader::open(folder / "h.db")->latest("chat", 2);
  ASSERT_TRUE(latest);
  EXPECT_EQ(*latest, (std::vector<Record>{records[8], records[9]}));
}

// Law: the file is its owner's alone, and so are the files that SQLite puts beside it.
TEST(Store, IsPrivate) {
  const TemporaryFolder folder;
  Store store = opened(folder / "h.db");
  ASSERT_TRUE(store.append(finished_requests(1)));
  for (const char* name : {"h.db", "h.db-wal", "h.db-shm"}) {
    struct stat about{};
    ASSERT_EQ(::stat((folder / name).c_str(), &about), 0) << name;
    EXPECT_EQ(about.st_mode & 0777U, 0600U) << name;
  }
}

// Law: of a batch all rows are written or none.
TEST(Store, AppendsAllOrNothing) {
  const TemporaryFolder folder;
  Store store = opened(folder / "h.db");
  run_sql(
      folder / "h.db",
      "CREATE TRIGGER t BEFORE INSERT ON requests WHEN NEW.prompt_tokens = 105 BEGIN SELECT RAISE(ABORT, 'no'); END");
  EXPECT_FALSE(store.append(finished_requests(10)));
  EXPECT_TRUE(all_of(folder / "h.db").empty());
  EXPECT_TRUE(store.append(finished_requests(5)));
  EXPECT_EQ(all_of(folder / "h.db").size(), 5U);
}

// Law: what ended longer ago than max_age goes, nothing else.
TEST(Store, ForgetsWhatIsTooOld) {
  const TemporaryFolder folder;
  Store store = opened(folder / "h.db", {.max_age = std::chrono::seconds{10}});
  const auto records = finished_requests(5'000);  // each ends 500 ms after its arrival
  ASSERT_TRUE(store.append(records));
  ASSERT_TRUE(store.prune(kNoon + std::chrono::seconds{10} + milliseconds{500 + 4'900}));
  EXPECT_EQ(all_of(folder / "h.db"), (std::vector<Record>{records.begin() + 4'900, records.end()}));
}

// Law: the file never grows beyond max_bytes; the oldest rows make room for new ones, which are all there.
TEST(Store, StaysWithinItsSize) {
  const TemporaryFolder folder;
  const StoreLimits limits{.max_bytes = 1 << 20};
  Store store = opened(folder / "h.db", limits);
  for (std::int64_t batch = 0; batch < 30; ++batch) {
    std::vector<Record> records;
    for (std::int64_t i = 0; i < 500; ++i) records.push_back(finished_request(batch * 500 + i));
    auto done = store.append(records);
    if (!done) {
      EXPECT_EQ(done.error().kind, FaultKind::full);
      ASSERT_TRUE(store.make_room());
      done = store.append(records);
    }
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(store.prune(kNoon));
    EXPECT_LE(std::filesystem::file_size(folder / "h.db"), static_cast<std::uintmax_t>(limits.max_bytes));
  }
  const auto left = all_of(folder / "h.db");
  ASSERT_GT(left.size(), 1'000U);
  ASSERT_LT(left.size(), 15'000U);
  EXPECT_EQ(left.back().prompt, Tokens{100 + 14'999});
  EXPECT_EQ(left.front().prompt, Tokens{100 + 15'000} - Tokens{static_cast<std::int64_t>(left.size())});
}

// Law: a file of a later schema is refused, says both versions, and stays as it is.
TEST(Schema, RefusesLaterVersions) {
  const TemporaryFolder folder;
  ASSERT_TRUE(opened(folder / "h.db").append(finished_requests(1)));
  run_sql(folder / "h.db", "PRAGMA user_version = 99");
  const auto store = Store::open(folder / "h.db", {}, kBusy);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, FaultKind::foreign);
  EXPECT_THAT(store.error().message, HasSubstr("version 99"));
  EXPECT_THAT(store.error().message, HasSubstr("up to " + std::to_string(kSchemaVersion)));
  const auto reader = Reader::open(folder / "h.db");
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr((folder / "h.db").string()));
  auto database = Database::open(folder / "h.db", Database::Use::read_or_write, kBusy);
  EXPECT_EQ(database->number("SELECT count(*) FROM requests"), 1);
}

// A history as the first version of the schema had it, with one request.
constexpr const char* kVersion1 = R"(
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  CREATE TABLE requests (id INTEGER PRIMARY KEY, arrived_unix_ms INTEGER NOT NULL, total_us INTEGER NOT NULL,
    first_token_us INTEGER, prefill_us INTEGER, pool_wait_us INTEGER, fleet TEXT NOT NULL, worker_group TEXT NOT NULL,
    worker TEXT NOT NULL, rank INTEGER NOT NULL, policy TEXT NOT NULL, outcome TEXT NOT NULL, complete INTEGER NOT NULL,
    status INTEGER NOT NULL, tries INTEGER NOT NULL, sequences INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL, output_limit_tokens INTEGER, prompt_key INTEGER);
  PRAGMA application_id = 1112696937;
  PRAGMA user_version = 1;
  INSERT INTO requests VALUES (7, 1750000000000, 500000, 80000, NULL, 1234, 'chat', 'a', '10.0.0.1:8000', 3, 'br_h', 'ok',
    1, 200, 1, 1, 100, 20, 256, -281474976710655);
)";

// Law: a file of the first version is brought up to date by whoever opens it first, reader or writer; its rows stay,
// and what was not recorded then is not known.
TEST(Schema, BringsTheFirstVersionUpToDate) {
  Record expected = finished_request(0);
  expected.cached = std::nullopt;
  expected.opening_key = 0;
  for (const bool writer_first : {false, true}) {
    const TemporaryFolder folder;
    run_sql(folder / "h.db", kVersion1);
    if (writer_first) {
      ASSERT_TRUE(opened(folder / "h.db").append({}));
    }
    EXPECT_EQ(all_of(folder / "h.db"), std::vector<Record>{expected});
    ASSERT_TRUE(opened(folder / "h.db").append(std::vector{finished_request(1)}));
    EXPECT_EQ(all_of(folder / "h.db"), (std::vector<Record>{expected, finished_request(1)}));
    auto database = Database::open(folder / "h.db", Database::Use::read_or_write, kBusy);
    EXPECT_EQ(database->number("PRAGMA user_version"), kSchemaVersion);
  }
}

// Law: a step that fails leaves the file at its version, with its rows.
TEST(Schema, MigratesWhollyOrNotAtAll) {
  const TemporaryFolder folder;
  run_sql(folder / "h.db", kVersion1);
  run_sql(folder / "h.db", "ALTER TABLE requests ADD COLUMN cached_tokens INTEGER");
  EXPECT_FALSE(Store::open(folder / "h.db", {}, kBusy));
  auto database = Database::open(folder / "h.db", Database::Use::read_or_write, kBusy);
  EXPECT_EQ(database->number("PRAGMA user_version"), 1);
  EXPECT_EQ(database->number("SELECT count(*) FROM requests"), 1);
  EXPECT_EQ(database->number("SELECT count(*) FROM pragma_table_info('requests') WHERE name = 'opening_key'"), 0);
}

// Law: a database of another program, an empty file and no database at all are no history.
TEST(Schema, KnowsWhatIsNoHistory) {
  const TemporaryFolder folder;
  run_sql(folder / "other.db", "CREATE TABLE requests (id INTEGER)");
  EXPECT_EQ(Store::open(folder / "other.db", {}, kBusy).error().kind, FaultKind::foreign);
  std::ofstream{folder / "text"} << std::string(10'000, 'x');
  EXPECT_EQ(Store::open(folder / "text", {}, kBusy).error().kind, FaultKind::corrupt);
  EXPECT_EQ(Reader::open(folder / "text").error().kind, FaultKind::corrupt);
  std::ofstream{folder / "empty"};
  EXPECT_THAT(Reader::open(folder / "empty").error().message, HasSubstr("is empty"));
  EXPECT_THAT(Reader::open(folder / "none").error().message, HasSubstr("is not there"));
}

// Law: sums are by fleet and outcome.
TEST(Reader, SumsUp) {
  const TemporaryFolder folder;
  auto records = finished_requests(4);
  records[3].outcome = "client_left";
  records[2].prompt_key = records[1].prompt_key;
  ASSERT_TRUE(opened(folder / "h.db").append(records));
  const auto summary = Reader::open(folder / "h.db")->summary({});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->requests, 4);
  EXPECT_EQ(summary->prompts, 3);
  EXPECT_EQ(summary->first_arrival, kNoon);
  EXPECT_EQ(summary->last_arrival, kNoon + milliseconds{3});
  ASSERT_EQ(summary->outcomes.size(), 2U);
  EXPECT_EQ(summary->outcomes[1].outcome, "ok");
  EXPECT_EQ(summary->outcomes[1].requests, 3);
  EXPECT_EQ(summary->outcomes[1].prompt_tokens, 303);
  EXPECT_EQ(summary->outcomes[1].output_tokens, 60);
}

}  // namespace
}  // namespace balanceroute::history
