// raw_client.hpp - a blocking HTTP client for tests: sends bytes as they are, reads until a mark or the end.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace balanceroute::testing_support {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) { socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port}); }

  void send(std::string_view bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }

  // Everything received so far, once it holds `mark` or the peer has closed.
  const std::string& read_until(std::string_view mark) { return read_from(0, mark); }
  // The same, once the mark is at `begin` or behind it.
  const std::string& read_from(std::size_t begin, std::string_view mark) {
    while (received_.find(mark, begin) == std::string::npos) {
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

// `more_headers` are whole lines, each with its end.
inline std::string http_request(std::string_view method, std::string_view path, std::string_view body = "",
                                std::string_view more_headers = "") {
  return std::string{method} + " " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
         std::string{more_headers} + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}

// One request, as text, on a connection of its own, and its whole answer, head included.
inline std::string http_exchange(std::uint16_t port, std::string_view request) {
  RawClient client{port};
  client.send(request);
  return client.read_to_end();
}

inline std::string http_exchange(std::uint16_t port, std::string_view method, std::string_view path,
                                 std::string_view body = "") {
  return http_exchange(port, http_request(method, path, body));
}

// The part behind the head.
inline std::string body_of(const std::string& answer) {
  const auto head_end = answer.find("\r\n\r\n");
  return head_end == std::string::npos ? "" : answer.substr(head_end + 4);
}

}  // namespace balanceroute::testing_support
