// Laws of the raw head check: heads that two servers could read differently are refused, ordinary ones pass.
#include "net/head_check.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::net {
namespace {

constexpr std::size_t kMaxFields = 8;
constexpr const char* kOtherProtocol = "HTTP/2, gRPC and Upgrade are not supported, expected plain HTTP/1.1";
constexpr const char* kControl = "the head has a control character or a lone line end";

std::string verdict_of(const std::string& head) {
  const auto checked = check_request_head(head, kMaxFields);
  if (checked) return "ok";
  return checked.error().status == 400 ? checked.error().detail
                                       : std::to_string(checked.error().status) + " " + checked.error().detail;
}

std::string verdict(const std::string& fields, const std::string& line = "POST /v1/completions HTTP/1.1") {
  return verdict_of(line + "\r\nHost: a\r\n" + fields + "\r\n");
}

std::string target_verdict(const std::string& target) {
  return verdict("", "GET " + target + " HTTP/1.1");
}

TEST(HeadCheck, OrdinaryHeadsPass) {
  EXPECT_EQ(verdict("Content-Length: 12\r\n"), "ok");
  EXPECT_EQ(verdict("Transfer-Encoding: Chunked\r\n"), "ok");
  EXPECT_EQ(verdict("X-Empty:\r\nX-Tab:\ta\tb\r\nX-Text: Z\xc3\xbcrich\r\n"), "ok");
  EXPECT_EQ(verdict("Expect: 100-Continue\r\n"), "ok");
  EXPECT_EQ(verdict_of("GET / HTTP/1.0\r\n\r\n"), "ok");
  EXPECT_EQ(verdict_of("GET / HTTP/1.1\r\nhost:[::1]:8080\r\n\r\n"), "ok");
}

TEST(HeadCheck, AmbiguousBodyLengthsAreRefused) {
  EXPECT_EQ(verdict("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            "Content-Length and Transfer-Encoding are both given");
  EXPECT_EQ(verdict("Content-Length: 1\r\nContent-Length: 1\r\n"), "Content-Length is repeated");
  for (const char* value : {"+1", "-1", "0x1", "1 1", "1,1", "", "1234567890123456789"}) {
    EXPECT_EQ(verdict("Content-Length: " + std::string{value} + "\r\n"), "Content-Length is not a number") << value;
  }
  for (const char* value : {"xchunked", "chunked, identity", "gzip, chunked", "identity", "\"chunked\"", ""}) {
    EXPECT_EQ(verdict("Transfer-Encoding: " + std::string{value} + "\r\n"),
              "Transfer-Encoding is not supported, expected chunked")
        << value;
  }
  EXPECT_EQ(verdict("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "Transfer-Encoding is repeated");
  EXPECT_EQ(verdict("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0"), "Transfer-Encoding is not part of HTTP/1.0");
}

// Law: a request is for exactly one host, which is a host.
TEST(HeadCheck, OneHostIsNamed) {
  EXPECT_EQ(verdict_of("GET / HTTP/1.1\r\n\r\n"), "Host is missing");
  EXPECT_EQ(verdict("Host: b\r\n"), "Host is repeated");
  for (const char* host : {"a b", "user@a", "a/b", "a,b", "a\\b", "a#b"}) {
    EXPECT_EQ(verdict_of("GET / HTTP/1.1\r\nHost: " + std::string{host} + "\r\n\r\n"), "Host is not a host and a port")
        << host;
  }
}

TEST(HeadCheck, MalformedFieldsAreRefused) {
  EXPECT_EQ(verdict(" folded\r\n"), "a header field is folded over two lines");
  EXPECT_EQ(verdict("\tfolded\r\n"), "a header field is folded over two lines");
  EXPECT_EQ(verdict("Content-Length : 1\r\n"), "a header name has a character that is not allowed");
  EXPECT_EQ(verdict(": 1\r\n"), "a header name has a character that is not allowed");
  EXPECT_EQ(verdict("no colon\r\n"), "a header line has no colon");
  EXPECT_EQ(verdict(std::string{"X: a\0b\r\n", 8}), kControl);
  EXPECT_EQ(verdict("X: a\nContent-Length: 3\r\n"), kControl);
  EXPECT_EQ(verdict("X: a\rb\r\n"), kControl);
  EXPECT_EQ(verdict("X: a\x7f\r\n"), kControl);
  EXPECT_EQ(verdict("X: a\x1b[2J\r\n"), kControl);
}

TEST(HeadCheck, OtherProtocolsAreRefusedInOneWay) {
  EXPECT_EQ(verdict_of("PRI * HTTP/2.0\r\n\r\n"), std::string{"505 "} + kOtherProtocol);
  EXPECT_EQ(verdict("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"), kOtherProtocol);
  EXPECT_EQ(verdict("Upgrade: websocket\r\nConnection: Upgrade\r\n"), kOtherProtocol);
  EXPECT_EQ(verdict("Content-Type: application/grpc+proto\r\nTE: trailers\r\n"), kOtherProtocol);
  EXPECT_EQ(verdict("Expect: 200-ok\r\n"), "417 Expect is not supported, expected 100-continue");
}

TEST(HeadCheck, MalformedRequestLinesAreRefused) {
  EXPECT_EQ(verdict("", "GET / HTTP/1.2"), "505 the HTTP version is not 1.1 or 1.0");
  EXPECT_EQ(verdict("", "GET / http/1.1"), "505 the HTTP version is not 1.1 or 1.0");
  EXPECT_EQ(verdict("", "GET /"), "the request line is not 'METHOD target HTTP/1.1'");
  EXPECT_EQ(verdict("", "G@T / HTTP/1.1"), "the method is not a token");
  EXPECT_EQ(verdict("", " / HTTP/1.1"), "the method is not a token");
}

// Law: a target is a path and a query as RFC 3986 spells them; nothing in it can be read in two ways.
TEST(HeadCheck, OddTargetsAreRefused) {
  EXPECT_EQ(target_verdict("/v1/models?a=%20b&c=d"), "ok");
  EXPECT_EQ(target_verdict("/"), "ok");
  for (const char* target : {"http://a/v1/models", "a:443", "*", "v1/models", "?a", ""}) {
    const std::string found = target_verdict(target);
    EXPECT_EQ(found, "the target is not a path, expected one that starts with /") << target;
  }
  for (const char* target :
       {"/a b", "/a\tb", "/a#b", "/a\\b", "/%", "/%1", "/%zz", "/a%", "/\xc3\xbc", "/a|b", "/{a}", "/\"a"}) {
    EXPECT_EQ(target_verdict(target), "the target has a character that is not allowed") << target;
  }
}

// Law: a head with as many fields as allowed passes, one more does not.
TEST(HeadCheck, FieldsAreCounted) {
  std::string fields;
  for (std::size_t i = 1; i < kMaxFields; ++i) fields += "X: y\r\n";
  EXPECT_EQ(verdict(fields), "ok");
  EXPECT_EQ(verdict(fields + "X: y\r\n"), "431 the head has more than 8 fields");
}

// Law: what can never become a head is refused before its end has come, wherever the bytes are cut.
TEST(HeadCheck, BeginningsThatLeadNowhereAreRefused) {
  const auto is_refused = [](const std::string& bytes) {
    const bool refused = !check_beginning(bytes);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const bool refused_in_two = !check_beginning(bytes.substr(0, cut)) || !check_beginning(bytes, cut);
      EXPECT_EQ(refused_in_two, refused) << bytes << " cut at " << cut;
    }
    return refused;
  };
  EXPECT_FALSE(is_refused("GET / HTTP/1.1\r\nHost: a\r"));
  EXPECT_TRUE(is_refused("GET / HTTP/1.1\nHost: a\n\n"));
  EXPECT_TRUE(is_refused("GET / HTTP/1.1\rHost"));
  EXPECT_TRUE(is_refused(std::string{"GET /\0", 6}));
  EXPECT_TRUE(is_refused("\nGET"));
  EXPECT_EQ(check_beginning("\x16\x03\x01\x02").error().detail, "TLS is not spoken here, expected http://");
}

TEST(HeadCheck, EndOfHeadIsTheFirstEmptyLine) {
  const std::string bytes = "GET / HTTP/1.1\r\n\r\nrest\r\n\r\n";
  for (std::size_t known = 0; known < 18; ++known) EXPECT_EQ(find_head_end(bytes, known), 18u) << known;
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n"), std::string::npos);
}

// Law: answers are held to the same rules, but for what only a request has.
TEST(HeadCheck, AnswersAreChecked) {
  const auto verdict_of_answer = [](const std::string& fields, const std::string& line = "HTTP/1.1 200 OK") {
    const auto checked = check_response_head(line + "\r\n" + fields + "\r\n");
    return checked ? "ok" : checked.error();
  };
  EXPECT_EQ(verdict_of_answer("Content-Length: 3\r\nUpgrade: h2c\r\n"), "ok");
  EXPECT_EQ(verdict_of_answer("", "HTTP/1.0 404"), "ok");
  EXPECT_EQ(verdict_of_answer("", "HTTP/1.1 200 "), "ok");
  for (const char* line : {"HTTP/2 200", "HTTP/1.1 20", "HTTP/1.1  200", "HTTP/1.1 2x0 OK", "HTTP/1.1 999 OK",
                           "HTTP/1.1 2000", "ICY 200 OK"}) {
    EXPECT_NE(verdict_of_answer("", line), "ok") << line;
  }
  EXPECT_EQ(verdict_of_answer("Content-Length: 1\r\nContent-Length: 1\r\n"), "Content-Length is repeated");
  EXPECT_EQ(verdict_of_answer("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            "Content-Length and Transfer-Encoding are both given");
  EXPECT_EQ(verdict_of_answer("Transfer-Encoding: xchunked\r\n"),
            "Transfer-Encoding is not supported, expected chunked");
  EXPECT_EQ(verdict_of_answer("A: b\r\n c\r\n"), "a header field is folded over two lines");
  EXPECT_EQ(verdict_of_answer("A: b\nSet-Cookie: c\r\n"), kControl);
  EXPECT_TRUE(may_become_response("HTT"));
  EXPECT_TRUE(may_become_response("HTTP/1.1 2"));
  EXPECT_FALSE(may_become_response("SSH-2.0"));
  EXPECT_FALSE(may_become_response("\x15\x03"));
}

}  // namespace
}  // namespace balanceroute::net
