#include "proxy/live_viewer.hpp"

#include <gtest/gtest.h>

#include "net/clock.hpp"

namespace balanceroute::proxy {
namespace {

class LiveViewerTest : public testing::Test {
 protected:
  void take(bool whole, const std::string& text) { viewer_.take(whole, std::make_shared<const std::string>(text)); }
  // The next message, or "-".
  std::string next() {
    const LiveViewer::Text text = viewer_.next();
    return text ? *text : "-";
  }

  net::ManualClock clock_;
  net::IoThread thread_{"home", clock_};
  LiveViewer viewer_{thread_};
};

// Law: a viewer that keeps up gets the state and every change, in order.
TEST_F(LiveViewerTest, KeepsUp) {
  take(true, "state");
  EXPECT_EQ(next(), "state");
  for (int i = 0; i < 100; ++i) {
    take(false, std::to_string(i));
    EXPECT_EQ(next(), std::to_string(i));
  }
  EXPECT_EQ(next(), "-");
  EXPECT_FALSE(viewer_.lost());
}

// Law: one that does not is kept no more than kQueue messages for, and no change that it could misunderstand.
TEST_F(LiveViewerTest, FallsBehind) {
  take(true, "state");
  for (std::size_t i = 0; i < LiveViewer::kQueue; ++i) take(false, "change");
  EXPECT_TRUE(viewer_.lost());
  EXPECT_EQ(next(), "-");
  take(false, "a change of what it never saw");
  EXPECT_EQ(next(), "-");
}

// Law: the whole state brings it up to date, and changes make sense again.
TEST_F(LiveViewerTest, CatchesUp) {
  for (std::size_t i = 0; i <= LiveViewer::kQueue; ++i) take(false, "change");
  ASSERT_TRUE(viewer_.lost());
  take(true, "state");
  take(false, "next");
  EXPECT_FALSE(viewer_.lost());
  EXPECT_EQ(next(), "state");
  EXPECT_EQ(next(), "next");
}

}  // namespace
}  // namespace balanceroute::proxy
