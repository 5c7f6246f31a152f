// Laws of the HTTP readers: the message does not depend on how the network cut it, and limits hold.
#include "net/http_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace balanceroute::net {
namespace {

// Feeds `wire` cut at `cut` the way a connection does: what was not consumed is offered again with what follows.
struct FedResponse {
  std::string body;
  bool done = false;
  std::size_t left = 0;
};

FedResponse feed_cut(const std::string& wire, std::size_t cut) {
  ResponseReader reader{64 * 1024};
  FedResponse fed;
  std::string rest;
  for (const std::string& piece : {wire.substr(0, cut), wire.substr(cut)}) {
    rest += piece;
    const auto used = reader.feed(rest, [&](std::string_view bytes) { fed.body.append(bytes); });
    EXPECT_TRUE(used) << used.error().detail;
    rest.erase(0, *used);
  }
  fed.done = reader.done();
  fed.left = rest.size();
  return fed;
}

// Law: a chunked response gives the same body wherever it is cut.
TEST(ResponseReader, ChunkedBodyDoesNotDependOnTheCut) {
  const std::string wire =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      "b\r\ndata: one\r\n\r\n1;x=y\r\nA\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: t\r\n\r\n";
  for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
    const FedResponse fed = feed_cut(wire, cut);
    ASSERT_EQ(fed.body, "data: one\r\nA0123456789abcdef") << cut;
    ASSERT_TRUE(fed.done) << cut;
    ASSERT_EQ(fed.left, 0u) << cut;
  }
}

// Law: a body with a length ends there; what follows is not consumed.
TEST(ResponseReader, BytesAfterTheBodyAreLeft) {
  const FedResponse fed = feed_cut("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP", 0);
  EXPECT_EQ(fed.body, "abc");
  EXPECT_TRUE(fed.done);
  EXPECT_EQ(fed.left, 4u);
}

// Law: without a length the body ends with the connection, and only then is it whole.
TEST(ResponseReader, BodyWithoutLengthEndsWithTheConnection) {
  ResponseReader reader{1024};
  ASSERT_TRUE(reader.feed("HTTP/1.1 200 OK\r\n\r\nabc", [](std::string_view) {}));
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.feed_end());
  ResponseReader cut_short{1024};
  ASSERT_TRUE(cut_short.feed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", [](std::string_view) {}));
  EXPECT_FALSE(cut_short.feed_end());
}

TEST(ResponseReader, GarbageIsAProtocolFault) {
  ResponseReader reader{1024};
  const auto fed = reader.feed("SSH-2.0-OpenSSH\r\n\r\n", [](std::string_view) {});
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().fault, NetFault::Protocol);
}

TEST(RequestReader, KeepsHeadersAndBodyAsSent) {
  RequestReader reader{HttpLimits{}};
  const std::string wire = "POST /v1/x?a=b HTTP/1.1\r\nHOST: h\r\nX-a:  b \r\nContent-Length: 4\r\n\r\nbodyGET";
  const auto used = reader.feed(wire);
  ASSERT_TRUE(used);
  EXPECT_EQ(*used, wire.size() - 3);
  ASSERT_TRUE(reader.done());
  const HttpRequest& request = reader.request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path(), "/v1/x");
  EXPECT_EQ(request.query(), "a=b");
  EXPECT_EQ(request.headers.find("x-A"), "b");
  EXPECT_EQ(request.body, "body");
  EXPECT_TRUE(request.keep_alive);
}

// Law: a body at the limit passes, one byte more is TooLarge, with a length and chunked alike.
TEST(RequestReader, BodyLimitIsExact) {
  const auto fault = [](const std::string& wire) {
    RequestReader reader{HttpLimits{.head_bytes = 1024, .body_bytes = 5}};
    const auto used = reader.feed(wire);
    return used ? std::string{"ok"} : std::string{to_string(used.error().fault)};
  };
  EXPECT_EQ(fault("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345"), "ok");
  EXPECT_EQ(fault("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n"), "too_large");
  EXPECT_EQ(fault("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"), "ok");
  EXPECT_EQ(fault("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n"), "too_large");
}

// Law: a chunked body, the empty one too, is the same when it comes byte by byte, as a connection would offer it.
TEST(RequestReader, ChunkedBodyByteByByte) {
  for (const std::string chunks :
       {"0\r\n\r\n", "0\r\nTrailer: t\r\n\r\n", "1\r\nx\r\n0\r\n\r\n", "2;a=b\r\nxy\r\n1\r\nz\r\n0\r\n\r\n"}) {
    RequestReader reader{HttpLimits{}};
    std::string waiting;
    for (const char byte : "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) {
      waiting += byte;
      const auto used = reader.feed(waiting);
      ASSERT_TRUE(used) << used.error().detail;
      waiting.erase(0, *used);
    }
    EXPECT_TRUE(reader.done()) << chunks;
    EXPECT_EQ(reader.request().body, chunks.starts_with("1") ? "x" : chunks.starts_with("2") ? "xyz" : "");
  }
}

TEST(RequestReader, SaysWhenTheClientWaitsForContinue) {
  RequestReader reader{HttpLimits{}};
  ASSERT_TRUE(reader.feed("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"));
  EXPECT_TRUE(reader.expects_continue());
  ASSERT_TRUE(reader.feed("x"));
  EXPECT_FALSE(reader.expects_continue());
}

}  // namespace
}  // namespace balanceroute::net
