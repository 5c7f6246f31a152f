#include "proxy/engine_key.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "config/yaml_reader.hpp"
#include "proxy/authentication.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::size_t kLongestKey = 4096;

std::unexpected<std::string> fault(std::string_view path, std::string_view setting, const std::string& value,
                                   std::string_view what) {
  return std::unexpected(std::string{path} + "." + std::string{setting} + " = " + value + ": " + std::string{what});
}

std::string_view without_blanks_around(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

// Of characters that a header may carry.
bool is_one_word(std::string_view text) {
  return !text.empty() && text.size() <= kLongestKey &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

void EngineKeyParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"file", "File with the key that engines want (--api-key); read again when it has changed."}, file);
  visitor.text({"variable", "Name of the environment variable that has it, instead of a file."}, variable);
}

std::expected<std::string, std::string> read_engine_key(const EngineKeyParams& params, std::string_view path) {
  if (params.file.empty() && params.variable.empty()) return std::string{};
  if (!params.file.empty() && !params.variable.empty()) {
    return fault(path, "variable", params.variable, "expected none beside file");
  }
  constexpr std::string_view kExpected = "expected it to hold one key, without blanks";
  if (!params.variable.empty()) {
    const char* value = std::getenv(params.variable.c_str());
    if (value == nullptr) return fault(path, "variable", params.variable, "is not set in the environment");
    const std::string_view key = without_blanks_around(value);
    if (!is_one_word(key)) return fault(path, "variable", params.variable, kExpected);
    return std::string{key};
  }
  const auto text = read_config_file(params.file);
  if (!text) return std::unexpected(std::string{path} + ".file: " + text.error().text());
  const std::string_view key = without_blanks_around(*text);
  if (!is_one_word(key)) return fault(path, "file", params.file, kExpected);
  return std::string{key};
}

void EngineKey::sign(net::HeaderList& headers) const {
  const std::scoped_lock lock{mutex_};
  if (key_.empty()) return;
  remove_client_keys(headers);
  headers.add("Authorization", "Bearer " + key_);
}

bool EngineKey::replace(std::string key) {
  const std::scoped_lock lock{mutex_};
  if (key == key_) return false;
  key_ = std::move(key);
  return true;
}

}  // namespace balanceroute::proxy
