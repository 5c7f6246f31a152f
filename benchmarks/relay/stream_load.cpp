#include "relay/stream_load.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <array>
#include <chrono>

#include "relay/event_source.hpp"

namespace balanceroute::relay_bench {

namespace {

constexpr std::string_view kEnd = "data: [DONE]";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string request() {
  const std::string body = R"({"model":"bench","prompt":"once upon a time","max_tokens":100000,"stream":true})";
  return fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

}  // namespace

StreamLoad::StreamLoad(std::uint16_t port, std::size_t streams) : port_{port}, streams_(streams) {
  thread_ = std::thread{[this] { run(); }};
}

StreamLoad::~StreamLoad() {
  stop_ = true;
  thread_.join();
}

std::vector<std::int64_t> StreamLoad::take_latencies() {
  const std::lock_guard lock{mutex_};
  return std::exchange(latencies_, {});
}

void StreamLoad::run() {
  for (std::size_t i = 0; i < streams_.size(); ++i) begin(i);
  std::array<epoll_event, 256> events;
  while (!stop_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 10);
    for (int i = 0; i < count; ++i) hear(events[static_cast<std::size_t>(i)].data.u64);
    const std::lock_guard lock{mutex_};
    latencies_.insert(latencies_.end(), fresh_.begin(), fresh_.end());
    fresh_.clear();
  }
}

void StreamLoad::begin(std::size_t index) {
  Stream& stream = streams_[index];
  stream.socket = connect_to(port_);
  watch(epoll_, stream.socket, index);
  if (!write_all(stream.socket, request())) ++broken_;
}

void StreamLoad::hear(std::size_t index) {
  Stream& stream = streams_[index];
  const bool open = read_into(stream.socket, stream.received);
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::size_t at = 0;
  while (const std::int64_t sent = next_send_time(stream.received, at)) {
    fresh_.push_back(now - sent);
    if (!std::exchange(stream.began, true)) ++open_;
  }
  const bool ended = stream.received.find(kEnd, at) != std::string::npos && stream.received.ends_with(kLastChunk);
  if (ended) {
    stream.received.clear();
    if (!write_all(stream.socket, request())) ++broken_;
  } else if (!open) {
    ++broken_;
    stream.received.clear();
    begin(index);
  } else {
    stream.received.erase(0, at);
  }
}

}  // namespace balanceroute::relay_bench
