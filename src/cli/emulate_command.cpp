// emulate_command.cpp - `balanceroute emulate`: a fleet of engines without a model, until it is told to stop.
#include <iostream>

#include "cli/commands.hpp"
#include "cli/termination.hpp"
#include "config/flags.hpp"
#include "emulator/emulator.hpp"
#include "net/server.hpp"

namespace balanceroute::cli {
namespace {

class EmulateCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    const Termination termination;
    net::raise_descriptor_limit();
    const net::SteadyClock clock;
    emulator::Emulator engines{params_, clock};
    if (const auto started = engines.start(); !started) return run_failed(started.error());
    std::cout << engines.ready_json() << std::endl;
    termination.wait();
    engines.stop();
    return {};
  }

 private:
  emulator::EmulatorParams params_;
};

}  // namespace

std::unique_ptr<Command> make_emulate_command() {
  return std::make_unique<EmulateCommand>();
}

}  // namespace balanceroute::cli
