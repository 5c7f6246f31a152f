#include "config/yaml_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "config/yaml_tree.hpp"
#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

using example::Params;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// What is wrong with `text`; a refused text must leave the settings as they were.
std::vector<std::string> problems(const std::string& text) {
  Params params;
  params.listen = "before";
  params.fleets.resize(2);
  const Params before = params;
  const auto read = read_yaml(text, "r.yaml", params);
  if (read) return {};
  EXPECT_EQ(params, before) << text;
  return read.error().problems;
}

// The same, for the settings of a policy.
std::vector<std::string> policy_problems(const std::string& setting) {
  return problems("fleets:\n- name: main\n  workers: [{url: a}]\n  policy:\n    " + setting);
}

TEST(YamlReader, ReadsEveryKindOfSetting) {
  Params params;
  params.fleets.resize(3);  // replaced, not added to
  const auto origins = read_yaml(R"(# a router
listen: "[::1]:80"
limits:
  timeout_ms: 1.5e3
  strict: false
fleets:
  - name: main
    aliases: [a, 'b c']
    policy: {order: capacity, r_max: 64, threshold: 0}
    workers:
      - url: http://10.0.0.1:8000
      - {url: http://10.0.0.2:8000, start_rank: 4}
  - name: "123"
    policy: {"threshold": "auto"}
    workers: [{url: x}]
)",
                                 "r.yaml", params);
  ASSERT_TRUE(origins) << origins.error().text();

  Params expected;
  expected.listen = "[::1]:80";
  expected.limits = {.timeout_ms = 1500, .strict = false};
  expected.fleets = {{.name = "main",
                      .aliases = {"a", "b c"},
                      .policy = {.order = "capacity", .r_max = 64, .threshold = 0},
                      .workers = {{.url = "http://10.0.0.1:8000"}, {.url = "http://10.0.0.2:8000", .start_rank = 4}}},
                     {.name = "123", .workers = {{.url = "x"}}}};
  EXPECT_EQ(params, expected);

  // Law: what the file sets has its line, what it does not has none.
  EXPECT_EQ(origins->at("listen"), "r.yaml:2");
  EXPECT_EQ(origins->at("limits.timeout_ms"), "r.yaml:4");
  EXPECT_EQ(origins->at("fleets"), "r.yaml:6");
  EXPECT_EQ(origins->at("fleets[0].workers[1].start_rank"), "r.yaml:12");
  EXPECT_FALSE(origins->contains("limits.body_bytes"));
  EXPECT_FALSE(origins->contains("fleets[1].policy.r_max"));
}

// JSON is YAML: a configuration may be written by any program.
TEST(YamlReader, ReadsJson) {
  Params params;
  ASSERT_TRUE(
      read_yaml(R"({"listen": "a:1", "limits": {"strict": false, "body_bytes": 7}, "fleets": []})", "", params));
  EXPECT_EQ(params.listen, "a:1");
  EXPECT_EQ(params.limits, (example::LimitParams{.body_bytes = 7, .strict = false}));
}

// Law: a section with nothing in it is one of defaults.
TEST(YamlReader, TakesAnEmptySection) {
  EXPECT_THAT(problems("limits:\n"), SizeIs(0));
  EXPECT_THAT(problems("limits: {}\n"), SizeIs(0));
}

TEST(YamlReader, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(policy_problems("r_max: 99"), ElementsAre("r.yaml:5: fleets[0].policy.r_max = 99: expected 1..64"));
  EXPECT_THAT(policy_problems("r_max: 99999999999999999999"),
              ElementsAre("r.yaml:5: fleets[0].policy.r_max = 99999999999999999999: expected 1..64"));
  EXPECT_THAT(policy_problems("threshold: -1"),
              ElementsAre("r.yaml:5: fleets[0].policy.threshold = -1: expected 0..1000 or auto"));
  EXPECT_THAT(policy_problems("order: size"),
              ElementsAre("r.yaml:5: fleets[0].policy.order = size: expected one of load, capacity"));
  EXPECT_THAT(problems("limits: {timeout_ms: .nan}"),
              ElementsAre("r.yaml:1: limits.timeout_ms = .nan: expected 0..60000"));
  EXPECT_THAT(problems("limits: {timeout_ms: nan}"),
              ElementsAre("r.yaml:1: limits.timeout_ms = nan: expected 0..60000"));
}

