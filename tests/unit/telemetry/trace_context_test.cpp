// The traceparent header, against the text of W3C Trace Context.
#include "telemetry/trace_context.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::telemetry {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";

std::string header(const std::string& version, const std::string& trace, const std::string& span,
                   const std::string& flags) {
  return version + "-" + trace + "-" + span + "-" + flags;
}

// Law: a header that is read is written as it was.
TEST(TraceContext, ComesBack) {
  for (const char* flags : {"00", "01"}) {
    const std::string text = header("00", kTrace, kSpan, flags);
    const auto context = parse_traceparent(text);
    ASSERT_TRUE(context);
    EXPECT_EQ(context->to_string(), text);
    EXPECT_EQ(to_hex(context->trace), kTrace);
    EXPECT_EQ(to_hex(context->span), kSpan);
  }
}

// Law: only the flag that is known is read; a later version may have more after a dash.
TEST(TraceContext, LaterVersionsAndFlags) {
  EXPECT_TRUE(parse_traceparent(header("00", kTrace, kSpan, "ff"))->sampled);
  EXPECT_FALSE(parse_traceparent(header("00", kTrace, kSpan, "fe"))->sampled);
  EXPECT_TRUE(parse_traceparent(header("cc", kTrace, kSpan, "01")));
  EXPECT_TRUE(parse_traceparent(header("cc", kTrace, kSpan, "01-what-will-be")));
}

// Law: what is malformed begins a new trace.
TEST(TraceContext, MalformedHeaders) {
  for (const std::string& text :
       {std::string{}, std::string{"00"}, header("ff", kTrace, kSpan, "01"), header("00", kTrace, kSpan, "1"),
        header("00", std::string(32, '0'), kSpan, "01"), header("00", kTrace, std::string(16, '0'), "01"),
        header("00", "4BF92F3577B34DA6A3CE929D0E0E4736", kSpan, "01"), header("00", kTrace, kSpan, "01-more"),
        header("cc", kTrace, kSpan, "01more"), header("0g", kTrace, kSpan, "01"), header("00", kTrace, kSpan, "0x"),
        header("00", kTrace, kSpan, "01") + " ", "00_" + kTrace + "-" + kSpan + "-01"}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

// Law: a child is of the same trace and no other; new traces differ.
TEST(TraceContext, Children) {
  const TraceContext first = new_trace(true);
  const TraceContext child = first.child();
  EXPECT_EQ(child.trace, first.trace);
  EXPECT_NE(child.span, first.span);
  EXPECT_TRUE(child.sampled);
  EXPECT_NE(new_trace(false).trace, first.trace);
  EXPECT_FALSE(new_trace(false).child().sampled);
}

}  // namespace
}  // namespace balanceroute::telemetry
