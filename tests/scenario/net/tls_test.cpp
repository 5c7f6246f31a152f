// TLS between HttpServer and HttpClient: what plaintext does holds by TLS too, in records of any number; who is not who
// the client asked for is sent nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "net/client.hpp"
#include "net/server.hpp"
#include "net/task_group.hpp"
#include "support/raw_client.hpp"
#include "support/test_certificate.hpp"

namespace balanceroute::net {
namespace {

using namespace std::chrono_literals;

using testing_support::RawClient;
using testing_support::TestCertificate;

class Tls : public testing::Test {
 protected:
  void serve(HttpHandler handler, ServerOptions options = {}) {
    server_.emplace(threads_, std::move(options), std::move(handler));
    auto context = TlsContext::for_server({.certificate = own_.certificate(), .key = own_.key()}, "client_ca");
    ASSERT_TRUE(context) << context.error();
    server_->use_tls(*context);
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

  // Sends requests one after another over one client, which trusts `authority`; the bodies of the answers, or faults.
  std::vector<std::string> ask(std::vector<HttpRequest> requests, const TestCertificate& authority,
                               std::string server_name = {}) {
    auto context = TlsContext::for_client({.ca = authority.certificate()});
    EXPECT_TRUE(context) << context.error();
    const ClientOptions options{.tls = std::make_shared<TlsInUse>(*context, std::move(server_name))};
    IoThread thread{"client", clock_};
    std::promise<std::vector<std::string>> answers;
    HttpClient client{thread, Endpoint{"127.0.0.1", port_, true}, options};
    TaskGroup tasks{thread, [](std::exception_ptr failure) { std::rethrow_exception(failure); }};
    thread.start();
    thread.call([&] { tasks.spawn(run(client, requests, answers)); });
    auto found = answers.get_future().get();
    bool ended = false;
    while (!ended) thread.call([&] { ended = tasks.size() == 0; });
    thread.stop();
    return found;
  }

  asio::awaitable<void> run(HttpClient& client, const std::vector<HttpRequest>& requests,
                            std::promise<std::vector<std::string>>& answers) {
    std::vector<std::string> found;
    for (const HttpRequest& request : requests) {
      auto call = co_await client.send(request, clock_.now() + patience_);
      if (!call) {
        found.push_back(call.error().detail);
        continue;
      }
      auto body = co_await call->read_all(std::size_t{1} << 30, clock_.now() + patience_);
      found.push_back(body ? *std::move(body) : body.error().detail);
    }
    answers.set_value(std::move(found));
  }

  SteadyClock clock_;
  Duration patience_ = 60s;
  TestCertificate own_{"IP:127.0.0.1"};
  IoThreads threads_{2, "server", clock_};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
};

asio::awaitable<void> echo(HttpExchange& exchange) {
  co_await exchange.respond(text_response(200, exchange.request().body));
}

HttpRequest post(std::string body) {
  return {.method = "POST", .target = "/", .headers = {}, .body = std::move(body)};
}

// Law: bodies of any size arrive whole in both directions, one after another on one connection.
TEST_F(Tls, BodiesOfAnySizeArriveWhole) {
  serve(echo);
  std::vector<HttpRequest> requests;
  std::vector<std::string> expected;
  for (const std::size_t size : {0U, 1U, 16'383U, 16'384U, 16'385U, 100'000U, 20'000'000U}) {
    std::string body(size, '\0');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    requests.push_back(post(body));
    expected.push_back(std::move(body));
  }
  EXPECT_TRUE(ask(requests, own_) == expected);
  EXPECT_LE(server_->open_connections(), 1u);
}

// Law: a stream in pieces of every size, across full buffers of both sides, arrives in order, and what waits for its
// client is bounded.
TEST_F(Tls, StreamsKeepTheirOrderAcrossFullBuffers) {
  constexpr std::size_t kParts = 3'000;
  const auto part = [](std::size_t i) { return std::string(1 + i * 37 % 20'000, static_cast<char>('a' + i % 26)); };
  serve(
      [part](HttpExchange& exchange) -> asio::awaitable<void> {
        exchange.start(HttpResponse{});
        for (std::size_t i = 0; i < kParts; ++i) {
          const WriteStatus status = exchange.write(part(i));
          if (status == WriteStatus::Full) {
            const WriteStatus room = co_await exchange.drained();
            if (room == WriteStatus::Gone) co_return;
          }
        }
        co_await exchange.finish();
      },
      {.write_buffer_bytes = 100'000});
  std::string expected;
  for (std::size_t i = 0; i < kParts; ++i) expected += part(i);
  EXPECT_TRUE(ask({HttpRequest{}}, own_).front() == expected);
}

// Law: the handler is cancelled when the client goes, although no byte moves.
TEST_F(Tls, SilentHandlerIsCancelledWhenTheClientGoes) {
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
  patience_ = 200ms;
  ask({HttpRequest{}}, own_);
  auto outcome = left.get_future();
  ASSERT_EQ(outcome.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(outcome.get());
}

// Law: half an answer is never a whole one: an end without TLS's own word for it is a fault, also where the body ends
// with the connection.
TEST_F(Tls, TruncatedAnswersAreFaults) {
  serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    exchange.start(HttpResponse{});
    exchange.write("half");
    co_return;
  });
  EXPECT_NE(ask({HttpRequest{}}, own_).front(), "half");
}

// Law: who is not known, or not by that name, is sent no request.
TEST_F(Tls, StrangersAreSentNothing) {
  std::atomic<int> handled{0};
  serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    ++handled;
    co_await exchange.respond(text_response(200, "ok"));
  });
  const TestCertificate stranger{"IP:127.0.0.1"};
  EXPECT_NE(ask({HttpRequest{}}, stranger).front().find("TLS: self-signed certificate"), std::string::npos);
  EXPECT_NE(ask({HttpRequest{}}, own_, "elsewhere.example").front().find("TLS: hostname mismatch"), std::string::npos);
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(ask({HttpRequest{}}, own_).front(), "ok");
}

// Law: another certificate is for new connections; whether it has other content is told.
TEST_F(Tls, ContextsAreReplacedForNewConnections) {
  serve(echo);
  const TestCertificate next{"IP:127.0.0.1"};
  const auto same = TlsContext::for_server({.certificate = own_.certificate(), .key = own_.key()}, "client_ca");
  const auto other = TlsContext::for_server({.certificate = next.certificate(), .key = next.key()}, "client_ca");
  EXPECT_FALSE(server_->use_tls(*same));
  EXPECT_EQ(ask({post("a")}, own_).front(), "a");
  EXPECT_TRUE(server_->use_tls(*other));
  EXPECT_NE(ask({post("a")}, own_).front(), "a");
  EXPECT_EQ(ask({post("a")}, next).front(), "a");
}

// Law: HTTP without TLS is told what is spoken here; garbage and silence harm nobody.
TEST_F(Tls, OtherProtocolsAreToldOrCut) {
  serve(echo, {.head_timeout = 200ms});
  EXPECT_NE(testing_support::http_exchange(port_, "GET", "/").find("only TLS is spoken here"), std::string::npos);
  RawClient garbage{port_};
  garbage.send("SSH-2.0-OpenSSH\r\n");
  garbage.read_to_end();
  RawClient silent{port_};
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_EQ(ask({post("a")}, own_).front(), "a");
}

}  // namespace
}  // namespace balanceroute::net
