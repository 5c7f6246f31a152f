// HttpServer and HttpClient on real sockets: answers, streams, clients that leave, limits, draining.
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "net/client.hpp"
#include "net/server.hpp"
#include "net/task_group.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::net {
namespace {

using namespace std::chrono_literals;

using testing_support::RawClient;

class ServerClient : public testing::Test {
 protected:
  void serve(HttpHandler handler, ServerOptions options = {}) {
    server_.emplace(threads_, std::move(options), std::move(handler));
    const auto port = server_->listen("127.0.0.1", 0);
    ASSERT_TRUE(port) << port.error().detail;
    port_ = *port;
    threads_.start();
  }

  void TearDown() override {
    if (server_) server_->stop();
    threads_.stop();
    server_.reset();
  }

  // Runs a client coroutine on a thread of its own and returns its result.
  template <class Result>
  Result run_client(std::function<asio::awaitable<Result>(HttpClient&)> body, ClientOptions options = {}) {
    IoThread thread{"client", clock_};
    thread.start();
    std::promise<Result> result;
    {
      std::optional<HttpClient> client;
      std::optional<TaskGroup> tasks;
      thread.call([&] {
        client.emplace(thread, Endpoint{"127.0.0.1", port_}, options);
        tasks.emplace(thread, [](std::exception_ptr failure) { std::rethrow_exception(failure); });
        tasks->spawn([](auto& run, auto& on, auto& out) -> asio::awaitable<void> {
          Result value = co_await run(on);
          out.set_value(std::move(value));
        }(body, *client, result));
      });
      auto value = result.get_future().get();
      bool ended = false;
      while (!ended) thread.call([&] { ended = tasks->size() == 0; });
      thread.call([&] { client.reset(); });
      thread.stop();
      return value;
    }
  }

  SteadyClock clock_;
  IoThreads threads_{2, "server", clock_};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
};

asio::awaitable<void> echo(HttpExchange& exchange) {
  co_await exchange.respond(text_response(200, exchange.request().method + ":" + exchange.request().body));
}

// Law: requests on one connection are answered one after another, also when they are sent ahead.
TEST_F(ServerClient, PipelinedRequestsAreAnsweredInOrder) {
  serve(echo);
  RawClient client{port_};
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\n2");
  const std::string all = client.read_to_end();
  const auto first = all.find("POST:1");
  const auto second = all.find("POST:2");
  ASSERT_NE(first, std::string::npos) << all;
  ASSERT_NE(second, std::string::npos) << all;
  EXPECT_LT(first, second);
}

// Law: a stream arrives whole through the client, and its connection is used again.
TEST_F(ServerClient, StreamsPassAndConnectionsAreKept) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    exchange.start(HttpResponse{.status = 200, .headers = {}, .body = {}});
    for (int i = 0; i < 100; ++i) exchange.write("data: " + std::to_string(i) + "\n\n");
    co_await exchange.finish();
  });
  const auto sizes =
      run_client<std::vector<std::size_t>>([](HttpClient& client) -> asio::awaitable<std::vector<std::size_t>> {
        std::vector<std::size_t> out;
        for (int round = 0; round < 3; ++round) {
          HttpRequest request;
          auto call = co_await client.send(request, kNever);
          if (!call) co_return out;
          auto body = co_await call->read_all(1 << 20, kNever);
          out.push_back(body ? body->size() : 0);
        }
        co_return out;
      });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{990, 990, 990}));
  EXPECT_LE(server_->open_connections(), 1u);
}

// Law: the handler is cancelled when the client closes, although no byte moves.
TEST_F(ServerClient, SilentHandlerIsCancelledWhenTheClientCloses) {
  std::promise<bool> left;
  serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    struct Report {
      HttpExchange& exchange;
      std::promise<bool>& left;
      ~Report() { left.set_value(exchange.client_left()); }
    } report{exchange, left};
    Event never{exchange.thread()};
    co_await never.wait();
  });
  RawClient client{port_};
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.close();
  auto outcome = left.get_future();
  ASSERT_EQ(outcome.wait_for(5s), std::future_status::ready);
  EXPECT_TRUE(outcome.get());
}

// Law: a handler that fails half way breaks the connection; the client never sees a proper end.
TEST_F(ServerClient, BrokenAnswerIsNotEndedProperly) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    exchange.start(HttpResponse{});
    exchange.write("half");
    throw std::runtime_error("broken");
    co_return;
  });
  RawClient client{port_};
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_EQ(all.find("\r\n0\r\n\r\n"), std::string::npos) << all;
}

// Law: what is refused is answered with its status and then closed.
TEST_F(ServerClient, BadRequestsAreRefusedInWords) {
  serve(echo, {.limits = {.head_bytes = 300, .body_bytes = 8}});
  const auto answer = [&](std::string_view wire) {
    RawClient client{port_};
    client.send(wire);
    return client.read_to_end();
  };
  EXPECT_TRUE(answer("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123456789").starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(answer("GET / HTTP/1.1\r\nX: " + std::string(400, 'a') + "\r\n\r\n").starts_with("HTTP/1.1 431 "));
  EXPECT_NE(answer("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").find("HTTP/2 is not supported"), std::string::npos);
}

TEST_F(ServerClient, ContinueIsSentBeforeTheBodyIsRead) {
  serve(echo);
  RawClient client{port_};
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 100 Continue"));
  client.send("ok");
  EXPECT_NE(client.read_until("POST:ok").find("POST:ok"), std::string::npos);
}

// Law: an HTTP/1.0 client gets a stream without chunk framing, ended by close.
TEST_F(ServerClient, Http10StreamsEndWithTheConnection) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    exchange.start(HttpResponse{});
    exchange.write("plain");
    co_await exchange.finish();
  });
  RawClient client{port_};
  client.send("GET / HTTP/1.0\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n\r\nplain")) << all;
}

