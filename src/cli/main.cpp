// main.cpp - the `balanceroute` program: its table of commands, its exit code.
#include <array>
#include <exception>
#include <iostream>
#include <utility>

#include "cli/command_group.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"

namespace balanceroute::cli {
namespace {

constexpr auto kCommands = std::to_array<CommandEntry>({
    {"serve", "Route requests to decode workers.", make_serve_command},
    {"check", "Ask a live fleet whether it is what the configuration says.", make_check_command},
    {"key", "Draw an API key for a client, and print the entry that lets it in.", make_key_command},
    {"config", "Check, show or document the router's configuration.", make_config_command},
    {"simulate", "Compare policies on a trace of requests, in virtual time.", make_simulate_command},
    {"calibrate", "Say from measured steps whether KV tokens are what makes them long.", make_calibrate_command},
    {"tune", "Find the settings of br_h that suit a trace and a fleet.", make_tune_command},
    {"explain", "Show what is decided on a fleet's state, with every score.", make_explain_command},
    {"history", "Say what a router's history holds, or write it as a trace.", make_history_command},
    {"predict", "Judge predictors of the length of answers.", make_predict_command},
    {"demo", "Compare the policies on a real trace, over HTTP, on this machine.", make_demo_command},
    {"emulate", "Play a fleet of engines that step together, without a model.", make_emulate_command},
    {"replay", "Send a trace of requests to an OpenAI-compatible server and measure the answers.", make_replay_command},
    {"verify-decisions", "Take the decisions of a running router again, from its log, and compare.",
     make_verify_decisions_command},
});

int fail(const Failure& failure) {
  std::cerr << "balanceroute: " << failure.message << '\n';
  return std::to_underlying(failure.code);
}

int run(int argc, const char* const* argv) {
  CommandGroup program{kCommands};
  if (const auto done = run_command_line(program, argc, argv); !done) return fail(done.error());
  if (!std::cout.flush()) return fail({ExitCode::run_failed, "standard output: cannot be written to"});
  return std::to_underlying(ExitCode::ok);
}

}  // namespace
}  // namespace balanceroute::cli

int main(int argc, char** argv) {
  using namespace balanceroute::cli;
  try {
    return run(argc, argv);
  } catch (const std::exception& fault) {
    return fail({ExitCode::run_failed, fault.what()});
  }
}