TEST(YamlReader, RefusesWrongTypes) {
  EXPECT_THAT(policy_problems("r_max: many"), ElementsAre("r.yaml:5: fleets[0].policy.r_max = many: expected 1..64"));
  EXPECT_THAT(policy_problems("r_max: 4.0"), ElementsAre("r.yaml:5: fleets[0].policy.r_max = 4.0: expected 1..64"));
  EXPECT_THAT(policy_problems("r_max: \"4\""), ElementsAre("r.yaml:5: fleets[0].policy.r_max = \"4\": expected 1..64"));
  EXPECT_THAT(policy_problems("r_max:"), ElementsAre("r.yaml:5: fleets[0].policy.r_max = nothing: expected 1..64"));
  EXPECT_THAT(policy_problems("r_max: [4]"), ElementsAre("r.yaml:5: fleets[0].policy.r_max = [...]: expected 1..64"));
  EXPECT_THAT(problems("limits: {strict: yes}"), ElementsAre("r.yaml:1: limits.strict = yes: expected true or false"));
  EXPECT_THAT(problems("listen:"), ElementsAre("r.yaml:1: listen = nothing: expected a text"));
  EXPECT_THAT(problems("listen: {a: 1}"), ElementsAre("r.yaml:1: listen = {...}: expected a text"));
  EXPECT_THAT(problems("limits: 5"), ElementsAre("r.yaml:1: limits = 5: expected a section of settings"));
  EXPECT_THAT(problems("fleets: {}"), ElementsAre("r.yaml:1: fleets = {}: expected a list"));
  EXPECT_THAT(problems("fleets:\n- main"), ElementsAre("r.yaml:2: fleets[0] = main: expected a section of settings"));
  EXPECT_THAT(problems("fleets:\n- name: a\n  workers: [{url: a}]\n  aliases: b"),
              ElementsAre("r.yaml:4: fleets[0].aliases = b: expected a list of texts"));
  EXPECT_THAT(problems("fleets:\n- name: a\n  workers: [{url: a}]\n  aliases: [b, [c]]"),
              ElementsAre("r.yaml:4: fleets[0].aliases[1] = [...]: expected a text"));
}

TEST(YamlReader, NamesTheNearestKnownKey) {
  EXPECT_THAT(problems("lisen: a:1"), ElementsAre("r.yaml:1: lisen: unknown key; did you mean listen?"));
  EXPECT_THAT(policy_problems("rmax: 4"),
              ElementsAre("r.yaml:5: fleets[0].policy.rmax: unknown key; did you mean r_max?"));
  EXPECT_THAT(problems("telemetry: {}"),
              ElementsAre("r.yaml:1: telemetry: unknown key; expected one of listen, token, limits, fleets"));
  EXPECT_THAT(problems("limits.strict: true"), ElementsAre(StartsWith("r.yaml:1: limits.strict: unknown key")));
}

TEST(YamlReader, RefusesAKeyGivenTwice) {
  EXPECT_THAT(problems("listen: a:1\nlimits: {}\nlisten: a:1"),
              ElementsAre("r.yaml:3: listen: given twice, first in line 1"));
  EXPECT_THAT(problems("limits: {strict: true, 'strict': true}"),
              ElementsAre("r.yaml:1: limits.strict: given twice, first in line 1"));
}

