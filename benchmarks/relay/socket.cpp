#include "relay/socket.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace balanceroute::relay_bench {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Descriptor new_socket() {
  Descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (fd.get() < 0) give_up("socket");
  return fd;
}

void send_at_once(const Descriptor& fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void give_up(std::string_view what) {
  std::cerr << "bench_relay: " << what << ": " << std::strerror(errno) << "\n";
  std::exit(1);
}

Descriptor listen_on_loopback() {
  Descriptor fd = new_socket();
  const sockaddr_in address = loopback(0);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("bind");
  if (::listen(fd.get(), SOMAXCONN) != 0) give_up("listen");
  return fd;
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) give_up("getsockname");
  return ntohs(address.sin_port);
}

Descriptor accept_one(const Descriptor& listener) {
  Descriptor fd{::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (fd.get() >= 0) send_at_once(fd);
  return fd;
}

Descriptor connect_to(std::uint16_t port) {
  Descriptor fd = new_socket();
  send_at_once(fd);
  const sockaddr_in address = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno != EINPROGRESS) {
    give_up("connect");
  }
  return fd;
}

Descriptor make_epoll() {
  Descriptor fd{::epoll_create1(EPOLL_CLOEXEC)};
  if (fd.get() < 0) give_up("epoll_create1");
  return fd;
}

void watch(const Descriptor& epoll, const Descriptor& fd, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) give_up("epoll_ctl");
}

bool write_all(const Descriptor& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno != EAGAIN && errno != ENOTCONN) return false;
    pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    ::poll(&ready, 1, 1000);
  }
  return true;
}

bool read_into(const Descriptor& fd, std::string& bytes) {
  std::array<char, 16'384> part;
  while (true) {
    const ssize_t got = ::recv(fd.get(), part.data(), part.size(), 0);
    if (got > 0) {
      bytes.append(part.data(), static_cast<std::size_t>(got));
      if (static_cast<std::size_t>(got) < part.size()) return true;
    } else {
      return got < 0 && errno == EAGAIN;
    }
  }
}

}  // namespace balanceroute::relay_bench
