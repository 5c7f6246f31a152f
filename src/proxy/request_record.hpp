// request_record.hpp - the one final log line, the one metric, the spans and the one row of history of a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/clock.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/prompt_keys.hpp"
#include "proxy/request_history.hpp"
#include "proxy/request_trace.hpp"
#include "telemetry/metrics.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// RequestRecord collects what is known of a request; its destructor writes the line, counts, hands over the spans and,
// where there is one, adds to the history, exactly once, however the request ended.
//   Threads  one at a time; the metrics and the logger take care of themselves.
class RequestRecord {
 public:
  // `headers` of the client.
  RequestRecord(telemetry::RouterMetrics& metrics, spdlog::logger& log, SpanExporter& spans, const net::Clock& clock,
                const net::HeaderList& headers);
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // It has a prefill instance; the instance has answered.
  void prefill_begun(std::string instance);
  void prefill_ended();
  // It has a worker: the rank so many behind that address.
  void placed(std::string worker, std::int32_t rank, const Placed& where);
  // `tokens` output tokens so far, over all answers of the request.
  void progress(std::int64_t tokens);
  void finished(telemetry::Outcome how, int status_sent, std::string why = {});
  // That history gets it too, as one of the fleet's.
  void keep_in(RequestHistory& history, std::string fleet);

  std::string id;         // ours, sent to the worker as X-Request-Id
  std::string client;     // its address
  std::string client_id;  // the client's, echoed
  std::string tenant{kDefaultTenantName};
  std::string path;
  std::string model;
  std::int32_t sequences = 1;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int32_t tries = 1;
  RequestTrace trace;
  // For the history.
  std::string group;
  std::int64_t placed_prompt_tokens = 0;  // an estimate, if the engine never counts them
  std::optional<std::int64_t> cached_tokens;
  std::optional<std::int64_t> output_limit;
  PromptKeys keys;

  [[nodiscard]] const std::string& worker() const { return worker_; }
  [[nodiscard]] std::int32_t rank() const { return rank_; }

 private:
  RequestTrace::Summary summary(const telemetry::RequestTimes& times) const;
  double seconds(net::TimePoint from, net::TimePoint to) const;
  history::Record for_history(net::TimePoint now);

  telemetry::RouterMetrics& metrics_;
  RequestHistory* history_ = nullptr;
  std::string fleet_;
  spdlog::logger& log_;
  const net::Clock& clock_;
  net::TimePoint arrived_;
  net::TimePoint prefill_begun_ = net::kNever;
  net::TimePoint prefill_ended_ = net::kNever;
  net::TimePoint placed_ = net::kNever;
  std::string prefill_;
  std::string worker_;
  std::int32_t rank_ = -1;
  std::optional<Placed> where_;
  net::TimePoint first_token_ = net::kNever;
  net::TimePoint last_token_ = net::kNever;
  // What an end without a word means.
  telemetry::Outcome outcome_ = telemetry::Outcome::ClientLeft;
  int status_ = 499;
  std::string reason_;
};

}  // namespace balanceroute::proxy
