// span_exporter.hpp - brings finished spans to a collector, in batches, beside the requests and never in their way.
//
// Leaves out TLS: a collector or its agent runs beside the router.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/tracing_params.hpp"
#include "telemetry/otlp.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// SpanExporter holds spans until they are sent. With no endpoint it takes none.
//   Loss     the queue is bounded; what does not fit, and what a collector refuses or has not taken after a second try,
//            is dropped and counted.
//   Threads  add() and counts() any; run() and flush() on `thread`.
class SpanExporter {
 public:
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
  };

  SpanExporter(const TracingParams& params, net::IoThread& thread, spdlog::logger& log);

  [[nodiscard]] bool on() const { return client_.has_value(); }
  // Of a request that comes with that header, or none: where it stands, which is a span of its own.
  [[nodiscard]] telemetry::TraceContext context_of(const std::optional<telemetry::TraceContext>& parent) const;

  void add(std::vector<telemetry::Span> spans);
  [[nodiscard]] Counts counts() const;

  // Sends what has come, every interval, until it is cancelled.
  net::asio::awaitable<void> run();
  // Sends what is left, if the collector takes it by then.
  net::asio::awaitable<void> flush(net::TimePoint deadline);

 private:
  std::vector<telemetry::Span> take();
  net::asio::awaitable<void> send(const std::vector<telemetry::Span>& spans, net::TimePoint deadline);
  net::asio::awaitable<std::optional<std::string>> post(const std::string& body, net::TimePoint deadline);
  void drop(std::size_t spans, const std::string& why);

  const TracingParams params_;
  net::IoThread& thread_;
  spdlog::logger& log_;
  std::optional<net::HttpClient> client_;
  mutable std::mutex mutex_;
  std::vector<telemetry::Span> waiting_;  // guarded
  Counts counts_;                         // guarded
  bool told_ = false;                     // the log knows that spans are dropped
};

}  // namespace balanceroute::proxy
