// commands.hpp - how each command is made; main.cpp lists them.
#pragma once

#include <memory>

#include "cli/command.hpp"

namespace balanceroute::cli {}  // namespace balanceroute::cli
