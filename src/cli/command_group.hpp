// command_group.hpp - commands below a command, as a table.
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "cli/command.hpp"

namespace balanceroute::cli {

// CommandGroup runs the one of its commands that the command line names.
class CommandGroup final : public Command {
 public:
  explicit CommandGroup(std::span<const CommandEntry> entries) : entries_{entries} {}

  void declare(CLI::App& app) override;
  std::expected<void, Failure> run() override;

 private:
  struct Member {
    CLI::App* app;
    std::unique_ptr<Command> command;
  };

  std::span<const CommandEntry> entries_;
  std::vector<Member> members_;
};

}  // namespace balanceroute::cli