// Law: bytes for a client that reads slowly are kept in order, across the socket's own buffer.
TEST_F(ServerClient, SlowClientGetsEverythingInOrder) {
  constexpr std::size_t kParts = 400;
  serve(
      [](HttpExchange& exchange) -> asio::awaitable<void> {
        exchange.start(HttpResponse{});
        for (std::size_t i = 0; i < kParts; ++i) {
          const WriteStatus status = exchange.write(std::string(50'000, static_cast<char>('a' + i % 26)));
          if (status == WriteStatus::Full) {
            const WriteStatus room = co_await exchange.drained();
            if (room == WriteStatus::Gone) co_return;
          }
        }
        co_await exchange.finish();
      },
      {.write_buffer_bytes = 200'000});
  const auto ok = run_client<bool>([](HttpClient& client) -> asio::awaitable<bool> {
    HttpRequest request;
    auto call = co_await client.send(request, kNever);
    if (!call) co_return false;
    auto body = co_await call->read_all(1 << 30, kNever);
    if (!body || body->size() != kParts * 50'000) co_return false;
    for (std::size_t i = 0; i < kParts; ++i) {
      if ((*body)[i * 50'000] != static_cast<char>('a' + i % 26)) co_return false;
    }
    co_return true;
  });
  EXPECT_TRUE(ok);
}

// Law: a deadline ends a call, as a timeout.
TEST_F(ServerClient, DeadlineEndsACall) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    Event never{exchange.thread()};
    co_await never.wait();
  });
  const auto fault = run_client<std::string>([this](HttpClient& client) -> asio::awaitable<std::string> {
    HttpRequest request;
    const auto call = co_await client.send(request, clock_.now() + 20ms);
    co_return call ? "answered" : std::string{to_string(call.error().fault)};
  });
  EXPECT_EQ(fault, "timeout");
}

// Law: draining closes idle connections and lets a running request end.
TEST_F(ServerClient, DrainLetsRunningRequestsEnd) {
  std::promise<IoThread*> running;
  Event* release = nullptr;
  serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    Event gate{exchange.thread()};
    release = &gate;
    running.set_value(&exchange.thread());
    co_await gate.wait();
    co_await exchange.respond(text_response(200, "late"));
  });
  RawClient idle{port_};
  RawClient busy{port_};
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  IoThread* thread = running.get_future().get();
  server_->drain();
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_FALSE(server_->wait_until_idle(1ms));
  thread->post([&] { release->set(); });
  const std::string answer = busy.read_to_end();
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("late")) << answer;
}

// Law: while accepting is paused connects are refused and open connections go on; the port is the same afterwards.
TEST_F(ServerClient, PausedServerRefusesConnections) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> { co_await exchange.respond(text_response(200, "here")); });
  RawClient open{port_};
  open.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  open.read_until("here");
  threads_.at(0).call([&] { server_->pause_accepting(); });
  EXPECT_THROW(RawClient{port_}, boost::system::system_error);
  open.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(open.read_to_end().ends_with("here"));
  threads_.at(0).call([&] { EXPECT_TRUE(server_->resume_accepting()); });
  RawClient again{port_};
  again.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(again.read_to_end().ends_with("here"));
}

// Law: a client that comes in the same turn as the word to stop accepting is let go, and nothing throws. The second of
// two clients is accepted at once when the first has been, and its handler waits its turn; how many turns that is is
// the loop's business, so several are tried.
TEST_F(ServerClient, ClientThatComesAsAcceptingStopsIsLetGo) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> { co_await exchange.respond(text_response(200, "here")); });
  IoThread& thread = threads_.at(0);
  for (int turns = 0; turns < 4; ++turns) {
    std::optional<RawClient> first;
    std::optional<RawClient> second;
    std::promise<void> stopped;
    std::function<void(int)> stop_after = [&](int left) {
      if (left > 0) return thread.post([&, left] { stop_after(left - 1); });
      server_->pause_accepting();
      stopped.set_value();
    };
    thread.post([&] {
      first.emplace(port_);
      second.emplace(port_);
      stop_after(turns);
    });
    stopped.get_future().get();
    thread.call([&] { EXPECT_TRUE(server_->resume_accepting()); });
  }
  EXPECT_TRUE(testing_support::http_exchange(port_, testing_support::http_request("GET", "/")).ends_with("here"));
}

TEST(HttpUrl, OnlyHttpHostAndPortIsAnEndpoint) {
  EXPECT_EQ(parse_http_url("http://10.0.0.1:8000")->authority(), "10.0.0.1:8000");
  EXPECT_EQ(parse_http_url("http://[::1]:8000/")->authority(), "[::1]:8000");
  EXPECT_EQ(parse_http_url("http://node.example")->port, 80);
  for (const char* bad : {"", "node:80", "https://a:1", "http://", "http://a:1/v1", "http://u@a:1", "http://a:0",
                          "http://a:99999", "http://a:1?x"}) {
    EXPECT_FALSE(parse_http_url(bad)) << bad;
  }
}

}  // namespace
}  // namespace balanceroute::net
