// Laws of SseSplitter: nothing is lost or invented, and the cuts do not matter.
#include "net/sse.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace balanceroute::net {
namespace {

struct Split {
  std::vector<std::string> events;
  std::string rest;
  friend bool operator==(const Split&, const Split&) = default;
};

Split split(const std::vector<std::string>& pieces) {
  SseSplitter splitter;
  Split out;
  for (const std::string& piece : pieces) {
    splitter.feed(piece, [&](std::string_view event) { out.events.emplace_back(event); });
  }
  out.rest = splitter.rest();
  return out;
}

// Law: events end with their empty line; LF and CRLF may be mixed; a bare CR is text.
TEST(SseSplitter, EventsEndWithAnEmptyLine) {
  EXPECT_EQ(split({"data: a\n\ndata: b\r\n\r\n: c\r\n\ndata: d\rx\n\nhalf\n"}),
            (Split{{"data: a\n\n", "data: b\r\n\r\n", ": c\r\n\n", "data: d\rx\n\n"}, "half\n"}));
  EXPECT_EQ(split({"\n\ndata: a\n\n"}), (Split{{"\n", "\n", "data: a\n\n"}, ""}));
}

// Law: wherever the stream is cut in two, the events are the same.
TEST(SseSplitter, OneCutAnywhereChangesNothing) {
  const std::string stream =
      "data: {\"a\": 1}\n\nevent: x\r\ndata: one\r\ndata: two\r\n\r\n\n: ping\n\ndata: [DONE]\n\ntail";
  const Split whole = split({stream});
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    ASSERT_EQ(split({stream.substr(0, cut), stream.substr(cut)}), whole) << cut;
  }
}

// Law: whatever the bytes and the cuts, events and rest together are the bytes that were fed.
TEST(SseSplitter, RandomBytesComeOutAsTheyWentIn) {
  std::mt19937_64 random{11};
  constexpr std::string_view kAlphabet = "\n\n\n\r\rd:a ";
  for (int round = 0; round < 5000; ++round) {
    std::string stream;
    for (std::size_t i = random() % 40; i > 0; --i) stream += kAlphabet[random() % kAlphabet.size()];
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = 1 + random() % 5;
      pieces.push_back(stream.substr(at, size));
      at += size;
    }
    const Split cut = split(pieces);
    std::string joined;
    for (const std::string& event : cut.events) joined += event;
    ASSERT_EQ(joined + cut.rest, stream);
    ASSERT_EQ(cut, split({stream}));
  }
}

TEST(SseData, JoinsDataLines) {
  std::string scratch;
  EXPECT_EQ(sse_data("data: a b\n\n", scratch), "a b");
  EXPECT_EQ(sse_data("data:a\r\n\r\n", scratch), "a");
  EXPECT_EQ(sse_data("event: e\ndata: a\nid: 1\ndata:  b\ndata:\n\n", scratch), "a\n b\n");
  EXPECT_EQ(sse_data(": comment\n\n", scratch), "");
}

}  // namespace
}  // namespace balanceroute::net
