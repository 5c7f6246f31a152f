// Laws of what is read from a prefill answer.
#include "proxy/prefill_leg.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

// Law: an object is found wherever it stands and comes out as it was written; anything else is none.
TEST(PrefillAnswer, ObjectsComeOutAsTheyWereWritten) {
  const std::string object = R"({ "a":[1.50,18446744073709551557], "b":{"c":"}"} })";
  EXPECT_EQ(object_member(R"({"x":{"kv":{}},"kv": )" + object + R"( ,"y":1})", "kv"), object);
  EXPECT_EQ(object_member(R"({"kv":null})", "kv"), "");
  EXPECT_EQ(object_member(R"({"x":{"kv":{}}})", "kv"), "");
  EXPECT_EQ(object_member("no json", "kv"), "");
}

// Law: a lease is what is left of it; a time that has passed, is absurd or missing says nothing.
TEST(PrefillAnswer, StatedLeaseIsWhatIsLeft) {
  const std::chrono::system_clock::time_point now{1000s};
  EXPECT_EQ(stated_lease(R"({"remote_blocks_expiry_time":1030.5})", now), 30'500ms);
  EXPECT_EQ(stated_lease(R"({"a":1,"remote_blocks_expiry_time":1001})", now), 1s);
  EXPECT_FALSE(stated_lease(R"({"remote_blocks_expiry_time":999})", now));
  EXPECT_FALSE(stated_lease(R"({"remote_blocks_expiry_time":9999999})", now));
  EXPECT_FALSE(stated_lease(R"({"remote_blocks_expiry_time":"soon"})", now));
  EXPECT_FALSE(stated_lease("{}", now));
}

}  // namespace
}  // namespace balanceroute::proxy
