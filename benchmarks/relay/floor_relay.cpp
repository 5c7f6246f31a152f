#include "relay/floor_relay.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "relay/socket.hpp"

namespace balanceroute::relay_bench {

namespace {

// Relay moves bytes between pairs of sockets.
class Relay {
 public:
  explicit Relay(const std::vector<std::uint16_t>& engines) : engines_{engines} { watch(epoll_, listener_, 0); }

  [[nodiscard]] std::uint16_t port() const { return port_of(listener_); }

  [[noreturn]] void run() {
    std::array<epoll_event, 256> events;
    while (true) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
        if (tag == 0) {
          accept_all();
        } else {
          move(tag - 1);
        }
      }
    }
  }

 private:
  void accept_all() {
    for (Descriptor client = accept_one(listener_); client.get() >= 0; client = accept_one(listener_)) {
      Descriptor engine = connect_to(engines_[turn_++ % engines_.size()]);
      watch(epoll_, client, 1 + sockets_.size());
      watch(epoll_, engine, 2 + sockets_.size());
      sockets_.push_back(std::move(client));
      sockets_.push_back(std::move(engine));
    }
  }

  // From the socket to the other one of its pair; both end together.
  void move(std::size_t index) {
    std::array<char, 16'384> bytes;
    const ssize_t got = ::recv(sockets_[index].get(), bytes.data(), bytes.size(), 0);
    const std::size_t other = index ^ 1U;
    if (got > 0 && write_all(sockets_[other], {bytes.data(), static_cast<std::size_t>(got)})) return;
    sockets_[index] = {};
    sockets_[other] = {};
  }

  std::vector<std::uint16_t> engines_;
  std::size_t turn_ = 0;
  Descriptor listener_ = listen_on_loopback();
  Descriptor epoll_ = make_epoll();
  std::vector<Descriptor> sockets_;  // client, its engine, client, its engine ...
};

}  // namespace

void run_floor_relay(int told, const std::vector<std::uint16_t>& engines) {
  Relay relay{engines};
  const std::string port = std::to_string(relay.port()) + "\n";
  if (::write(told, port.data(), port.size()) < 0) give_up("write");
  ::close(told);
  relay.run();
}

}  // namespace balanceroute::relay_bench
