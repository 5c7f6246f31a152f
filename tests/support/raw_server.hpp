// raw_server.hpp - a server for tests that answers every request on a connection of its own with given bytes.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace balanceroute::testing_support {

// RawServer reads the head of one request a connection, sends `answer` and closes.
class RawServer {
 public:
  explicit RawServer(std::string answer) : answer_{std::move(answer)}, thread_{[this] { serve(); }} {}
  ~RawServer() {
    stopping_ = true;
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket wake{context};
    boost::system::error_code ignored;
    wake.connect({boost::asio::ip::make_address("127.0.0.1"), port()}, ignored);
    thread_.join();
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::uint16_t port() const { return port_; }
  // The heads of the requests so far.
  std::vector<std::string> heads() const {
    const std::scoped_lock lock{mutex_};
    return heads_;
  }

 private:
  void serve() {
    for (;;) {
      boost::asio::ip::tcp::socket socket = acceptor_.accept();
      if (stopping_) return;
      std::string head;
      boost::system::error_code failure;
      while (head.find("\r\n\r\n") == std::string::npos && !failure) {
        std::array<char, 4096> bytes;
        const std::size_t count = socket.read_some(boost::asio::buffer(bytes), failure);
        head.append(bytes.data(), count);
      }
      {
        const std::scoped_lock lock{mutex_};
        heads_.push_back(head.substr(0, head.find("\r\n\r\n") + 2));
      }
      boost::asio::write(socket, boost::asio::buffer(answer_), failure);
      socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send, failure);
      std::array<char, 4096> rest;
      while (!failure) socket.read_some(boost::asio::buffer(rest), failure);
    }
  }

  std::string answer_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_{context_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::thread thread_;
};

}  // namespace balanceroute::testing_support
