#include "proxy/api_keys.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "config/setting_values.hpp"
#include "config/yaml_reader.hpp"
#include "config/yaml_tree.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::string_view kExpectedHash =
    "expected the SHA-256 of a key, as 64 hexadecimal digits; `balanceroute key NAME` draws a key and prints its entry";

// The whole file.
struct KeysFile {
  std::vector<ApiKeyParams> keys;

  void visit_params(ParamVisitor& visitor) { visitor.nested_list({"keys", "One entry for each client.", true}, keys); }
};

std::optional<int> digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<Sha256> read_hash(std::string_view hex) {
  Sha256 hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const auto high = digit_of(hex[2 * i]);
    const auto low = digit_of(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    hash[i] = static_cast<unsigned char>(*high * 16 + *low);
  }
  return hash;
}

// Names are labels of metrics and words of log lines.
bool is_good_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, good);
}

// A file that is no list of entries may be a file with a bare key in it, which no message must repeat.
bool has_entries(const YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return false;
  for (const YamlNode::Member& member : root.members) {
    if (member.key != "keys") continue;
    return member.value.kind == YamlNode::Kind::list && !member.value.items.empty() &&
           std::ranges::all_of(member.value.items,
                               [](const YamlNode& item) { return item.kind == YamlNode::Kind::map; });
  }
  return false;
}

std::unexpected<std::string> fault(std::string_view file, std::string_view what) {
  return std::unexpected(fmt::format("{}: {}", file, what));
}

}  // namespace

void KeysParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"file",
                "File with the hashes of clients' API keys (docs/operations.md); it is read again when it has changed. "
                "Empty lets everybody in."},
               file);
}

void ApiKeyParams::visit_params(ParamVisitor& visitor) {
  tenant.visit_params(visitor);
  visitor.text({"sha256", "SHA-256 of the key, as 64 hexadecimal digits.", true, true}, sha256);
  visitor.text(
      {"previous_sha256", "The same of the key before, which is good too while clients change over.", false, true},
      previous_sha256);
  visitor.integer_or_auto({"requests_per_minute", "Most requests that begin in any 60 seconds. auto is no limit."},
                          requests_per_minute, kNoLimit, {1, 1'000'000});
  visitor.integer_or_auto({"max_requests", "Most requests at once, those that wait too. auto is no limit."},
                          max_requests, kNoLimit, {1, 1'000'000'000});
}

Sha256 sha256_of(std::string_view text) {
  Sha256 hash;
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
  return hash;
}

std::string hex_of(const Sha256& hash) {
  std::string hex;
  for (const unsigned char byte : hash) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string new_api_key() {
  Sha256 random;
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    throw std::runtime_error("OpenSSL has no random bytes");
  }
  return "br-" + hex_of(random);
}

std::expected<ApiKeys, std::string> ApiKeys::load(const KeysParams& params) {
  if (params.file.empty()) return ApiKeys{};
  const auto text = read_config_file(params.file);
  if (!text) return std::unexpected("keys.file: " + text.error().text());
  auto keys = parse(*text, params.file);
  if (!keys) return std::unexpected("keys.file: " + keys.error());
  return keys;
}

std::expected<ApiKeys, std::string> ApiKeys::parse(std::string_view text, std::string_view name) {
  const auto root = parse_yaml(text);
  if (!root) return fault(name, fmt::format("line {} is not YAML", root.error().line));
  if (!has_entries(*root)) return fault(name, "expected `keys:` with a list of entries, at least one");
  KeysFile file;
  if (const auto read = read_yaml(text, name, file); !read) return std::unexpected(read.error().text());

  ApiKeys keys;
  keys.keys_ = std::move(file.keys);
  std::vector<TenantParams> tenants = keys.tenants();
  if (const auto wrong = fault_of(tenants, "keys")) return fault(name, *wrong);
  for (std::size_t i = 0; i < keys.keys_.size(); ++i) {
    const ApiKeyParams& key = keys.keys_[i];
    const std::string entry = fmt::format("keys[{}].", i);
    if (!is_good_name(key.tenant.name) || key.tenant.name == kDefaultTenantName) {
      return fault(name, fmt::format("{}name: expected up to {} letters, digits, '.', '_' and '-', and not {}, the "
                                     "tenant of requests without a key",
                                     entry, kLongestName, kDefaultTenantName));
    }
    for (const auto& [setting, hex] : {std::pair<std::string_view, std::string_view>{"sha256", key.sha256},
                                       {"previous_sha256", key.previous_sha256}}) {
      if (hex.empty() && setting != "sha256") continue;
      const auto hash = read_hash(hex);
      if (!hash) return fault(name, fmt::format("{}{}: {}", entry, setting, kExpectedHash));
      const auto other = std::ranges::find(keys.known_, *hash, &Known::hash);
      if (other != keys.known_.end()) {
        return fault(
            name, fmt::format("{}{}: is already the key of {}", entry, setting, keys.keys_[other->entry].tenant.name));
      }
      keys.known_.push_back({.hash = *hash, .entry = i});
    }
  }
  return keys;
}

const ApiKeyParams* ApiKeys::find(std::string_view secret) const {
  const Sha256 hash = sha256_of(secret);
  std::size_t found = keys_.size();
  for (const Known& known : known_) {
    const bool same = CRYPTO_memcmp(hash.data(), known.hash.data(), hash.size()) == 0;
    const std::size_t mask = std::size_t{0} - static_cast<std::size_t>(same);  // all ones, or none: no branch
    found = (known.entry & mask) | (found & ~mask);
  }
  return found == keys_.size() ? nullptr : &keys_[found];
}

std::vector<TenantParams> ApiKeys::tenants() const {
  std::vector<TenantParams> tenants;
  for (const ApiKeyParams& key : keys_) tenants.push_back(key.tenant);
  return tenants;
}

std::vector<std::string> changed_keys(const ApiKeys& before, const ApiKeys& after) {
  std::map<std::string, SettingValues> old_ones;
  for (const ApiKeyParams& key : before.entries()) old_ones[key.tenant.name] = values_of(key, Secrets::shown);
  std::vector<std::string> changed;
  for (const ApiKeyParams& key : after.entries()) {
    const auto old = old_ones.extract(key.tenant.name);
    if (!old) {
      changed.push_back(fmt::format("key {} (new)", key.tenant.name));
    } else if (old.mapped() != values_of(key, Secrets::shown)) {
      changed.push_back(fmt::format("key {} (changed)", key.tenant.name));
    }
  }
  for (const auto& [name, values] : old_ones) changed.push_back(fmt::format("key {} (removed)", name));
  return changed;
}

}  // namespace balanceroute::proxy
