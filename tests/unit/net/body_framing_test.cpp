// Laws of body framing: bodies end where RFC 9112 says, however they are cut; chunks that two servers could read
// differently are refused.
#include "net/body_framing.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::net {
namespace {

// The body, what follows it in brackets, or what is wrong.
std::string read_chunks(const std::string& wire, std::uint64_t limit = 1'000) {
  BodyFraming framing = BodyFraming::chunked(limit);
  std::string body;
  const auto used = framing.feed(wire, [&](std::string_view bytes) { body.append(bytes); });
  if (!used) return std::string{to_string(used.error().fault)} + ": " + used.error().detail;
  return body + (framing.done() ? "[" + wire.substr(*used) + "]" : "...");
}

// Law: the body is the chunks together, without extensions and trailers, and ends with the empty chunk.
TEST(BodyFraming, ChunksMakeTheBody) {
  EXPECT_EQ(read_chunks("0\r\n\r\n"), "[]");
  EXPECT_EQ(read_chunks("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nnext"), "abc0123456789[next]");
  EXPECT_EQ(read_chunks("03;name=\"a b\";x\r\nabc\r\n0\r\nTrailer: t\r\nX:\r\n\r\n"), "abc[]");
  EXPECT_EQ(read_chunks("3\r\nab"), "ab...");
}

// Law: what comes in pieces is read as what comes at once.
TEST(BodyFraming, ChunksDoNotDependOnTheCut) {
  const std::string wire = "3;e\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nT: t\r\n\r\n";
  for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
    BodyFraming framing = BodyFraming::chunked(1'000);
    std::string body;
    for (const std::string& piece : {wire.substr(0, cut), wire.substr(cut)}) {
      const auto used = framing.feed(piece, [&](std::string_view bytes) { body.append(bytes); });
      ASSERT_TRUE(used) << cut;
      ASSERT_EQ(*used, piece.size()) << cut;
    }
    EXPECT_EQ(body, "abc0123456789abcdef") << cut;
    EXPECT_TRUE(framing.done()) << cut;
  }
}

TEST(BodyFraming, OddChunkSizesAreRefused) {
  for (const char* size : {"0x3", "+3", "-3", " 3", "3 ", "3 ;a", "", ";a", "g", "3,3", "0000000000000003"}) {
    EXPECT_TRUE(read_chunks(std::string{size} + "\r\nabc\r\n0\r\n\r\n").starts_with("protocol: a chunk size")) << size;
  }
}

TEST(BodyFraming, OddChunkLinesAreRefused) {
  EXPECT_EQ(read_chunks("3\nabc\r\n0\r\n\r\n"), "protocol: a chunk size is not a hexadecimal number");
  EXPECT_EQ(read_chunks("3\r\rabc"), "protocol: a chunk's line does not end with CR LF");
  EXPECT_EQ(read_chunks("3\r\nabcd\r\n"), "protocol: a chunk is longer than its size");
  EXPECT_EQ(read_chunks("3\r\nabc\n0\r\n\r\n"), "protocol: a chunk is longer than its size");
  EXPECT_EQ(read_chunks("3\r\nabc\rx"), "protocol: a chunk's line does not end with CR LF");
  EXPECT_EQ(read_chunks("3;a\nb\r\nabc"), "protocol: a chunk extension has a control character");
  EXPECT_EQ(read_chunks("0\r\n\rx"), "protocol: a chunk's line does not end with CR LF");
}

TEST(BodyFraming, OddTrailersAreRefused) {
  EXPECT_EQ(read_chunks("0\r\nA b: c\r\n\r\n"), "protocol: a trailer name has a character that is not allowed");
  EXPECT_EQ(read_chunks("0\r\n folded\r\n\r\n"), "protocol: a trailer name has a character that is not allowed");
  EXPECT_EQ(read_chunks("0\r\n: c\r\n\r\n"), "protocol: a trailer name has a character that is not allowed");
  EXPECT_EQ(read_chunks("0\r\nno colon\r\n\r\n"), "protocol: a trailer name has a character that is not allowed");
  EXPECT_EQ(read_chunks("0\r\nA: b\nC: d\r\n\r\n"), "protocol: a trailer has a control character");
}

// Law: a body at the limit passes, one byte more is too large before any of its chunk is taken; no size overflows.
TEST(BodyFraming, LimitHoldsForAllChunksTogether) {
  EXPECT_EQ(read_chunks("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 5), "abcde[]");
  EXPECT_EQ(read_chunks("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", 5), "too_large: body too large");
  EXPECT_EQ(read_chunks("fffffffffffffff\r\nabc", 5), "too_large: body too large");
  EXPECT_EQ(read_chunks("fffffffffffffff\r\nabc", BodyFraming::kNoLimit), "abc...");
}

// Law: a body of one byte cannot be drawn out by extensions or trailers without end.
TEST(BodyFraming, ExtensionsAndTrailersAreBounded) {
  std::string wire;
  for (int i = 0; i < 20; ++i) wire += "1;" + std::string(1'000, 'x') + "\r\na\r\n";
  EXPECT_EQ(read_chunks(wire), "protocol: the chunk extensions are too long");
  EXPECT_EQ(read_chunks("0\r\nA: " + std::string(20'000, 'x')), "protocol: the trailers are too long");
}

TEST(BodyFraming, LengthsAndEndsOfConnections) {
  const auto ignore = [](std::string_view) {};
  EXPECT_TRUE(BodyFraming::none().done());
  EXPECT_TRUE(BodyFraming::of_length(0).done());
  BodyFraming length = BodyFraming::of_length(3);
  EXPECT_EQ(length.feed("ab", ignore), 2u);
  EXPECT_FALSE(length.feed_end());
  EXPECT_EQ(length.feed("cd", ignore), 1u);
  EXPECT_TRUE(length.done());
  BodyFraming open = BodyFraming::until_end();
  EXPECT_EQ(open.feed("abc", ignore), 3u);
  EXPECT_FALSE(open.done());
  EXPECT_TRUE(open.feed_end());
}

}  // namespace
}  // namespace balanceroute::net
