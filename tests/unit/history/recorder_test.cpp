#include "history/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <latch>

#include "history/reader.hpp"
#include "support/finished_requests.hpp"
#include "support/temporary_folder.hpp"

namespace balanceroute::history {
namespace {

using std::chrono::milliseconds;

// Of whoever takes the file from a recorder, which may be at it just now.
constexpr milliseconds kPatience{10'000};
using ::testing::HasSubstr;
using testing_support::finished_request;
using testing_support::TemporaryFolder;

// What a recorder said, and a wait for it to say something.
class Said {
 public:
  Recorder::Log log() {
    return [this](Severity, const std::string& text) {
      const std::scoped_lock lock{mutex_};
      lines_.push_back(text);
      changed_.notify_all();
    };
  }
  std::string wait_for(std::size_t number) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return lines_.size() > number; });
    return lines_[number];
  }
  std::size_t count() {
    const std::scoped_lock lock{mutex_};
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderOptions options() const {
    return {.path = path_,
            .limits = {.max_age = std::chrono::days{36'500}},
            .gather = milliseconds{1},
            .busy = milliseconds{1},
            .first_retry = milliseconds{1},
            .last_retry = milliseconds{5},
            .last_wait = milliseconds{50}};
  }
  std::int64_t rows() const {
    auto reader = Reader::open(path_);
    if (!reader) throw std::runtime_error(reader.error().message);
    return reader->summary({})->requests;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "h.db";
  Said said_;
};

// Law: records of many threads are all written, once; the end writes what is queued.
TEST_F(RecorderTest, WritesWhatManyThreadsRecord) {
  {
    Recorder recorder{options(), said_.log()};
    std::vector<std::thread> threads;
    for (std::int64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&recorder, t] {
        for (std::int64_t i = 0; i < 500; ++i) recorder.record(finished_request(t * 500 + i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    recorder.flush();
    EXPECT_EQ(recorder.counts().written, 2'000);
    EXPECT_EQ(recorder.counts().queued, 0);
    recorder.record(finished_request(2'000));
  }
  EXPECT_EQ(rows(), 2'001);
  EXPECT_EQ(said_.count(), 0U);
}

// Law: while another process holds the file nothing waits for it: what the queue has no room for is dropped and
// counted, and once the file is free the rest is written, once.
TEST_F(RecorderTest, OutlivesALockedFile) {
  RecorderOptions small = options();
  small.queue_limit = 100;
  Recorder recorder{small, said_.log()};
  recorder.record(finished_request(0));
  recorder.flush();
  auto other = Database::open(path_, Database::Use::read_or_write, kPatience);
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
  recorder.record(finished_request(1));
  EXPECT_THAT(said_.wait_for(0), HasSubstr("locked"));
  for (std::int64_t i = 0; i < 150; ++i) recorder.record(finished_request(2 + i));
  EXPECT_EQ(recorder.counts().dropped, 50);
  EXPECT_GE(recorder.counts().faults, 1);
  ASSERT_TRUE(other->execute("COMMIT"));
  recorder.flush();
  EXPECT_THAT(said_.wait_for(1), HasSubstr("written again"));
  EXPECT_EQ(said_.count(), 2U) << "one line at the first fault, one at the end of the row";
  EXPECT_EQ(recorder.counts().written, 102);
  EXPECT_EQ(rows(), 102);
}

// Law: a file that is locked when the recorder begins is opened later.
TEST_F(RecorderTest, BeginsOnALockedFile) {
  {
    const Recorder first{options(), said_.log()};
  }
  auto other = Database::open(path_, Database::Use::read_or_write, kPatience);
  ASSERT_TRUE(other->execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT"));
  Recorder recorder{options(), said_.log()};
  EXPECT_THAT(said_.wait_for(0), HasSubstr("cannot be written"));
  recorder.record(finished_request(0));
  other = std::unexpected(Fault{});
  recorder.flush();
  EXPECT_EQ(rows(), 1);
}

// Law: where the end finds the file locked it takes last_wait, not more, and what is lost is counted as dropped.
TEST_F(RecorderTest, EndsThoughTheFileIsLocked) {
  auto recorder = std::make_unique<Recorder>(options(), said_.log());
  auto other = Database::open(path_, Database::Use::read_or_write, kPatience);
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
  recorder->record(finished_request(0));
  recorder.reset();
  ASSERT_TRUE(other->execute("COMMIT"));
  EXPECT_EQ(rows(), 0);
}

// Law: a folder that is not there yet is no reason to give up.
TEST_F(RecorderTest, WaitsForItsFolder) {
  RecorderOptions far = options();
  far.path = path_ = folder_ / "later" / "h.db";
  Recorder recorder{far, said_.log()};
  recorder.record(finished_request(0));
  EXPECT_THAT(said_.wait_for(0), HasSubstr("unable to open"));
  std::filesystem::create_directory(folder_ / "later");
  recorder.flush();
  EXPECT_EQ(rows(), 1);
}

// Law: while the system refuses to write, records wait; afterwards they are written.
TEST_F(RecorderTest, OutlivesADiskThatTakesNothing) {
  Recorder recorder{options(), said_.log()};
  recorder.record(finished_request(0));
  recorder.flush();
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit none{.rlim_cur = 1, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  recorder.record(finished_request(1));
  const std::string fault = said_.wait_for(0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  recorder.flush();
  std::signal(SIGXFSZ, before);
  EXPECT_THAT(fault, HasSubstr("cannot be written, requests go on"));
  EXPECT_EQ(rows(), 2);
}

// Law: a broken file is set aside under a name that is told, and a new one is begun; nothing is deleted.
TEST_F(RecorderTest, SetsABrokenFileAside) {
  std::ofstream{path_} << std::string(10'000, 'x');
  {
    Recorder recorder{options(), said_.log()};
    recorder.record(finished_request(0));
  }
  EXPECT_EQ(rows(), 1);
  EXPECT_THAT(said_.wait_for(0), HasSubstr("begins anew"));
  std::size_t aside = 0;
  for (const auto& file : std::filesystem::directory_iterator{folder_.path()}) {
    if (!file.path().filename().string().starts_with("h.db.broken-")) continue;
    ++aside;
    EXPECT_EQ(file.file_size(), 10'000U);
  }
  EXPECT_EQ(aside, 1U);
}

// Law: a file of a later release is left alone, with one line, and its records are dropped and counted.
TEST_F(RecorderTest, LeavesALaterFileAlone) {
  {
    const Recorder first{options(), said_.log()};
  }
  ASSERT_TRUE(
      Database::open(path_, Database::Use::read_or_write, milliseconds{0})->execute("PRAGMA user_version = 99"));
  Recorder recorder{options(), said_.log()};
  recorder.record(finished_request(0));
  recorder.flush();
  EXPECT_EQ(recorder.counts().dropped, 1);
  EXPECT_THAT(said_.wait_for(0), HasSubstr("later release"));
  EXPECT_EQ(said_.count(), 1U);
}

// Law: where its size is the bound, new records displace old ones and nothing is dropped.
TEST_F(RecorderTest, MakesRoomForNewRecords) {
  RecorderOptions small = options();
  small.limits.max_bytes = 1 << 20;
  Recorder recorder{small, said_.log()};
  for (std::int64_t i = 0; i < 20'000; ++i) {
    recorder.record(finished_request(i));
    if (i % 1'000 == 999) recorder.flush();
  }
  recorder.flush();
  EXPECT_EQ(recorder.counts().written, 20'000);
  EXPECT_EQ(recorder.counts().dropped, 0);
  EXPECT_GT(rows(), 1'000);
  EXPECT_LE(std::filesystem::file_size(path_), std::uintmax_t{1} << 20);
  EXPECT_EQ(Reader::open(path_)->latest("chat", 1)->front().prompt, Tokens{100 + 19'999});
}

}  // namespace
}  // namespace balanceroute::history
