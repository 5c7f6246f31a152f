#include "cli/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "cli/command_group.hpp"
#include "config/flags.hpp"

namespace balanceroute::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> runs;

struct JobParams {
  std::int64_t workers = 8;
  void visit_params(ParamVisitor& visitor) { visitor.integer({"workers", "How many."}, workers, {1, 9}); }
};

class Job final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }
  std::expected<void, Failure> run() override {
    runs.push_back("job with " + std::to_string(params_.workers));
    if (params_.workers == 9) return run_failed("nine is too many today");
    return {};
  }

 private:
  JobParams params_;
};

std::unique_ptr<Command> make_job() {
  return std::make_unique<Job>();
}

constexpr std::array<CommandEntry, 1> kInner{{{"inner", "A job below.", make_job}}};

std::unique_ptr<Command> make_outer() {
  return std::make_unique<CommandGroup>(kInner);
}

constexpr std::array<CommandEntry, 2> kCommands{{{"job", "A job.", make_job}, {"outer", "Jobs.", make_outer}}};

struct Outcome {
  int code = 0;
  std::string message;
  std::string printed;
};

Outcome call(std::initializer_list<const char*> arguments) {
  runs.clear();
  std::vector<const char*> argv{"balanceroute"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  CommandGroup program{kCommands};
  testing::internal::CaptureStdout();
  const auto done = run_command_line(program, static_cast<int>(argv.size()), argv.data());
  const std::string printed = testing::internal::GetCapturedStdout();
  if (done) return {0, "", printed};
  return {std::to_underlying(done.error().code), done.error().message, printed};
}

// Law: the named command runs, once, with its flags.
TEST(CommandLine, RunsTheNamedCommand) {
  EXPECT_EQ(call({"job"}).code, 0);
  EXPECT_THAT(runs, testing::ElementsAre("job with 8"));
  EXPECT_EQ(call({"outer", "inner", "--workers", "3"}).code, 0);
  EXPECT_THAT(runs, testing::ElementsAre("job with 3"));
}

TEST(CommandLine, AFailedRunKeepsItsCode) {
  const Outcome outcome = call({"job", "--workers", "9"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.message, "nine is too many today");
}

// Law: a mistake runs nothing, exits with 2, and says what is wrong in one line and where help is in another.
TEST(CommandLine, ExplainsMistakes) {
  const auto mistake = [](std::initializer_list<const char*> arguments) {
    const Outcome outcome = call(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.printed, "");
    EXPECT_TRUE(runs.empty());
    return outcome.message;
  };
  EXPECT_EQ(mistake({}), "no command: expected one of job, outer\nTry 'balanceroute --help'.");
  EXPECT_EQ(mistake({"outer"}), "no command: expected one of inner\nTry 'balanceroute outer --help'.");
  EXPECT_EQ(mistake({"jbo"}), "jbo: unknown command; did you mean job?\nTry 'balanceroute --help'.");
  EXPECT_EQ(mistake({"simulate"}), "simulate: unknown command; expected one of job, outer\nTry 'balanceroute --help'.");
  EXPECT_EQ(mistake({"job", "--worker", "3"}),
            "--worker: unknown flag; did you mean --workers?\nTry 'balanceroute job --help'.");
  EXPECT_EQ(mistake({"job", "3"}), "3: unexpected argument\nTry 'balanceroute job --help'.");
  EXPECT_EQ(mistake({"outer", "inner", "--workers", "10"}),
            "--workers = 10: expected 1..9\nTry 'balanceroute outer inner --help'.");
  EXPECT_THAT(mistake({"job", "--workers"}), StartsWith("--workers: a value is missing\n"));
  EXPECT_THAT(mistake({"job", "--workers", "1", "--workers=2"}), StartsWith("--workers: given more than once\n"));
  EXPECT_THAT(mistake({"job", "job"}), StartsWith("job"));
  EXPECT_THAT(mistake({"job", "outer", "inner"}), HasSubstr("--help"));
}

// Law: help and version are there on every level, go to stdout and run nothing.
TEST(CommandLine, HelpAndVersionOnEveryLevel) {
  for (const auto& level : std::vector<std::vector<const char*>>{{}, {"job"}, {"outer"}, {"outer", "inner"}}) {
    for (const char* asked : {"--help", "-h", "--version"}) {
      std::vector<const char*> argv{"balanceroute"};
      argv.insert(argv.end(), level.begin(), level.end());
      argv.push_back(asked);
      CommandGroup program{kCommands};
      testing::internal::CaptureStdout();
      const auto done = run_command_line(program, static_cast<int>(argv.size()), argv.data());
      const std::string printed = testing::internal::GetCapturedStdout();
      EXPECT_TRUE(done);
      EXPECT_TRUE(runs.empty());
      if (std::string_view{asked} == "--version") {
        EXPECT_THAT(printed, testing::MatchesRegex("balanceroute [0-9]+\\.[0-9]+\\.[0-9]+\n"));
      } else {
        EXPECT_THAT(printed, HasSubstr("Usage: balanceroute"));
        EXPECT_THAT(printed, HasSubstr("--help"));
      }
    }
  }
}

}  // namespace
}  // namespace balanceroute::cli
