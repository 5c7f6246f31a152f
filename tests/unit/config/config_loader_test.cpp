#include "config/config_loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

using example::Params;
using testing::ElementsAre;

class ConfigLoaderTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    std::ofstream{path_} << text;
    return path_;
  }

  static void parse(ConfigLoader<Params>& loader, std::vector<std::string> flags) {
    CLI::App app;
    loader.add_flags(app);
    std::ranges::reverse(flags);
    app.parse(flags);
  }

  void TearDown() override { std::filesystem::remove(path_); }

  const std::filesystem::path path_ =
      testing::TempDir() + "config_loader_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
};

// Law: default < file < environment < flag, setting by setting, and each value knows where it is from.
TEST_F(ConfigLoaderTest, LaterSourcesWin) {
  ConfigLoader<Params> loader;
  parse(loader, {"--limits-strict", "false"});
  const auto file = write("token: file\nlimits: {body_bytes: 2, timeout_ms: 2, strict: true}\n");
  const auto loaded =
      loader.load(file, {{"BALANCEROUTE_LIMITS_TIMEOUT_MS", "3"}, {"BALANCEROUTE_LIMITS_STRICT", "true"}});
  ASSERT_TRUE(loaded) << loaded.error().text();
  Params expected;
  expected.token = "file";
  expected.limits = {.body_bytes = 2, .timeout_ms = 3, .strict = false};
  EXPECT_EQ(loaded->params, expected);
  EXPECT_EQ(loaded->origins, (Origins{{"token", file.string() + ":1"},
                                      {"limits", file.string() + ":2"},
                                      {"limits.body_bytes", file.string() + ":2"},
                                      {"limits.timeout_ms", "environment BALANCEROUTE_LIMITS_TIMEOUT_MS"},
                                      {"limits.strict", "flag --limits-strict"}}));
}

TEST_F(ConfigLoaderTest, NeedsNoFile) {
  ConfigLoader<Params> loader;
  parse(loader, {"--listen", "a:1"});
  const auto loaded = loader.load(std::nullopt, {});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->params.listen, "a:1");
  EXPECT_EQ(loaded->origins, (Origins{{"listen", "flag --listen"}}));
}

// Law: loading again reads the file again and forgets what it said before.
TEST_F(ConfigLoaderTest, LoadsAgain) {
  const ConfigLoader<Params> loader;
  ASSERT_EQ(loader.load(write("listen: a:1\nfleets: [{name: x, workers: [{url: u}]}]"), {})->params.fleets.size(), 1U);
  const auto again = loader.load(write("token: t"), {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->params.listen, Params{}.listen);
  EXPECT_TRUE(again->params.fleets.empty());
}

TEST_F(ConfigLoaderTest, TellsWhatIsWrongInAnySource) {
  const ConfigLoader<Params> loader;
  EXPECT_THAT(loader.load(write("listen: []"), {}).error().problems,
              ElementsAre(path_.string() + ":1: listen = []: expected a text"));
  EXPECT_THAT(loader.load(write("listen: a"), {{"BALANCEROUTE_LISTN", ""}}).error().problems,
              ElementsAre("BALANCEROUTE_LISTN: unknown variable; did you mean BALANCEROUTE_LISTEN?"));
  EXPECT_THAT(loader.load("no/such.yaml", {}).error().problems, ElementsAre("no/such.yaml: No such file or directory"));
}

// Law: a required setting may come from any source.
TEST(ConfigLoader, RequiredSettingsMayComeFromElsewhere) {
  struct Needy {
    std::string url;
    void visit_params(ParamVisitor& visitor) { visitor.text({.name = "url", .doc = "Where.", .required = true}, url); }
  };
  const ConfigLoader<Needy> loader;
  EXPECT_THAT(loader.load(std::nullopt, {}).error().problems,
              ElementsAre("no configuration file: url: missing, expected a text"));
  EXPECT_TRUE(loader.load(std::nullopt, {{"BALANCEROUTE_URL", "x"}}));
}

// Law: a problem between settings is told with the origin of the setting it names, or of what that is a part of.
TEST_F(ConfigLoaderTest, ChecksWhatNoSingleSettingCanSay) {
  const ConfigLoader<Params> loader{[](const Params& params) {
    std::vector<std::string> problems;
    if (params.listen == "a:1") problems.emplace_back("listen = a:1: is taken");
    if (params.token.empty()) problems.emplace_back("token = \"\": expected one for a:1");
    if (!params.fleets.empty()) problems.emplace_back("fleets[0].policy: has one worker");
    return problems;
  }};
  const auto file = write("fleets:\n- name: x\n  workers: [{url: u}]\n");
  EXPECT_THAT(
      loader.load(file, {{"BALANCEROUTE_LISTEN", "a:1"}}).error().problems,
      ElementsAre("environment BALANCEROUTE_LISTEN: listen = a:1: is taken", "token = \"\": expected one for a:1",
                  file.string() + ":2: fleets[0].policy: has one worker"));
  EXPECT_TRUE(loader.load(std::nullopt, {{"BALANCEROUTE_TOKEN", "t"}}));
}

}  // namespace
}  // namespace balanceroute
