// raw_http.hpp - the plainest possible HTTP client for tests: sends bytes, reads bytes.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace balanceroute::test {

// RawClient is one blocking connection to a port on loopback.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) { socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port}); }

  void send(std::string_view bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size())); }
  // Everything received so far, once it holds `mark` or the server has closed.
  const std::string& read_until(std::string_view mark) {
    while (received_.find(mark) == std::string::npos) {
      char bytes[4096];
      boost::system::error_code failure;
      const std::size_t count = socket_.read_some(boost::asio::buffer(bytes), failure);
      received_.append(bytes, count);
      if (failure) break;
    }
    return received_;
  }
  const std::string& read_to_end() { return read_until("\x01 never sent"); }
  void close() { socket_.close(); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_{context_};
  std::string received_;
};

inline std::string post(std::string_view path, std::string_view body, std::string_view more_headers = "") {
  std::string request = "POST " + std::string{path} + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
  request.append(more_headers).append("Content-Length: " + std::to_string(body.size()) + "\r\n\r\n").append(body);
  return request;
}

inline std::string get(std::string_view path) {
  return "GET " + std::string{path} + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
}

// One request on a connection of its own; the whole answer with its head.
inline std::string ask(std::uint16_t port, std::string_view request) {
  RawClient client{port};
  client.send(request);
  return client.read_to_end();
}

inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? std::string{} : answer.substr(end + 4);
}

}  // namespace balanceroute::test
