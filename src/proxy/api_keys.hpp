// api_keys.hpp - who may ask: the keys that clients send, known by their hashes alone.
//
// What a key's owner may take of a fleet is that of its tenant (core/tenants.hpp), whose name is the key's.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"
#include "core/tenants.hpp"

namespace balanceroute::proxy {

// The tenant of requests that need no key.
inline constexpr std::string_view kDefaultTenantName = "default";

// `keys` of the settings of `serve`.
struct KeysParams {
  std::string file;

  void visit_params(ParamVisitor& visitor);
};

// One entry of the keys file.
struct ApiKeyParams {
  static constexpr std::int64_t kNoLimit = 0;  // "auto"

  TenantParams tenant;
  std::string sha256;
  std::string previous_sha256;
  std::int64_t requests_per_minute = kNoLimit;
  std::int64_t max_requests = kNoLimit;

  void visit_params(ParamVisitor& visitor);
};

using Sha256 = std::array<unsigned char, 32>;

[[nodiscard]] Sha256 sha256_of(std::string_view text);
[[nodiscard]] std::string hex_of(const Sha256& hash);

// A key that nobody can guess: 256 random bits.
[[nodiscard]] std::string new_api_key();

// ApiKeys is the content of one keys file.
//   Secrets   it holds hashes; a fault of the file names places in it and never repeats what could be a key.
//   Cost      find() hashes once and compares with every entry, so that the time it takes tells neither how much of a
//             key is right nor whose it is.
//   Threads   any; it does not change.
class ApiKeys {
 public:
  // Requests need no key.
  ApiKeys() = default;
  // The content of `file`; of no file, as its name is empty, none.
  static std::expected<ApiKeys, std::string> load(const KeysParams& params);
  // `text` is the file's; `name` is for messages.
  static std::expected<ApiKeys, std::string> parse(std::string_view text, std::string_view name);

  [[nodiscard]] bool needed() const { return !keys_.empty(); }
  // The entry of a key; it stays where it is for as long as this object.
  [[nodiscard]] const ApiKeyParams* find(std::string_view secret) const;
  [[nodiscard]] std::vector<TenantParams> tenants() const;
  [[nodiscard]] const std::vector<ApiKeyParams>& entries() const { return keys_; }

 private:
  struct Known {
    Sha256 hash;
    std::size_t entry;
  };

  std::vector<ApiKeyParams> keys_;
  std::vector<Known> known_;
};

// What has changed between two versions, one item a name: "key a (new)".
[[nodiscard]] std::vector<std::string> changed_keys(const ApiKeys& before, const ApiKeys& after);

}  // namespace balanceroute::proxy
