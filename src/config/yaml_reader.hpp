// yaml_reader.hpp - a configuration file onto declared settings.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "config/config_error.hpp"
#include "config/given_settings.hpp"
#include "config/yaml_tree.hpp"
#include "core/params.hpp"

namespace balanceroute {

// Sets what `text` says, of at most `largest` bytes; on an error, which names every problem, some settings may be set
// and others not. Required settings that are missing are a problem unless they are given `elsewhere` or are in a
// section that is not there.
[[nodiscard]] std::expected<Origins, ConfigError> visit_yaml(std::string_view text, std::string_view source_name,
                                                             const std::function<void(ParamVisitor&)>& params,
                                                             const GivenSettings& elsewhere = {},
                                                             std::size_t largest = kLargestYaml);

// Where there is no file: sets nothing, and names the required settings that are not given `elsewhere`.
[[nodiscard]] std::expected<Origins, ConfigError> visit_no_yaml(const std::function<void(ParamVisitor&)>& params,
                                                                const GivenSettings& elsewhere);

// visit_yaml, all or nothing: on an error `params` is as it was.
template <class Params>
[[nodiscard]] std::expected<Origins, ConfigError> read_yaml(std::string_view text, std::string_view source_name,
                                                            Params& params, const GivenSettings& elsewhere = {},
                                                            std::size_t largest = kLargestYaml) {
  Params read = params;
  auto origins =
      visit_yaml(text, source_name, [&read](ParamVisitor& visitor) { read.visit_params(visitor); }, elsewhere, largest);
  if (origins) params = std::move(read);
  return origins;
}

// The text of a configuration file that is not larger than one can be.
[[nodiscard]] std::expected<std::string, ConfigError> read_config_file(const std::filesystem::path& path,
                                                                       std::size_t largest = kLargestYaml);

}  // namespace balanceroute
