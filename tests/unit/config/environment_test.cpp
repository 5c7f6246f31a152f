#include "config/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

using testing::ElementsAre;

std::expected<GivenSettings, ConfigError> read(const Environment& environment) {
  example::Params params;
  return visit_environment(environment, [&params](ParamVisitor& visitor) { params.visit_params(visitor); });
}

std::vector<std::string> problems(const Environment& environment) {
  const auto given = read(environment);
  return given ? std::vector<std::string>{} : given.error().problems;
}

// Law: only variables of our own are looked at.
TEST(Environment, TakesItsOwnVariables) {
  const std::array<const char*, 6> variables{"HOME=/root",          "BALANCEROUTE_LISTEN=a=b", "BALANCEROUTER_X=1",
                                             "BALANCEROUTE_BROKEN", "BALANCEROUTE_TOKEN=",     nullptr};
  EXPECT_EQ(own_variables(variables.data()), (Environment{{"BALANCEROUTE_LISTEN", "a=b"}, {"BALANCEROUTE_TOKEN", ""}}));
}

TEST(Environment, GivesSettingsByPath) {
  const auto given = read({{"BALANCEROUTE_LISTEN", "a:1"}, {"BALANCEROUTE_LIMITS_BODY_BYTES", "77"}});
  ASSERT_TRUE(given);
  EXPECT_EQ(*given, (GivenSettings{{"listen", "a:1"}, {"limits.body_bytes", "77"}}));
}

// Law: what is wrong is named with its variable, all of it, secrets hidden.
TEST(Environment, NamesWhatIsWrong) {
  EXPECT_THAT(problems({{"BALANCEROUTE_LIMITS_BODY_BYTES", "1 MB"}, {"BALANCEROUTE_LIMITS_STRICT", "1"}}),
              ElementsAre("BALANCEROUTE_LIMITS_BODY_BYTES = \"1 MB\": expected 1..1000000",
                          "BALANCEROUTE_LIMITS_STRICT = 1: expected true or false"));
  EXPECT_THAT(problems({{"BALANCEROUTE_LISTEN", "\xff"}}),
              ElementsAre("BALANCEROUTE_LISTEN = \"\\xff\": expected a text"));
  EXPECT_THAT(problems({{"BALANCEROUTE_TOKEN", "hunter2\xff"}}),
              ElementsAre("BALANCEROUTE_TOKEN = (hidden): expected a text"));
  EXPECT_THAT(problems({{"BALANCEROUTE_LISTN", "a:1"}}),
              ElementsAre("BALANCEROUTE_LISTN: unknown variable; did you mean BALANCEROUTE_LISTEN?"));
}

TEST(Environment, SetsNoLists) {
  const std::string reason = ": a list cannot be set in the environment; use the configuration file";
  EXPECT_THAT(problems({{"BALANCEROUTE_FLEETS", "[]"}, {"BALANCEROUTE_FLEETS_0_NAME", "a"}}),
              ElementsAre("BALANCEROUTE_FLEETS" + reason, "BALANCEROUTE_FLEETS_0_NAME" + reason));
}

// Law: a Kubernetes service named balanceroute, or balanceroute-something, does not keep the program from starting.
TEST(Environment, PassesOverServiceLinks) {
  EXPECT_THAT(problems({{"BALANCEROUTE_SERVICE_HOST", "10.0.0.1"},
                        {"BALANCEROUTE_SERVICE_PORT", "80"},
                        {"BALANCEROUTE_SERVICE_PORT_HTTP", "80"},
                        {"BALANCEROUTE_PORT", "tcp://10.0.0.1:80"},
                        {"BALANCEROUTE_PORT_80_TCP", "tcp://10.0.0.1:80"},
                        {"BALANCEROUTE_PORT_80_TCP_ADDR", "10.0.0.1"},
                        {"BALANCEROUTE_ADMIN_SERVICE_HOST", "10.0.0.1"}}),
              ElementsAre());
  EXPECT_THAT(problems({{"BALANCEROUTE_PORTS", "80"}}), testing::SizeIs(1));
}

}  // namespace
}  // namespace balanceroute
