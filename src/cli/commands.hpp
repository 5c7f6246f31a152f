// commands.hpp - how each command is made; main.cpp lists them.
#pragma once

#include <memory>

#include "cli/command.hpp"

namespace balanceroute::cli {

[[nodiscard]] std::unique_ptr<Command> make_config_command();

}  // namespace balanceroute::cli
