// recorder.hpp - from many threads into one history file, without any of them ever waiting for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "history/fault.hpp"
#include "history/record.hpp"
#include "history/store.hpp"

namespace balanceroute::history {

struct RecorderOptions {
  std::filesystem::path path;
  StoreLimits limits;
  std::size_t queue_limit = 16'384;
  std::chrono::milliseconds gather{250};  // that a batch waits for more, unless it is full
  std::chrono::milliseconds busy{1'000};  // that a write waits for another process
  std::chrono::milliseconds first_retry{200};
  std::chrono::milliseconds last_retry{5'000};
  std::chrono::milliseconds last_wait{2'000};  // for what is queued at the end
};

struct RecorderCounts {
  std::int64_t written = 0;
  std::int64_t dropped = 0;  // because the queue was full, or the file not to be had
  std::int64_t faults = 0;   // failed operations
  std::int64_t queued = 0;
  std::int64_t file_bytes = 0;  // the database in use, its log aside
};

enum class Severity : std::uint8_t { info, warning, error };

// Recorder writes records to a Store, on a thread of its own, many in a transaction.
//   Never blocks  record() takes a mutex for a few instructions; where the queue is full the record is dropped and
//   counted. Faults        what can pass (a locked file, a full disk) is tried again after a wait that doubles, with
//   the same
//                 records; a broken file is set aside under another name and a new one begun; a file of a later release
//                 ends the recording. The first fault of a row is told to `log`, and its end.
//   Threads       record() and counts() any; `log` is called by the one that makes the recorder, and by its own.
class Recorder {
 public:
  using Log = std::function<void(Severity, const std::string&)>;

  // Opens the file; if that cannot be now, it is tried again later.
  Recorder(RecorderOptions options, Log log);
  // Writes what is queued, as far as last_wait allows.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void record(Record record);
  // Waits until what was recorded before is written or dropped.
  void flush();
  [[nodiscard]] RecorderCounts counts() const;

 private:
  static constexpr std::size_t kBatch = 1'000;
  using Clock = std::chrono::steady_clock;

  void run();
  bool gather();
  void write_pending();
  bool try_open(std::chrono::milliseconds busy);
  void look_after_store();
  void recover_from(const Fault& fault);
  void set_aside(const Fault& fault);
  void succeeded();
  void wait_to_retry();
  void give_up(std::size_t records);

  RecorderOptions options_;
  Log log_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the thread
  std::condition_variable settled_;  // for flush()
  std::vector<Record> queue_;
  std::uint64_t recorded_ = 0;  // ever, those dropped at once left out
  std::uint64_t settled_count_ = 0;
  bool flushing_ = false;
  bool stop_ = false;
  Clock::time_point stop_by_{};

  // Of the thread alone.
  std::optional<Store> store_;
  std::vector<Record> pending_;
  std::chrono::milliseconds retry_{0};  // 0: the last attempt was good
  Clock::time_point next_prune_{};

  std::atomic<bool> off_{false};  // for good
  std::atomic<std::int64_t> written_{0};
  std::atomic<std::int64_t> dropped_{0};
  std::atomic<std::int64_t> faults_{0};
  std::atomic<std::int64_t> file_bytes_{0};

  std::thread thread_;  // last, for it uses all above
};

}  // namespace balanceroute::history
