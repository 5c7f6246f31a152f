// command.hpp - what a command of the program is; each is one class in src/cli/<name>_command.cpp.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace balanceroute::cli {

enum class ExitCode : int { ok = 0, run_failed = 1, bad_usage = 2 };

// Why a command ends with another code than 0; main prints the message to stderr.
struct Failure {
  ExitCode code = ExitCode::run_failed;
  std::string message;
};

// The run started and went wrong.
[[nodiscard]] inline std::unexpected<Failure> run_failed(std::string message) {
  return std::unexpected(Failure{ExitCode::run_failed, std::move(message)});
}

// Flags, a config file or an input file are not as they must be; nothing was started.
[[nodiscard]] inline std::unexpected<Failure> bad_usage(std::string message) {
  return std::unexpected(Failure{ExitCode::bad_usage, std::move(message)});
}

// Command is one job of the program: it declares its flags, then runs with what they were set to. Results go to stdout;
// an expected failure is returned, not printed.
class Command {
 public:
  virtual ~Command() = default;

  // Adds flags to its own app. Called once; the command outlives the app.
  virtual void declare(CLI::App& app) = 0;
  virtual std::expected<void, Failure> run() = 0;
};

// A line of the table of commands.
struct CommandEntry {
  std::string_view name;
  std::string_view doc;
  std::unique_ptr<Command> (*make)();
};

}  // namespace balanceroute::cli
