// config_loader.hpp - the effective settings: defaults, then file, then environment, then flags; the later wins.
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config_error.hpp"
#include "config/environment.hpp"
#include "config/flags.hpp"
#include "config/given_settings.hpp"
#include "config/yaml_reader.hpp"
#include "core/params.hpp"

namespace balanceroute {

// Settings and where each comes from.
template <class Params>
struct LoadedConfig {
  Params params;
  Origins origins;
};

// What environment and flags give, and where each comes from.
struct GivenOverFile {
  GivenSettings settings;
  Origins origins;
};
[[nodiscard]] GivenOverFile given_over_file(const GivenSettings& environment, const GivenSettings& flags);

// ConfigLoader loads settings of one struct, as often as the file may change.
//   Result      valid settings with their origins, or every problem found; never a mixture.
//   Check       what no single setting can say: problems that start with the path of a setting.
template <class Params>
class ConfigLoader {
 public:
  using Check = std::function<std::vector<std::string>(const Params&)>;

  explicit ConfigLoader(Check check = {}, Params defaults = {})
      : check_{std::move(check)}, defaults_{std::move(defaults)}, flag_values_{defaults_} {}

  ConfigLoader(const ConfigLoader&) = delete;  // flags point into it
  ConfigLoader& operator=(const ConfigLoader&) = delete;

  // Adds the flags whose values `load` takes. The loader outlives `app`.
  void add_flags(CLI::App& app) { balanceroute::add_flags(app, flag_values_, &flags_); }

  // Without a file, its place in the order is empty.
  [[nodiscard]] std::expected<LoadedConfig<Params>, ConfigError> load(const std::optional<std::filesystem::path>& file,
                                                                      const Environment& environment) const {
    LoadedConfig<Params> loaded{defaults_, {}};
    const auto visit = [&loaded](ParamVisitor& visitor) { loaded.params.visit_params(visitor); };
    const auto given = visit_environment(environment, visit);
    if (!given) return std::unexpected(given.error());
    const GivenOverFile over = given_over_file(*given, flags_);

    loaded.params = defaults_;
    auto origins = read_file(file, visit, over.settings);
    if (!origins) return std::unexpected(std::move(origins.error()));
    apply_given(over.settings, visit);
    loaded.origins = over.origins;
    loaded.origins.merge(*std::move(origins));

    if (auto fault = problems(loaded)) return std::unexpected(*std::move(fault));
    return loaded;
  }

 private:
  using Visit = std::function<void(ParamVisitor&)>;

  static std::expected<Origins, ConfigError> read_file(const std::optional<std::filesystem::path>& file,
                                                       const Visit& visit, const GivenSettings& elsewhere) {
    if (!file) return visit_no_yaml(visit, elsewhere);
    const auto text = read_config_file(*file);
    if (!text) return std::unexpected(text.error());
    return visit_yaml(*text, file->string(), visit, elsewhere);
  }

  std::optional<ConfigError> problems(const LoadedConfig<Params>& loaded) const {
    if (!check_) return std::nullopt;
    ConfigError error;
    for (const std::string& problem : check_(loaded.params)) {
      error.problems.push_back(with_origin(problem, loaded.origins));
    }
    if (error.problems.empty()) return std::nullopt;
    return error;
  }

  Check check_;
  Params defaults_;
  Params flag_values_;  // what flags were parsed into; only `flags_` is used
  GivenSettings flags_;
};

}  // namespace balanceroute
