// request_record.hpp - the one final log line and the one metric of a request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/clock.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/dispatcher.hpp"
#include "telemetry/metrics.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// RequestRecord collects what is known of a request; its destructor writes the line and counts, exactly once, however
// the request ended.
//   Threads  one at a time; the metrics and the logger take care of themselves.
class RequestRecord {
 public:
  RequestRecord(telemetry::RouterMetrics& metrics, spdlog::logger& log, const net::Clock& clock);
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // It has a prefill instance; the instance has answered.
  void prefill_begun(std::string instance);
  void prefill_ended() { prefill_ended_ = clock_.now(); }
  // It has a worker: the rank so many behind that address.
  void placed(std::string worker, std::int32_t rank, const Placed& where);
  // `tokens` output tokens so far, over all answers of the request.
  void progress(std::int64_t tokens);
  void finished(telemetry::Outcome how, int status_sent, std::string why = {});

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

  [[nodiscard]] const std::string& worker() const { return worker_; }
  [[nodiscard]] std::int32_t rank() const { return rank_; }

 private:
  double seconds(net::TimePoint from, net::TimePoint to) const;

  telemetry::RouterMetrics& metrics_;
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