TEST(YamlReader, RefusesWhatLacksSomethingRequired) {
  EXPECT_THAT(problems("listen: a\nfleets:\n- aliases: []"),
              ElementsAre("r.yaml:3: fleets[0].name: missing, expected a text",
                          "r.yaml:3: fleets[0].workers: missing, expected at least one entry"));
  EXPECT_THAT(problems("fleets:\n- name: ''\n  workers: []"),
              ElementsAre("r.yaml:2: fleets[0].name = \"\": expected a text",
                          "r.yaml:3: fleets[0].workers = []: expected at least one entry"));
}

struct OptionalTls {
  std::string certificate;
  std::int64_t level = 0;
  void visit_params(ParamVisitor& visitor) {
    visitor.section({"tls", "Encryption."}, [this](ParamVisitor& inner) {
      inner.text({.name = "certificate", .doc = "Who we are.", .required = true}, certificate);
      inner.integer({"level", "How much."}, level, {0, 3});
    });
  }
};

// Law: what a section requires is required once the section is there, in the file or by one of its settings elsewhere.
TEST(YamlReader, RequiresNothingOfASectionThatIsNotThere) {
  OptionalTls params;
  EXPECT_TRUE(read_yaml("{}", "r.yaml", params));
  EXPECT_TRUE(read_yaml("tls: {certificate: c}", "r.yaml", params));
  EXPECT_TRUE(read_yaml("tls: {level: 1}", "r.yaml", params, {{"tls.certificate", "c"}}));
  const auto lacking = read_yaml("tls: {level: 1}", "r.yaml", params);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().text(), "r.yaml:1: tls.certificate: missing, expected a text");
  EXPECT_FALSE(read_yaml("{}", "r.yaml", params, {{"tls.level", "1"}}));
}

// Law: all problems of a file are told at once, in the order of its lines.
TEST(YamlReader, TellsAllProblemsTogether) {
  EXPECT_THAT(problems("lisen: a\nlimits:\n  body_bytes: 0\n  strict: maybe\nfleets:\n- name: a\n  workers: 3\n"),
              ElementsAre("r.yaml:1: lisen: unknown key; did you mean listen?",
                          "r.yaml:3: limits.body_bytes = 0: expected 1..1000000",
                          "r.yaml:4: limits.strict = maybe: expected true or false",
                          "r.yaml:7: fleets[0].workers = 3: expected at least one entry"));
}

TEST(YamlReader, TellsAFewOfVeryManyProblems) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::vector<std::string> told = problems(text);
  EXPECT_THAT(told, SizeIs(21));
  EXPECT_EQ(told.back(), "r.yaml: and 980 problems more");
}

