// config_command.cpp - `balanceroute config`: check a configuration, show what is in effect, document all settings.
#include <array>
#include <iostream>

#include "cli/command_group.hpp"
#include "cli/commands.hpp"
#include "cli/serve_config.hpp"
#include "config/show.hpp"

namespace balanceroute::cli {
namespace {

class ConfigCheck final : public Command {
 public:
  void declare(CLI::App& app) override { config_.declare(app); }

  std::expected<void, Failure> run() override {
    const auto loaded = config_.load();
    if (!loaded) return std::unexpected(loaded.error());
    if (const auto keys = proxy::load_keys(loaded->params); !keys) return bad_usage(keys.error());
    std::cout << config_.file() << ": ok\n";
    return {};
  }

 private:
  ServeConfig config_;
};

class ConfigShow final : public Command {
 public:
  void declare(CLI::App& app) override { config_.declare(app); }

  std::expected<void, Failure> run() override {
    const auto loaded = config_.load();
    if (!loaded) return std::unexpected(loaded.error());
    std::cout << to_yaml(loaded->params, loaded->origins);
    return {};
  }

 private:
  ServeConfig config_;
};

class ConfigReference final : public Command {
 public:
  void declare(CLI::App&) override {}

  std::expected<void, Failure> run() override {
    std::cout << to_reference<proxy::ServeParams>();
    return {};
  }
};

template <class C>
std::unique_ptr<Command> make() {
  return std::make_unique<C>();
}

constexpr auto kCommands = std::to_array<CommandEntry>({
    {"check", "Say whether a configuration is valid, and if not, all that is wrong.", make<ConfigCheck>},
    {"show", "Print the configuration in effect, with the origin of each value.", make<ConfigShow>},
    {"reference", "Print all settings as a Markdown table.", make<ConfigReference>},
});

}  // namespace

std::unique_ptr<Command> make_config_command() {
  return std::make_unique<CommandGroup>(kCommands);
}

}  // namespace balanceroute::cli
