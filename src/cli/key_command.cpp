// key_command.cpp - `balanceroute key`: draws an API key, and writes the entry that lets it in.
#include <fmt/format.h>
#include <CLI/App.hpp>

#include <iostream>

#include "cli/commands.hpp"
#include "proxy/api_keys.hpp"

namespace balanceroute::cli {
namespace {

class KeyCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("name", name_, "Name of the key: the tenant of requests that come with it.")
        ->required()
        ->type_name("NAME");
  }

  std::expected<void, Failure> run() override {
    const std::string key = proxy::new_api_key();
    const std::string entry =
        fmt::format("  - name: {}\n    sha256: {}\n", name_, proxy::hex_of(proxy::sha256_of(key)));
    const auto known = proxy::ApiKeys::parse("keys:\n" + entry, "NAME = " + name_);
    if (!known) return bad_usage(known.error());
    std::cout << "key: " << key << "\nentry:\n" << entry;
    return {};
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_key_command() {
  return std::make_unique<KeyCommand>();
}

}  // namespace balanceroute::cli
