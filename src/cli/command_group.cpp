#include "cli/command_group.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <cassert>
#include <string>

namespace balanceroute::cli {

void CommandGroup::declare(CLI::App& app) {
  for (const CommandEntry& entry : entries_) {
    CLI::App* member = app.add_subcommand(std::string{entry.name}, std::string{entry.doc});
    member->group("Commands");
    std::unique_ptr<Command> command = entry.make();
    command->declare(*member);
    members_.push_back({member, std::move(command)});
  }
  app.require_subcommand(1);
}

std::expected<void, Failure> CommandGroup::run() {
  const auto chosen = std::ranges::find_if(members_, [](const Member& member) { return member.app->parsed(); });
  assert(chosen != members_.end());  // required above
  return chosen->command->run();
}

}  // namespace balanceroute::cli
