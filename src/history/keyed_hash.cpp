#include "history/keyed_hash.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace balanceroute::history {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string hex_of(const HashKey& key) {
  std::string hex;
  for (const unsigned char byte : key) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<HashKey> key_of(std::string_view hex) {
  HashKey key{};
  if (hex.size() != 2 * key.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto high = kDigits.find(hex[2 * i]);
    const auto low = kDigits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    key[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return key;
}

std::unexpected<std::string> fault(const std::filesystem::path& path, std::string_view what) {
  return std::unexpected(path.string() + ": " + std::string{what});
}

// Nothing where there is no such file.
std::expected<std::optional<HashKey>, std::string> read_key(const std::filesystem::path& path) {
  std::ifstream file{path};
  if (!file) {
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return std::nullopt;
    return fault(path, "cannot be read");
  }
  std::string line;
  std::getline(file, line);
  const auto key = key_of(line);
  if (!key) return fault(path, "expected a key, as 64 hexadecimal digits");
  return key;
}

bool write_key(const std::filesystem::path& path, const HashKey& key) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const std::string text = hex_of(key) + '\n';
  const bool written = ::write(file, text.data(), text.size()) == std::ssize(text) && ::fsync(file) == 0;
  return ::close(file) == 0 && written;
}

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string{what} + " failed in OpenSSL");
}

}  // namespace

HashKey random_key() {
  HashKey key;
  if (RAND_bytes(key.data(), static_cast<int>(key.size())) != 1) fail("RAND_bytes");
  return key;
}

// Written aside and linked into place, so that of two routers that start together both have the same key.
std::expected<HashKey, std::string> installed_key(const std::filesystem::path& path) {
  const auto known = read_key(path);
  if (!known) return std::unexpected(known.error());
  if (*known) return **known;
  const HashKey fresh = random_key();
  const std::filesystem::path aside = path.string() + "." + std::to_string(::getpid());
  const bool placed = write_key(aside, fresh) && (::link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const std::string why = std::strerror(errno);
  ::unlink(aside.c_str());
  if (!placed) return fault(path, "cannot be written: " + why);
  const auto installed = read_key(path);
  if (!installed) return std::unexpected(installed.error());
  return installed->value_or(fresh);
}

void KeyedHash::Free::operator()(evp_mac_ctx_st* context) const {
  EVP_MAC_CTX_free(context);
}

KeyedHash::KeyedHash(const HashKey& key) {
  EVP_MAC* hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  if (hmac == nullptr) fail("EVP_MAC_fetch");
  keyed_.reset(EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);  // the context holds it
  std::array<char, 7> digest{"SHA256"};
  const std::array<OSSL_PARAM, 2> parameters{OSSL_PARAM_construct_utf8_string("digest", digest.data(), 0),
                                             OSSL_PARAM_construct_end()};
  if (!keyed_ || EVP_MAC_init(keyed_.get(), key.data(), key.size(), parameters.data()) != 1) fail("EVP_MAC_init");
}

std::uint64_t KeyedHash::of(std::span<const std::string_view> parts) const {
  const std::unique_ptr<evp_mac_ctx_st, Free> mac{EVP_MAC_CTX_dup(keyed_.get())};
  if (!mac) fail("EVP_MAC_CTX_dup");
  const auto add = [&mac](const void* bytes, std::size_t size) {
    if (EVP_MAC_update(mac.get(), static_cast<const unsigned char*>(bytes), size) != 1) fail("EVP_MAC_update");
  };
  for (const std::string_view part : parts) {
    const auto length = std::bit_cast<std::array<unsigned char, 8>>(std::uint64_t{part.size()});
    add(length.data(), length.size());
    add(part.data(), part.size());
  }
  std::array<unsigned char, 32> code{};
  std::size_t size = 0;
  if (EVP_MAC_final(mac.get(), code.data(), &size, code.size()) != 1) fail("EVP_MAC_final");
  std::uint64_t value = 0;
  std::memcpy(&value, code.data(), sizeof value);
  return value == 0 ? 1 : value;
}

}  // namespace balanceroute::history
