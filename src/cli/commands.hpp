// commands.hpp - how each command is made; main.cpp lists them.
#pragma once

#include <memory>

#include "cli/command.hpp"

namespace balanceroute::cli {

[[nodiscard]] std::unique_ptr<Command> make_check_command();
[[nodiscard]] std::unique_ptr<Command> make_config_command();
[[nodiscard]] std::unique_ptr<Command> make_demo_command();
[[nodiscard]] std::unique_ptr<Command> make_emulate_command();
[[nodiscard]] std::unique_ptr<Command> make_explain_command();
[[nodiscard]] std::unique_ptr<Command> make_history_command();
[[nodiscard]] std::unique_ptr<Command> make_key_command();
[[nodiscard]] std::unique_ptr<Command> make_predict_command();
[[nodiscard]] std::unique_ptr<Command> make_replay_command();
[[nodiscard]] std::unique_ptr<Command> make_serve_command();
[[nodiscard]] std::unique_ptr<Command> make_simulate_command();
[[nodiscard]] std::unique_ptr<Command> make_calibrate_command();
[[nodiscard]] std::unique_ptr<Command> make_tune_command();
[[nodiscard]] std::unique_ptr<Command> make_verify_decisions_command();

}  // namespace balanceroute::cli
