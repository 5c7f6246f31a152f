#include "cli/serve_config.hpp"

#include <unistd.h>

#include <CLI/App.hpp>
#include <utility>

namespace balanceroute::cli {
namespace {

std::string explain(const ConfigError& error) {
  if (error.problems.size() == 1) return error.problems.front();
  std::string text = "the configuration has " + std::to_string(error.problems.size()) + " problems:";
  for (const std::string& problem : error.problems) text += "\n  " + problem;
  return text;
}

}  // namespace

void ServeConfig::declare(CLI::App& app) {
  app.add_option("--config", file_, "The configuration file (YAML).")->required()->type_name("FILE");
  loader_.add_flags(app);
}

std::expected<LoadedConfig<proxy::ServeParams>, Failure> ServeConfig::load() const {
  auto loaded = loader_.load(file_, own_variables(environ));
  if (!loaded) return bad_usage(explain(loaded.error()));
  return *std::move(loaded);
}

}  // namespace balanceroute::cli
