#include "history/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace balanceroute::history {
namespace {

constexpr std::chrono::minutes kPruneEvery{1};
// An open that others wait for.
constexpr std::chrono::milliseconds kFirstOpenBusy{200};

UnixTime now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

Recorder::Recorder(RecorderOptions options, Log log) : options_{std::move(options)}, log_{std::move(log)} {
  (void)try_open(std::min(options_.busy, kFirstOpenBusy));
  thread_ = std::thread{[this] { run(); }};
}

Recorder::~Recorder() {
  {
    const std::scoped_lock lock{mutex_};
    stop_ = true;
    stop_by_ = Clock::now() + options_.last_wait;
  }
  changed_.notify_one();
  thread_.join();
}

void Recorder::record(Record record) {
  std::size_t queued = 0;
  if (!off_.load(std::memory_order_relaxed)) {
    const std::scoped_lock lock{mutex_};
    if (queue_.size() < options_.queue_limit) {
      queue_.push_back(std::move(record));
      queued = queue_.size();
      ++recorded_;
    }
  }
  if (queued == 0) dropped_.fetch_add(1, std::memory_order_relaxed);
  if (queued == 1 || queued == kBatch) changed_.notify_one();
}

void Recorder::flush() {
  std::unique_lock lock{mutex_};
  const std::uint64_t all = recorded_;
  flushing_ = true;
  changed_.notify_one();
  settled_.wait(lock, [&] { return settled_count_ >= all; });
}

RecorderCounts Recorder::counts() const {
  RecorderCounts counts{.written = written_.load(std::memory_order_relaxed),
                        .dropped = dropped_.load(std::memory_order_relaxed),
                        .faults = faults_.load(std::memory_order_relaxed),
                        .file_bytes = file_bytes_.load(std::memory_order_relaxed)};
  const std::scoped_lock lock{mutex_};
  counts.queued = static_cast<std::int64_t>(recorded_ - settled_count_);
  return counts;
}

void Recorder::run() {
  while (gather()) {
    if (try_open(options_.busy)) {
      write_pending();
      look_after_store();
    }
    if (off_) give_up(pending_.size());
    if (retry_.count() > 0) wait_to_retry();
  }
  give_up(pending_.size() + queue_.size());
}

// Waits for records and takes a batch of them; false at the end.
bool Recorder::gather() {
  std::unique_lock lock{mutex_};
  if (pending_.empty()) {
    const auto some = [this] { return stop_ || !queue_.empty(); };
    const auto enough = [this] { return stop_ || flushing_ || queue_.size() >= kBatch; };
    if (!changed_.wait_for(lock, kPruneEvery, some)) return true;
    changed_.wait_for(lock, options_.gather, enough);
    const auto batch = static_cast<std::ptrdiff_t>(std::min(queue_.size(), kBatch));
    const auto end = queue_.begin() + batch;
    pending_.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
  }
  return !stop_ || (!pending_.empty() && Clock::now() < stop_by_ && !off_);
}

// Whether there is a file to write to. One that was broken is followed by a new one at once.
bool Recorder::try_open(std::chrono::milliseconds busy) {
  for (bool again = true; again && !store_ && !off_;) {
    auto opened = Store::open(options_.path, options_.limits, busy);
    if (opened) {
      store_ = *std::move(opened);
    } else {
      again = opened.error().kind == FaultKind::corrupt;
      recover_from(opened.error());
    }
  }
  return store_.has_value();
}

void Recorder::write_pending() {
  if (pending_.empty()) return;
  if (const auto done = store_->append(pending_); !done) {
    recover_from(done.error());
    return;
  }
  const std::size_t records = pending_.size();
  pending_.clear();
  written_.fetch_add(static_cast<std::int64_t>(records), std::memory_order_relaxed);
  succeeded();
  const std::scoped_lock lock{mutex_};
  settled_count_ += records;
  flushing_ = flushing_ && !queue_.empty();
  settled_.notify_all();
}

// Keeps the file within its bounds. A fault here costs no record and is met again a minute later.
void Recorder::look_after_store() {
  if (!store_ || retry_.count() > 0) return;
  const auto used = store_->used_bytes();
  if (used) file_bytes_.store(*used, std::memory_order_relaxed);
  const bool large = used && *used > options_.limits.max_bytes / 10 * 9;
  if (!large && Clock::now() < next_prune_) return;
  next_prune_ = Clock::now() + kPruneEvery;
  const auto pruned = store_->prune(now());
  if (pruned) return;
  faults_.fetch_add(1, std::memory_order_relaxed);
  if (pruned.error().kind == FaultKind::corrupt) set_aside(pruned.error());
}

void Recorder::recover_from(const Fault& fault) {
  faults_.fetch_add(1, std::memory_order_relaxed);
  const bool first = retry_.count() == 0;
  retry_ = first ? options_.first_retry : std::min(retry_ * 2, options_.last_retry);
  switch (fault.kind) {
    case FaultKind::foreign:
      log_(Severity::error, "history is off, " + options_.path.string() + " stays as it is: " + fault.message);
      off_ = true;
      retry_ = {};
      return;
    case FaultKind::corrupt:
      set_aside(fault);
      return;
    case FaultKind::full:
      if (store_) (void)store_->make_room();
      break;
    case FaultKind::io:
      store_.reset();  // the file may be another one by now
      break;
    case FaultKind::busy:
    case FaultKind::other:
      break;
  }
  if (first) {
    log_(Severity::warning, "history cannot be written, requests go on and it is tried again: " +
                                options_.path.string() + ": " + fault.message);
  }
}

void Recorder::set_aside(const Fault& fault) {
  store_.reset();
  const std::string aside =
      options_.path.string() + ".broken-" + std::to_string(now().time_since_epoch().count() / 1000);
  std::error_code failed;
  std::filesystem::rename(options_.path, aside, failed);
  for (const char* beside : {"-wal", "-shm"}) {
    std::error_code none;
    std::filesystem::rename(options_.path.string() + beside, aside + beside, none);
  }
  if (failed) {
    log_(Severity::error, "history is off: " + options_.path.string() + " is broken (" + fault.message +
                              ") and cannot be renamed: " + failed.message());
    off_ = true;
    retry_ = {};
    return;
  }
  log_(Severity::error,
       "history begins anew: " + options_.path.string() + " was broken (" + fault.message + ") and is now " + aside);
}

void Recorder::succeeded() {
  if (retry_.count() > 0) log_(Severity::info, "history is written again: " + options_.path.string());
  retry_ = {};
}

// Sooner at the end.
void Recorder::wait_to_retry() {
  std::unique_lock lock{mutex_};
  const auto until = Clock::now() + retry_;
  changed_.wait_until(lock, until, [this] { return stop_; });
  if (stop_) changed_.wait_until(lock, std::min({until, stop_by_, Clock::now() + options_.first_retry}));
}

void Recorder::give_up(std::size_t records) {
  pending_.clear();
  if (records == 0) return;
  dropped_.fetch_add(static_cast<std::int64_t>(records), std::memory_order_relaxed);
  const std::scoped_lock lock{mutex_};
  settled_count_ += records;
  settled_.notify_all();
}

}  // namespace balanceroute::history
