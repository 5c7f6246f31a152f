#include "config/flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

using example::FleetParams;
using example::Params;
using testing::HasSubstr;
using testing::Not;

// Reads `arguments` as flags of `params`; the message of the first mistake, empty for none.
template <class P>
std::string parse(P& params, std::vector<std::string> arguments, GivenSettings* given = nullptr) {
  CLI::App app;
  add_flags(app, params, given);
  std::ranges::reverse(arguments);  // the order that App::parse takes
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

// Law: a flag sets exactly its own setting.
TEST(Flags, SetTheirSetting) {
  Params params;
  EXPECT_EQ(parse(params, {"--listen", "[::1]:0", "--limits-strict", "false", "--limits-timeout-ms=0.5"}), "");
  Params expected;
  expected.listen = "[::1]:0";
  expected.limits.strict = false;
  expected.limits.timeout_ms = 0.5;
  EXPECT_EQ(params, expected);
}

// Law: a flag of true or false alone means true, and does not take the next flag for its value.
TEST(Flags, OfTrueOrFalseAloneMeanTrue) {
  Params params;
  params.limits.strict = false;
  EXPECT_EQ(parse(params, {"--limits-strict", "--listen", "[::1]:0"}), "");
  EXPECT_TRUE(params.limits.strict);
  EXPECT_EQ(params.listen, "[::1]:0");
  GivenSettings given;
  EXPECT_EQ(parse(params, {"--limits-strict"}, &given), "");
  EXPECT_EQ(given, (GivenSettings{{"limits.strict", "true"}}));
}

// Law: a value out of range changes nothing and is named with its flag and what was expected.
TEST(Flags, RefuseWhatIsOutOfRange) {
  Params params;
  EXPECT_EQ(parse(params, {"--limits-body-bytes", "0"}), "--limits-body-bytes = 0: expected 1..1000000");
  EXPECT_EQ(parse(params, {"--limits-body-bytes", "-3"}), "--limits-body-bytes = -3: expected 1..1000000");
  EXPECT_EQ(parse(params, {"--limits-body-bytes", "1e3"}), "--limits-body-bytes = 1e3: expected 1..1000000");
  EXPECT_EQ(parse(params, {"--limits-timeout-ms", "nan"}), "--limits-timeout-ms = nan: expected 0..60000");
  EXPECT_EQ(parse(params, {"--limits-strict", "yes"}), "--limits-strict = yes: expected true or false");
  EXPECT_EQ(params, Params{});
}

TEST(Flags, TakeChoicesAndAuto) {
  example::PolicyParams policy;
  EXPECT_EQ(parse(policy, {"--threshold", "7", "--order", "capacity"}), "");
  EXPECT_EQ(policy.threshold, 7);
  EXPECT_EQ(policy.order, "capacity");
  EXPECT_EQ(parse(policy, {"--threshold", "auto"}), "");
  EXPECT_EQ(policy.threshold, example::PolicyParams::kAuto);
  EXPECT_EQ(parse(policy, {"--threshold", "-1"}), "--threshold = -1: expected 0..1000 or auto");
  EXPECT_EQ(parse(policy, {"--order", "size"}), "--order = size: expected one of load, capacity");
}

struct Weighted {
  double weight = -1;
  void visit_params(ParamVisitor& visitor) { visitor.real_or_auto({"weight", "Weight."}, weight, -1, {0, 2}); }
};

// Law: a number that may be left open takes the word auto, and nothing else that is not in its range.
TEST(Flags, TakeANumberOrAuto) {
  Weighted params;
  EXPECT_EQ(parse(params, {"--weight", "0.5"}), "");
  EXPECT_EQ(params.weight, 0.5);
  EXPECT_EQ(parse(params, {"--weight", "auto"}), "");
  EXPECT_EQ(params.weight, -1);
  EXPECT_EQ(parse(params, {"--weight", "-1"}), "--weight = -1: expected 0..2 or auto");
}

// Law: lists of texts are parted by commas; lists of sections have no flags.
TEST(Flags, OfLists) {
  FleetParams fleet;
  EXPECT_EQ(parse(fleet, {"--name", "main", "--aliases", "a,b"}), "");
  EXPECT_EQ(fleet.aliases, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse(fleet, {"--name", "main", "--aliases", ""}), "");
  EXPECT_TRUE(fleet.aliases.empty());
  EXPECT_THAT(parse(fleet, {"--name", "main", "--workers-url", "x"}), HasSubstr("--workers-url"));
}

struct ListParams {
  std::vector<std::int64_t> sizes{8};
  std::vector<double> loads{0.5, 1.25};
  std::vector<std::string> orders{"load"};

  void visit_params(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kOrders{"load", "capacity"};
    visitor.integers({"sizes", "Sizes."}, sizes, {1, 64});
    visitor.reals({"loads", "Loads."}, loads, {0.1, 10});
    visitor.choices({"orders", "Orders."}, orders, kOrders);
  }
  friend bool operator==(const ListParams&, const ListParams&) = default;
};

// Law: lists of numbers and choices are parted by commas, replace the default, and are taken whole or not at all.
TEST(Flags, OfListsOfNumbersAndChoices) {
  ListParams lists;
  EXPECT_EQ(parse(lists, {"--sizes", "4,16", "--loads", "0.8,1.1,2", "--orders", "capacity,load"}), "");
  EXPECT_EQ(lists, (ListParams{{4, 16}, {0.8, 1.1, 2}, {"capacity", "load"}}));
  const ListParams before = lists;
  EXPECT_EQ(parse(lists, {"--sizes", "4,0"}), "--sizes = 4,0: expected 1..64; more than one parted by commas");
  EXPECT_EQ(parse(lists, {"--sizes", "4,"}), "--sizes = 4,: expected 1..64; more than one parted by commas");
  EXPECT_EQ(parse(lists, {"--sizes", ""}), "--sizes = \"\": expected 1..64; more than one parted by commas");
  EXPECT_EQ(parse(lists, {"--loads", "1 2"}), "--loads = \"1 2\": expected 0.1..10; more than one parted by commas");
  EXPECT_EQ(parse(lists, {"--orders", "load,size"}),
            "--orders = load,size: expected one of load, capacity; more than one parted by commas");
  EXPECT_EQ(lists, before);
}

TEST(Flags, OfListsShowTheirDefaultsInHelp) {
  ListParams lists;
  CLI::App app;
  add_flags(app, lists);
  EXPECT_THAT(app.help(), HasSubstr("default 0.5,1.25"));
}

// Law: a required setting is a required flag, unless its value may come from elsewhere.
TEST(Flags, AreRequiredWhereNothingElseCanGiveTheValue) {
  FleetParams fleet;
  EXPECT_EQ(parse(fleet, {}), "--name is required");
  EXPECT_EQ(parse(fleet, {"--name", ""}), "--name = \"\": expected a text");
  GivenSettings given;
  EXPECT_EQ(parse(fleet, {"--policy-r-max", "5"}, &given), "");
  EXPECT_EQ(given, (GivenSettings{{"policy.r_max", "5"}}));
}

TEST(Flags, GivenTwiceAreRefused) {
  Params params;
  EXPECT_THAT(parse(params, {"--listen", "a:1", "--listen", "b:1"}), HasSubstr("--listen"));
}

// Law: help tells meaning, range and default of every flag, and no secret.
TEST(Flags, AreExplainedByHelp) {
  Params params;
  params.token = "hunter2";
  CLI::App app;
  add_flags(app, params);
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("--limits-body-bytes N"));
  EXPECT_THAT(help, HasSubstr("Largest body. [1..1000000; default 1024]"));
  EXPECT_THAT(help, HasSubstr("--limits-strict true|false"));
  EXPECT_THAT(help, HasSubstr("Whether unknown members are refused. [default true]"));
  EXPECT_THAT(help, HasSubstr("--token TEXT"));
  EXPECT_THAT(help, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace balanceroute
