// serve_config.hpp - the router's configuration from the command line: --config, a flag for every value, environment.
#pragma once

#include <expected>
#include <string>

#include "cli/command.hpp"
#include "config/config_loader.hpp"
#include "proxy/serve_params.hpp"

namespace balanceroute::cli {

// ServeConfig adds the flags that say how the router is configured, then loads what they and all other sources say;
// again whenever the file may have changed.
class ServeConfig {
 public:
  void declare(CLI::App& app);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::expected<LoadedConfig<proxy::ServeParams>, Failure> load() const;

 private:
  std::string file_;
  ConfigLoader<proxy::ServeParams> loader_{proxy::problems_of};
};

}  // namespace balanceroute::cli
