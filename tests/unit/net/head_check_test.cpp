// Laws of the raw head check: heads that two servers could read differently are refused, ordinary ones pass.
#include "net/head_check.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::net {
namespace {

std::string verdict(const std::string& fields, const std::string& line = "POST /v1/completions HTTP/1.1") {
  const auto checked = check_request_head(line + "\r\n" + fields + "\r\n");
  return checked ? "ok" : checked.error();
}

TEST(HeadCheck, OrdinaryHeadsPass) {
  EXPECT_EQ(verdict("Host: a\r\nContent-Length: 12\r\n"), "ok");
  EXPECT_EQ(verdict("Host: a\r\nTransfer-Encoding: Chunked\r\n"), "ok");
  EXPECT_EQ(verdict("host:a\r\nX-Empty:\r\nX-Tab:\ta\tb\r\n"), "ok");
  EXPECT_EQ(verdict("", "GET / HTTP/1.0"), "ok");
}

TEST(HeadCheck, AmbiguousBodyLengthsAreRefused) {
  EXPECT_EQ(verdict("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
            "Content-Length and Transfer-Encoding are both given");
  EXPECT_EQ(verdict("Content-Length: 1\r\nContent-Length: 1\r\n"), "Content-Length is repeated");
  for (const char* value : {"+1", "-1", "0x1", "1 1", "1,1", "", "1234567890123456789"}) {
    EXPECT_EQ(verdict("Content-Length: " + std::string{value} + "\r\n"), "Content-Length is not a number") << value;
  }
  for (const char* value : {"xchunked", "chunked, identity", "gzip, chunked", "identity", ""}) {
    EXPECT_EQ(verdict("Transfer-Encoding: " + std::string{value} + "\r\n"),
              "Transfer-Encoding is not supported, expected chunked")
        << value;
  }
  EXPECT_EQ(verdict("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "Transfer-Encoding is repeated");
}

TEST(HeadCheck, MalformedFieldsAreRefused) {
  EXPECT_EQ(verdict("Host: a\r\nHost: b\r\n"), "Host is repeated");
  EXPECT_EQ(verdict("Host: a\r\n folded\r\n"), "a header field is folded over two lines");
  EXPECT_EQ(verdict("Content-Length : 1\r\n"), "a header name has a character that is not allowed");
  EXPECT_EQ(verdict(": 1\r\n"), "a header name has a character that is not allowed");
  EXPECT_EQ(verdict("no colon\r\n"), "a header line has no colon");
  EXPECT_EQ(verdict(std::string{"X: a\0b\r\n", 8}), "the head has a control character");
  EXPECT_EQ(verdict("X: a\nContent-Length: 3\r\n"), "the head has a control character");
  EXPECT_EQ(verdict("X: a\rb\r\n"), "the head has a control character");
}

TEST(HeadCheck, RequestLinesOfOtherProtocolsAreRefused) {
  EXPECT_EQ(verdict("", "PRI * HTTP/2.0"), "HTTP/2 is not supported, expected HTTP/1.1");
  EXPECT_EQ(verdict("", "GET / HTTP/1.2"), "the HTTP version is not 1.1 or 1.0");
  EXPECT_EQ(verdict("", "GET /"), "the request line is not 'METHOD target HTTP/1.1'");
  EXPECT_EQ(verdict("", "GET / x HTTP/1.1"), "the target has a space");
  EXPECT_EQ(verdict("", "G@T / HTTP/1.1"), "the method is not a token");
}

TEST(HeadCheck, EndOfHeadIsTheFirstEmptyLine) {
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\n\r\nrest\r\n\r\n"), 18u);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n"), std::string::npos);
}

}  // namespace
}  // namespace balanceroute::net
