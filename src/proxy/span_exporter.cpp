#include "proxy/span_exporter.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "net/event.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::chrono::seconds kLongestAnswer{5};
constexpr std::size_t kAnswerBytes = std::size_t{64} * 1024;
constexpr std::size_t kBatchSpans = 2'048;

// Of random ids as many as the ratio says, the same ones everywhere: what OpenTelemetry calls TraceIdRatioBased.
bool is_sampled(const telemetry::TraceId& trace, double ratio) {
  std::uint64_t low = 0;
  for (std::size_t i = 8; i < trace.size(); ++i) low = low << 8 | trace[i];
  return static_cast<double>(low >> 1) < ratio * std::ldexp(1.0, 63);
}

}  // namespace

SpanExporter::SpanExporter(const TracingParams& params, net::IoThread& thread, spdlog::logger& log)
    : params_{params}, thread_{thread}, log_{log} {
  if (params.otlp_endpoint.empty()) return;
  client_.emplace(thread, net::parse_http_url(params.otlp_endpoint).value(), net::ClientOptions{});
}

telemetry::TraceContext SpanExporter::context_of(const std::optional<telemetry::TraceContext>& parent) const {
  if (parent) return parent->child();
  telemetry::TraceContext first = telemetry::new_trace(true);
  // Where nobody records here, engines do as they would without us.
  if (on()) first.sampled = is_sampled(first.trace, params_.sample_ratio);
  return first;
}

void SpanExporter::add(std::vector<telemetry::Span> spans) {
  if (!on()) return;
  const std::scoped_lock lock{mutex_};
  if (waiting_.size() + spans.size() > static_cast<std::size_t>(params_.queue_spans)) {
    counts_.dropped += spans.size();
    return;
  }
  waiting_.insert(waiting_.end(), std::make_move_iterator(spans.begin()), std::make_move_iterator(spans.end()));
}

SpanExporter::Counts SpanExporter::counts() const {
  const std::scoped_lock lock{mutex_};
  return counts_;
}

std::vector<telemetry::Span> SpanExporter::take() {
  const std::scoped_lock lock{mutex_};
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kBatchSpans));
  std::vector<telemetry::Span> taken{std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end)};
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

net::asio::awaitable<void> SpanExporter::run() {
  const auto interval =
      std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{params_.interval_ms});
  net::Event never{thread_};
  for (;;) {
    const net::WaitResult waited = co_await never.wait(thread_.now() + interval);
    if (waited != net::WaitResult::Timeout) co_return;
    co_await flush(thread_.now() + kLongestAnswer);
  }
}

net::asio::awaitable<void> SpanExporter::flush(net::TimePoint deadline) {
  for (auto spans = take(); !spans.empty(); spans = take()) co_await send(spans, deadline);
}

net::asio::awaitable<void> SpanExporter::send(const std::vector<telemetry::Span>& spans, net::TimePoint deadline) {
  const std::string body = telemetry::to_otlp_json(spans, params_.service_name, BALANCEROUTE_VERSION);
  auto failure = co_await post(body, deadline);
  if (failure) failure = co_await post(body, deadline);
  if (failure) {
    drop(spans.size(), *failure);
    co_return;
  }
  told_ = false;
  const std::scoped_lock lock{mutex_};
  counts_.sent += spans.size();
}

// Why they were not taken.
net::asio::awaitable<std::optional<std::string>> SpanExporter::post(const std::string& body, net::TimePoint deadline) {
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/v1/traces";
  request.headers.add("Content-Type", "application/json");
  request.body = body;
  auto call = co_await client_->send(request, deadline);
  if (!call) co_return call.error().detail;
  const auto answer = co_await call->read_all(kAnswerBytes, deadline);
  if (!answer) co_return answer.error().detail;
  const int status = call->head().status;
  if (status / 100 == 2) co_return std::nullopt;
  co_return fmt::format("status {}", status);
}

// Once until they are taken again.
void SpanExporter::drop(std::size_t spans, const std::string& why) {
  {
    const std::scoped_lock lock{mutex_};
    counts_.dropped += spans;
  }
  if (std::exchange(told_, true)) return;
  log_.warn("spans are dropped collector={} reason={}", params_.otlp_endpoint, telemetry::log_value(why));
}

}  // namespace balanceroute::proxy
