// Laws of faults on demand: who meets them, how often, and what cannot be asked for.
#include "emulator/fault_plan.hpp"

#include <gtest/gtest.h>

namespace balanceroute::emulator {
namespace {

net::HttpRequest request(std::string path, std::string_view header = "") {
  net::HttpRequest made{.method = "POST", .target = std::move(path)};
  if (!header.empty()) made.headers.add("x-emulator-fault", std::string{header});
  return made;
}

TEST(FaultPlan, ReadsKindsWithTheirNumbers) {
  EXPECT_EQ(parse_fault("refuse")->kind, FaultKind::refuse);
  EXPECT_EQ(parse_fault("status:503")->number, 503);
  EXPECT_EQ(parse_fault("stall:2")->number, 2);
  EXPECT_FALSE(parse_fault("stall")->number);
  for (const char* bad : {"", "refuze", "status", "status:200", "status:x", "stall:-1", "kv_loss:x", "slow:1s"}) {
    ASSERT_FALSE(parse_fault(bad)) << bad;
    EXPECT_NE(parse_fault(bad).error().find("'" + std::string{bad} + "'"), std::string::npos);
  }
}

// Law: an armed fault is met as often as it was armed for, by generating requests.
TEST(FaultPlan, ArmedFaultIsMetByTheNextRequests) {
  FaultPlan plan;
  plan.arm({.kind = FaultKind::reset}, 2, "");
  EXPECT_FALSE(*plan.take(request("/health")));
  EXPECT_EQ((*plan.take(request("/v1/completions")))->kind, FaultKind::reset);
  EXPECT_EQ((*plan.take(request("/v1/chat/completions")))->kind, FaultKind::reset);
  EXPECT_FALSE(*plan.take(request("/v1/completions")));
  EXPECT_EQ(plan.met()[static_cast<std::size_t>(FaultKind::reset)], 2);
}

TEST(FaultPlan, OtherPathsOnRequest) {
  FaultPlan plan;
  plan.arm({.kind = FaultKind::status, .number = 500}, 5, "/health");
  EXPECT_FALSE(*plan.take(request("/v1/completions")));
  EXPECT_TRUE(*plan.take(request("/health")));
  plan.clear();
  EXPECT_FALSE(*plan.take(request("/health")));
}

// Law: a header goes before what is armed, and leaves it armed.
TEST(FaultPlan, HeaderComesFirst) {
  FaultPlan plan;
  plan.arm({.kind = FaultKind::reset}, 1, "");
  EXPECT_EQ((*plan.take(request("/v1/completions", "slow:5")))->kind, FaultKind::slow);
  EXPECT_EQ((*plan.take(request("/v1/completions")))->kind, FaultKind::reset);
  EXPECT_FALSE(plan.take(request("/v1/completions", "nonsense")));
}

}  // namespace
}  // namespace balanceroute::emulator
