// HttpServer and HttpClient on real sockets: answers, streams, clients that leave, limits, draining.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>

#include "net/client.hpp"
#include "net/server.hpp"
#include "net/task_group.hpp"
#include "support/raw_client.hpp"
#include "support/raw_server.hpp"

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

  // Runs a client coroutine on a thread of its own and returns its result. The server is ours, or that at `port`.
  template <class Result>
  Result run_client(std::function<asio::awaitable<Result>(HttpClient&)> body, ClientOptions options = {},
                    std::uint16_t port = 0) {
    IoThread thread{"client", clock_};
    thread.start();
    std::promise<Result> result;
    {
      std::optional<HttpClient> client;
      std::optional<TaskGroup> tasks;
      thread.call([&] {
        client.emplace(thread, Endpoint{"127.0.0.1", port == 0 ? port_ : port}, options);
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
  EXPECT_TRUE(
      answer("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(400, 'a') + "\r\n\r\n").starts_with("HTTP/1.1 431 "));
}

// Law: a request that two servers could read differently is refused on the socket, with its reason, and the connection
// ends there: what was smuggled behind it is never a request.
TEST_F(ServerClient, AmbiguousRequestsEndTheConnection) {
  std::atomic<int> handled{0};
  serve(
      [&](HttpExchange& exchange) -> asio::awaitable<void> {
        ++handled;
        co_await exchange.respond(text_response(200, "handled"));
      },
      {.limits = {.head_fields = 8}});
  const std::string line = "POST /v1/completions HTTP/1.1\r\n";
  const std::string start = line + "Host: a\r\n";
  const std::string smuggled = "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  struct Case {
    std::string wire;
    int status;
    std::string reason;
  };
  const std::vector<Case> cases{
      {start + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "are both given"},
      {start + "Content-Length: 0\r\nContent-Length: 40\r\n\r\n", 400, "Content-Length is repeated"},
      {start + "Content-Length: +0\r\n\r\n", 400, "Content-Length is not a number"},
      {start + "Transfer-Encoding: xchunked\r\n\r\n", 400, "expected chunked"},
      {start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "expected chunked"},
      {start + "X: a\r\n b\r\n\r\n", 400, "folded"},
      {start + "Content-Length : 0\r\n\r\n", 400, "header name"},
      {start + std::string{"X: \0\r\n\r\n", 8}, 400, "control character"},
      {start + "X: a\rY: b\r\n\r\n", 400, "lone line end"},
      {"GET / HTTP/1.1\nHost: a\n\n", 400, "lone line end"},
      {start + "Host: b\r\n\r\n", 400, "Host is repeated"},
      {line + "Content-Length: 0\r\n\r\n", 400, "Host is missing"},
      {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "not a path"},
      {"GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target has a character"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/2, gRPC and Upgrade are not supported"},
      {start + "Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n", 400, "Upgrade are not supported"},
      {start + "Content-Type: application/grpc\r\nContent-Length: 0\r\n\r\n", 400, "gRPC"},
      {start + "Expect: magic\r\nContent-Length: 0\r\n\r\n", 417, "expected 100-continue"},
      {start + "A: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n\r\n", 431, "more than 8 fields"},
      {std::string{"\x16\x03\x01\x00", 4}, 400, "TLS is not spoken here"},
      {chunked + "0x1\r\na\r\n0\r\n\r\n", 400, "chunk size"},
      {chunked + "1;a\nb\r\na\r\n0\r\n\r\n", 400, "chunk extension"},
      {chunked + "1\r\nab\r\n0\r\n\r\n", 400, "longer than its size"},
      {chunked + "fffffffffffffff\r\na", 413, "too large"},
      {chunked + "0\r\nA b\r\n\r\n", 400, "trailer"},
  };
  for (const Case& one : cases) {
    RawClient client{port_};
    client.send(one.wire.starts_with('\x16') ? one.wire : one.wire + smuggled);
    const std::string answer = client.read_to_end();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(one.status) + " ")) << one.wire << "\n" << answer;
    EXPECT_NE(answer.find(one.reason), std::string::npos) << one.wire << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << one.wire << "\n" << answer;
    EXPECT_EQ(answer.find("handled"), std::string::npos) << one.wire << "\n" << answer;
  }
  EXPECT_EQ(handled, 0);
}

// Law: answers that could be read in two ways, other protocols and redirects are protocol faults; a redirect is not
// followed.
TEST_F(ServerClient, AmbiguousAnswersAreFaults) {
  const auto outcome = [&](const std::string& answer, int* requests = nullptr) {
    testing_support::RawServer server{answer};
    const auto found = run_client<std::string>(
        [this](HttpClient& client) -> asio::awaitable<std::string> {
          const HttpRequest request;
          auto call = co_await client.send(request, clock_.now() + 10s);
          if (!call) co_return std::string{to_string(call.error().fault)} + ": " + call.error().detail;
          auto body = co_await call->read_all(1 << 20, clock_.now() + 10s);
          if (!body) co_return std::string{to_string(body.error().fault)} + ": " + body.error().detail;
          co_return *body;
        },
        {}, server.port());
    if (requests != nullptr) *requests = static_cast<int>(server.heads().size());
    return found;
  };
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(outcome(ok + "Content-Length: 2\r\n\r\nok"), "ok");
  EXPECT_EQ(outcome("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok +
                    "Content-Length: 2\r\n\r\nok"),
            "ok");
  for (const std::string& wire :
       {ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ok + "Transfer-Encoding: xchunked\r\n\r\nok", ok + "X: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
        ok + "X: a\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok",
        ok + "Transfer-Encoding: chunked\r\n\r\n 2\r\nok\r\n0\r\n\r\n",
        ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok!\r\n0\r\n\r\n", std::string{"HTTP/1.1 2000 OK\r\n\r\n"},
        std::string{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"}, std::string{"SSH-2.0-OpenSSH_9\r\n"},
        std::string{"\x15\x03\x01\x00\x02\x02\x46"}}) {
    EXPECT_TRUE(outcome(wire).starts_with("protocol: ")) << wire << "\n" << outcome(wire);
  }
  testing_support::RawServer elsewhere{ok + "Content-Length: 2\r\n\r\nok"};
  int requests = 0;
  const std::string place = "Location: http://127.0.0.1:" + std::to_string(elsewhere.port()) + "/\r\n";
  EXPECT_EQ(outcome("HTTP/1.1 307 Temporary Redirect\r\n" + place + "Content-Length: 0\r\n\r\n", &requests),
            "protocol: read response: status 307: the server redirects, which is never followed");
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(elsewhere.heads().empty());
}

// Law: the answer to HEAD has no body, whatever length it tells.
TEST_F(ServerClient, AnswerToHeadHasNoBody) {
  serve(echo);
  const auto status = run_client<int>([this](HttpClient& client) -> asio::awaitable<int> {
    HttpRequest request;
    request.method = "HEAD";
    auto call = co_await client.send(request, clock_.now() + 10s);
    if (!call) co_return 0;
    const auto body = co_await call->read_all(1 << 20, clock_.now() + 10s);
    co_return body && body->empty() ? call->head().status : 0;
  });
  EXPECT_EQ(status, 200);
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
