#include "proxy/request_history.hpp"

#include <spdlog/spdlog.h>

#include "history/reader.hpp"
#include "telemetry/metrics.hpp"

namespace balanceroute::proxy {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using telemetry::add_sample;
using telemetry::make_family;

history::Recorder::Log log_to(std::shared_ptr<spdlog::logger> log) {
  return [log = std::move(log)](history::Severity severity, const std::string& text) {
    if (severity == history::Severity::error) {
      log->error("{}", text);
    } else if (severity == history::Severity::warning) {
      log->warn("{}", text);
    } else {
      log->info("{}", text);
    }
  };
}

history::HashKey key_for(const history::HistoryParams& params, spdlog::logger& log) {
  if (!params.on()) return history::random_key();
  auto key = history::installed_key(params.path + ".key");
  if (key) return *key;
  log.warn("prompts of this run are not known again in the history after it: {}", key.error());
  return history::random_key();
}

}  // namespace

RequestHistory::RequestHistory(const history::HistoryParams& params, const std::shared_ptr<spdlog::logger>& log)
    : path_{params.path},
      log_{log},
      recorder_{params.on() ? std::make_unique<history::Recorder>(
                                  history::RecorderOptions{.path = params.path, .limits = params.limits()}, log_to(log))
                            : nullptr},
      hash_{key_for(params, *log)} {}

std::vector<history::Record> RequestHistory::latest(const std::string& fleet, std::int64_t count) const {
  if (!recorder_ || count == 0) return {};
  auto reader = history::Reader::open(path_);
  std::expected<std::vector<history::Record>, history::Fault> records;
  if (reader) {
    records = reader->latest(fleet, count);
  } else {
    records = std::unexpected(reader.error());
  }
  if (records) return *std::move(records);
  log_->warn("fleet={} learns nothing from its history: {}", fleet, records.error().message);
  return {};
}

std::vector<MetricFamily> RequestHistory::families() const {
  if (!recorder_) return {};
  const history::RecorderCounts counts = recorder_->counts();
  std::vector<MetricFamily> families;
  const auto add = [&families](const char* name, const char* help, MetricType type, std::int64_t value) {
    MetricFamily family = make_family(name, help, type);
    add_sample(family, {}, static_cast<double>(value));
    families.push_back(std::move(family));
  };
  add("balanceroute_history_written_total", "Finished requests written to the history.", MetricType::Counter,
      counts.written);
  add("balanceroute_history_dropped_total", "Finished requests that the history has lost.", MetricType::Counter,
      counts.dropped);
  add("balanceroute_history_faults_total", "Failed operations on the history's file.", MetricType::Counter,
      counts.faults);
  add("balanceroute_history_queued_requests", "Finished requests that wait to be written.", MetricType::Gauge,
      counts.queued);
  add("balanceroute_history_file_bytes", "Size of the history in use.", MetricType::Gauge, counts.file_bytes);
  return families;
}

}  // namespace balanceroute::proxy
