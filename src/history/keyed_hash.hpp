// keyed_hash.hpp - numbers that stand for texts: equal for equal texts, and meaningless without the key.
//
// HMAC-SHA256 cut to 64 bits: who has a history file without its key can test no guess of what a prompt was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_mac_ctx_st;

namespace balanceroute::history {

using HashKey = std::array<unsigned char, 32>;

// From the system's generator; throws where it has no random bytes.
[[nodiscard]] HashKey random_key();

// The key in the file, as hexadecimal digits; a new one, for its owner alone, where there is no file. An error in words
// if that cannot be.
[[nodiscard]] std::expected<HashKey, std::string> installed_key(const std::filesystem::path& path);

// KeyedHash hashes under one key.
//   Value    never 0, which stands for an unknown text.
//   Cost     a call about 1 us, and 1 us for each KiB or two.
//   Threads  any, at once.
class KeyedHash {
 public:
  explicit KeyedHash(const HashKey& key);

  // Of the parts in their order: another cut between them is another text.
  [[nodiscard]] std::uint64_t of(std::span<const std::string_view> parts) const;

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> keyed_;
};

}  // namespace balanceroute::history
