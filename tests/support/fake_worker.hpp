// fake_worker.hpp - an engine whose answers a test writes, byte for byte.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net/clock.hpp"
#include "net/event.hpp"
#include "net/server.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::testing_support {

// A worker that answers as the test says and keeps what it was sent.
class FakeWorker {
 public:
  explicit FakeWorker(net::HttpHandler handler) : handler_{std::move(handler)} {
    port_ = *server_.listen("127.0.0.1", 0);
    threads_.start();
  }
  ~FakeWorker() {
    server_.stop();
    threads_.stop();
  }
  std::uint16_t port() const { return port_; }
  std::vector<net::HttpRequest> requests() {
    const std::scoped_lock lock{mutex_};
    return requests_;
  }
  // Ends of handlers because the router closed the connection.
  std::size_t closes() const { return closes_; }

 private:
  net::asio::awaitable<void> handle(net::HttpExchange& exchange) {
    {
      const std::scoped_lock lock{mutex_};
      requests_.push_back(exchange.request());
    }
    struct CountClose {
      net::HttpExchange& exchange;
      std::atomic<std::size_t>& closes;
      ~CountClose() {
        if (exchange.client_left()) ++closes;
      }
    } count{exchange, closes_};
    co_await handler_(exchange);
  }

  net::HttpHandler handler_;
  std::mutex mutex_;
  std::vector<net::HttpRequest> requests_;
  std::atomic<std::size_t> closes_{0};
  net::SteadyClock clock_;
  net::IoThreads threads_{1, "worker", clock_};
  net::HttpServer server_{threads_, {}, [this](net::HttpExchange& exchange) { return handle(exchange); }};
  std::uint16_t port_ = 0;
};

inline std::string chunk(const std::string& text) {
  return R"(data: {"id":"c","choices":[{"index":0,"delta":{"content":")" + text +
         R"("}}]})"
         "\n\n";
}
inline const std::string kFinish =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
inline const std::string kUsage =
    "data: "
    "{\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":11,\"completion_tokens\":2}}\n\n";
inline const std::string kDone = "data: [DONE]\n\n";

inline void start_stream(net::HttpExchange& exchange) {
  net::HttpResponse head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  exchange.start(head);
}

inline net::HttpHandler streams(std::vector<std::string> writes) {
  return [writes](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    for (const std::string& bytes : writes) {
      exchange.write(bytes);
      co_await exchange.flushed();
    }
    co_await exchange.finish();
  };
}

inline net::HttpHandler hangs_after(std::string bytes) {
  return [bytes](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    exchange.write(bytes);
    net::Event never{exchange.thread()};
    co_await never.wait();
  };
}

// Undoes chunk framing.
inline std::string unchunked(const std::string& answer) {
  std::string body = body_of(answer);
  std::string out;
  while (!body.empty()) {
    const std::size_t size = std::stoul(body, nullptr, 16);
    const std::size_t start = body.find("\r\n") + 2;
    if (size == 0) break;
    out += body.substr(start, size);
    body.erase(0, start + size + 2);
  }
  return out;
}

}  // namespace balanceroute::testing_support
