// stream_load.hpp - clients of the relay benchmark: so many streams at once, each followed by another.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "relay/socket.hpp"

namespace balanceroute::relay_bench {

// StreamLoad keeps streams running against one port and notes how long events took from their engine.
//   Threads  one of its own; taking is for any other.
class StreamLoad {
 public:
  StreamLoad(std::uint16_t port, std::size_t streams);
  ~StreamLoad();

  // Nanoseconds from the engine's write to the client's read, of every event since the last call.
  [[nodiscard]] std::vector<std::int64_t> take_latencies();
  // Streams that broke off before their end.
  [[nodiscard]] std::size_t broken() const { return broken_; }
  [[nodiscard]] std::size_t open() const { return open_; }

 private:
  struct Stream {
    Descriptor socket;
    std::string received;
    bool began = false;
  };

  void run();
  void begin(std::size_t index);
  void hear(std::size_t index);

  std::uint16_t port_;
  Descriptor epoll_ = make_epoll();
  std::vector<Stream> streams_;
  std::mutex mutex_;
  std::vector<std::int64_t> latencies_;  // under mutex_
  std::vector<std::int64_t> fresh_;
  std::atomic<std::size_t> broken_{0};
  std::atomic<std::size_t> open_{0};  // that have had an event
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace balanceroute::relay_bench