// Law: a message shows no secret and no endless value.
TEST(YamlReader, KeepsSecretsAndLengthOutOfMessages) {
  EXPECT_THAT(problems("token: [hunter2]"), ElementsAre("r.yaml:1: token = (hidden): expected a text"));
  EXPECT_THAT(problems("limits: " + std::string(10'000, 'x')), ElementsAre(SizeIs(testing::Lt(200))));
  EXPECT_THAT(problems("limits: \"a\\nb\""), ElementsAre(HasSubstr("limits = \"a\\nb\": expected")));
}

TEST(YamlReader, RefusesWhatAConfigurationNeverNeeds) {
  EXPECT_THAT(problems("listen: &a x\n"), ElementsAre(HasSubstr("r.yaml:1: anchors")));
  EXPECT_THAT(problems("listen: &a x\ntoken: *a\n"), ElementsAre(HasSubstr("anchors")));
  EXPECT_THAT(problems("a: &a [x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]"), ElementsAre(HasSubstr("anchors")));
  EXPECT_THAT(problems("listen: !!str x\n"), ElementsAre("r.yaml:1: tags (!name) are not supported"));
  EXPECT_THAT(problems("listen: a\n---\nlisten: b\n"), ElementsAre("r.yaml: several YAML documents: expected one"));
  EXPECT_THAT(problems("[a]: b"), ElementsAre("r.yaml:1: a key is a list or a map: expected a name"));
  EXPECT_THAT(problems("~: b"), ElementsAre("r.yaml:1: a key is missing"));
  EXPECT_THAT(problems("listen: a\nb\x04"), ElementsAre("r.yaml:2: a control character: expected text"));
  EXPECT_THAT(problems("listen: a\n\nb: \xff"), ElementsAre("r.yaml:3: not UTF-8"));
}

TEST(YamlReader, RefusesWhatIsNotYaml) {
  EXPECT_THAT(problems("listen: a\n  b: c\n"), ElementsAre(StartsWith("r.yaml:2: not YAML: ")));
  EXPECT_THAT(problems("listen: [a"), ElementsAre(StartsWith("r.yaml:1: not YAML: ")));
  EXPECT_THAT(problems("listen: \"a"), ElementsAre(StartsWith("r.yaml:1: not YAML: ")));
}

TEST(YamlReader, RefusesAFileWithoutSettings) {
  for (const char* text : {"", "\n", "# nothing yet\n", "---\n", "~"}) {
    EXPECT_THAT(problems(text), ElementsAre("r.yaml: empty: expected settings")) << text;
  }
  EXPECT_THAT(problems("- a"), ElementsAre("r.yaml:1: [...]: expected settings, as `name: value`"));
  EXPECT_THAT(problems("main"), ElementsAre("r.yaml:1: main: expected settings, as `name: value`"));
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

// Law: the bounds on depth and size are exact.
TEST(YamlReader, BoundsDepthAndSize) {
  EXPECT_TRUE(parse_yaml(nested(kDeepestYaml)));
  EXPECT_EQ(parse_yaml(nested(kDeepestYaml + 1)).error().what, "more than 32 lists and maps in one another");
  EXPECT_FALSE(parse_yaml(std::string(100'000, '[')));

  std::string text = "listen: a\n";
  text += "#" + std::string(kLargestYaml - text.size() - 1, ' ');
  EXPECT_THAT(problems(text), SizeIs(0));
  EXPECT_THAT(problems(text + " "), ElementsAre("r.yaml: 1048577 bytes: expected at most 1048576"));
}

// Law: a file that cannot be read is named with the reason.
TEST(YamlReader, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(read_config_file("no/such.yaml").error().text(), "no/such.yaml: No such file or directory");
  const std::filesystem::path folder = testing::TempDir();
  EXPECT_EQ(read_config_file(folder).error().text(), folder.string() + ": a directory: expected a file");
  EXPECT_EQ(read_config_file("/dev/zero").error().text(), "/dev/zero: more than 1048576 bytes");
  EXPECT_EQ(read_config_file("/dev/null"), "");
}

struct NumbersParams {
  std::vector<std::int64_t> sizes{8};

  void visit_params(ParamVisitor& visitor) { visitor.integers({"sizes", "Sizes."}, sizes, {1, 64}); }
};

// Law: a list of numbers is a list, or a text of them parted by commas; taken whole or refused.
TEST(YamlReader, ListsOfNumbersAreLists) {
  for (const std::string text : {"sizes: [4, 16]", "sizes:\n- 4\n- 16", "sizes: 4,16", R"({"sizes": [4, 16]})"}) {
    NumbersParams params;
    ASSERT_TRUE(read_yaml(text, "r.yaml", params)) << text;
    EXPECT_THAT(params.sizes, ElementsAre(4, 16)) << text;
  }
  for (const std::string text :
       {"sizes: []", "sizes: [4, 65]", "sizes: [[4]]", "sizes: [{a: 4}]", "sizes: [\"4,5\"]"}) {
    NumbersParams params;
    const auto read = read_yaml(text, "r.yaml", params);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().problems, ElementsAre(HasSubstr("expected 1..64"))) << text;
    EXPECT_THAT(params.sizes, ElementsAre(8)) << text;
  }
}

}  // namespace
}  // namespace balanceroute
