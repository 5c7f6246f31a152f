// event_source.hpp - engines of the relay benchmark: every stream gets one event in every step, at the same moment.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "relay/socket.hpp"

namespace balanceroute::relay_bench {

struct SourceParams {
  std::size_t ports = 8;  // one for each engine
  std::chrono::nanoseconds step = std::chrono::milliseconds{20};
  std::int64_t tokens = 400;  // of an answer; an event each
};

// EventSource answers completions with a stream of timed events, and everything else with an empty 200.
//   Events   vLLM's shape; the text is the send time (16 hex digits of steady-clock nanoseconds) after a space.
//   Threads  one of its own, from construction to destruction.
class EventSource {
 public:
  explicit EventSource(const SourceParams& params);
  ~EventSource();

  [[nodiscard]] std::vector<std::uint16_t> ports() const;

 private:
  struct Stream {
    Descriptor socket;
    std::string received;
    std::int64_t left = 0;  // tokens to come; 0: nothing asked
    bool usage = false;     // asked for it after the last token
    bool usage_always = false;
  };

  void run();
  void accept_all(const Descriptor& listener);
  void hear(std::uint64_t tag);
  void answer(Stream& stream);
  void step();
  [[nodiscard]] bool send_event(Stream& stream);

  SourceParams params_;
  std::vector<Descriptor> listeners_;
  Descriptor epoll_ = make_epoll();
  std::vector<Stream> streams_;  // by tag - listeners; those that have left keep their place
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The send time in an event that is found from `at` on; moves `at` behind it. 0: there is none that is complete.
[[nodiscard]] std::int64_t next_send_time(const std::string& bytes, std::size_t& at);

}  // namespace balanceroute::relay_bench
