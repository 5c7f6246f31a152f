// socket.hpp - plain non-blocking loopback sockets for the relay benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace balanceroute::relay_bench {

// Descriptor owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_{fd} {}
  Descriptor(Descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// The functions below end the program with a message where the system refuses: a benchmark has no way to go on.

// Listens on a free port of 127.0.0.1.
[[nodiscard]] Descriptor listen_on_loopback();
[[nodiscard]] std::uint16_t port_of(const Descriptor& listener);
// The next connection that waits; none: get() is -1.
[[nodiscard]] Descriptor accept_one(const Descriptor& listener);
// A connection to 127.0.0.1 that may still be on its way.
[[nodiscard]] Descriptor connect_to(std::uint16_t port);

[[nodiscard]] Descriptor make_epoll();
// `tag` comes back with each event of `fd`.
void watch(const Descriptor& epoll, const Descriptor& fd, std::uint64_t tag);

// Writes all: a peer that reads keeps room in the socket's buffer. False if it has left.
[[nodiscard]] bool write_all(const Descriptor& fd, std::string_view bytes);
// Appends what has come; false when the peer has left.
[[nodiscard]] bool read_into(const Descriptor& fd, std::string& bytes);

[[noreturn]] void give_up(std::string_view what);

}  // namespace balanceroute::relay_bench
