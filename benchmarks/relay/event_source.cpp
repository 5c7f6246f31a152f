#include "relay/event_source.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <array>
#include <charconv>

#include <string_view>

namespace balanceroute::relay_bench {

namespace {

using std::chrono::steady_clock;

constexpr std::string_view kMark = R"("text":" )";
constexpr std::size_t kDigits = 16;
constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kEmpty = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
constexpr std::string_view kDone = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

std::string chunk(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

std::string usage(std::int64_t tokens) {
  return fmt::format(R"("usage":{{"prompt_tokens":4,"total_tokens":{},"completion_tokens":{}}})", tokens + 4, tokens);
}

}  // namespace

std::int64_t next_send_time(const std::string& bytes, std::size_t& at) {
  const std::size_t mark = bytes.find(kMark, at);
  if (mark == std::string::npos || mark + kMark.size() + kDigits > bytes.size()) return 0;
  const char* digits = bytes.data() + mark + kMark.size();
  std::int64_t time = 0;
  std::from_chars(digits, digits + kDigits, time, 16);
  at = mark + kMark.size() + kDigits;
  return time;
}

EventSource::EventSource(const SourceParams& params) : params_{params} {
  for (std::size_t i = 0; i < params.ports; ++i) {
    listeners_.push_back(listen_on_loopback());
    watch(epoll_, listeners_.back(), i);
  }
  thread_ = std::thread{[this] { run(); }};
}

EventSource::~EventSource() {
  stop_ = true;
  thread_.join();
}

std::vector<std::uint16_t> EventSource::ports() const {
  std::vector<std::uint16_t> ports;
  for (const Descriptor& listener : listeners_) ports.push_back(port_of(listener));
  return ports;
}

void EventSource::run() {
  std::array<epoll_event, 256> events;
  auto next = steady_clock::now() + params_.step;
  while (!stop_) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - steady_clock::now());
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), events.size(), std::max(0, static_cast<int>(wait.count())));
    for (int i = 0; i < count; ++i) hear(events[static_cast<std::size_t>(i)].data.u64);
    if (steady_clock::now() < next) continue;
    step();
    next += params_.step;
  }
}

void EventSource::hear(std::uint64_t tag) {
  if (tag < listeners_.size()) {
    accept_all(listeners_[tag]);
    return;
  }
  Stream& stream = streams_[tag - listeners_.size()];
  if (!read_into(stream.socket, stream.received)) {
    stream = {};
    return;
  }
  if (const std::size_t end = stream.received.find("\r\n\r\n"); end != std::string::npos) {
    const bool has_body = stream.received.starts_with("POST");
    // A body is complete with its last brace: the benchmark's own requests are one JSON object.
    if (!has_body || stream.received.ends_with("}")) answer(stream);
  }
}

void EventSource::accept_all(const Descriptor& listener) {
  for (Descriptor socket = accept_one(listener); socket.get() >= 0; socket = accept_one(listener)) {
    watch(epoll_, socket, listeners_.size() + streams_.size());
    streams_.push_back({.socket = std::move(socket), .received = {}});
  }
}

void EventSource::answer(Stream& stream) {
  const bool completion = stream.received.starts_with("POST /v1/completions");
  stream.usage = stream.received.contains(R"("include_usage")");
  stream.usage_always = stream.received.contains(R"("continuous_usage_stats")");
  stream.received.clear();
  if (completion) stream.left = params_.tokens;
  if (!write_all(stream.socket, completion ? kStreamHead : kEmpty)) stream = {};
}

void EventSource::step() {
  for (Stream& stream : streams_) {
    if (stream.left > 0 && !send_event(stream)) stream = {};
  }
}

bool EventSource::send_event(Stream& stream) {
  --stream.left;
  const std::int64_t tokens = params_.tokens - stream.left;
  const auto now = steady_clock::now().time_since_epoch().count();
  const std::string_view reason = stream.left == 0 ? R"("length")" : "null";
  std::string event = fmt::format(
      R"(data: {{"id":"cmpl-5f2a91c04be84ad2","object":"text_completion","created":1700000000,"model":"bench",)"
      R"("choices":[{{"index":0,"text":" {:016x}","logprobs":null,"finish_reason":{},"stop_reason":null}}])",
      now, reason);
  if (stream.usage_always) event += "," + usage(tokens);
  std::string bytes = chunk(event + "}\n\n");
  if (stream.left == 0) {
    if (stream.usage) {
      bytes += chunk(R"(data: {"id":"cmpl-5f2a91c04be84ad2","object":"text_completion","created":1700000000,)"
                     R"("model":"bench","choices":[],)" +
                     usage(tokens) + "}\n\n");
    }
    bytes += kDone;
  }
  return write_all(stream.socket, bytes);
}

}  // namespace balanceroute::relay_bench
