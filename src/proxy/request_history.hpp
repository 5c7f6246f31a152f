// request_history.hpp - the router's side of the history: where finished requests are kept, and the hash of their
// prompts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "history/history_params.hpp"
#include "history/keyed_hash.hpp"
#include "history/record.hpp"
#include "history/recorder.hpp"

namespace prometheus {
struct MetricFamily;
}

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// RequestHistory keeps finished requests if the settings name a file, and nothing otherwise. Whatever is wrong with the
// file is a line of the log: requests go on.
//   Hash     under the key of the installation, in a file beside the history; without a history, or where that file
//   cannot
//            be had, under a key of this process.
//   Threads  any.
class RequestHistory {
 public:
  RequestHistory(const history::HistoryParams& params, const std::shared_ptr<spdlog::logger>& log);

  [[nodiscard]] bool on() const { return recorder_ != nullptr; }
  [[nodiscard]] const history::KeyedHash& hash() const { return hash_; }
  void keep(history::Record record) {
    if (recorder_) recorder_->record(std::move(record));
  }
  // The last so many requests that ended at the fleet, in order of their ends; none where they cannot be read.
  [[nodiscard]] std::vector<history::Record> latest(const std::string& fleet, std::int64_t count) const;
  // None while it is off.
  [[nodiscard]] std::vector<prometheus::MetricFamily> families() const;

 private:
  std::string path_;
  std::shared_ptr<spdlog::logger> log_;
  std::unique_ptr<history::Recorder> recorder_;  // none: off
  history::KeyedHash hash_;
};

}  // namespace balanceroute::proxy
