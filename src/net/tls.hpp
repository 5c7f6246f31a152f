// tls.hpp - certificates and keys from files, ready for use on connections, and the ones that are in effect now.
//
// OpenSSL is hidden here and in tls_session.hpp. Leaves out revocation lists and OCSP.
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

struct ssl_ctx_st;

namespace balanceroute::net {

// PEM files; an empty name is none.
struct TlsFiles {
  std::string certificate;  // our own, with those between it and its authority behind it
  std::string key;
  std::string ca;  // whose certificates the other side may have
  bool only_1_3 = false;
};

// TlsContext is what connections of one kind have in common; it never changes.
//   Threads  any.
class TlsContext {
 public:
  using Made = std::expected<std::shared_ptr<const TlsContext>, std::string>;

  // Certificate and key are needed. With a `ca` clients must have a certificate of it. The error names the file by its
  // setting ("key = FILE: ..."); `ca_name` is the name of the ca's setting.
  static Made for_server(const TlsFiles& files, std::string_view ca_name);
  // Without a `ca` the system's authorities are trusted.
  static Made for_client(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // When our own certificate ends; none without one.
  std::optional<std::chrono::system_clock::time_point> expires() const;
  // Differs when a file had other content.
  std::size_t fingerprint() const { return fingerprint_; }
  ssl_ctx_st* native() const { return native_; }

 private:
  explicit TlsContext(ssl_ctx_st* native) : native_{native} {}
  static Made make(ssl_ctx_st* native, const TlsFiles& files, std::string_view ca_name);
  std::expected<void, std::string> use_certificate(const TlsFiles& files);
  std::expected<void, std::string> use_authorities(const std::string& file, std::string_view setting);

  ssl_ctx_st* native_;
  std::size_t fingerprint_ = 0;
};

// TlsInUse holds the context for connections that are made from now on; none means plaintext.
//   Threads  any.
class TlsInUse {
 public:
  explicit TlsInUse(std::shared_ptr<const TlsContext> context = nullptr, std::string server_name = {})
      : context_{std::move(context)}, server_name_{std::move(server_name)} {}

  std::shared_ptr<const TlsContext> current() const {
    const std::scoped_lock lock{mutex_};
    return context_;
  }
  // The name that a server must have instead of the one it is asked by; empty for none.
  std::string server_name() const {
    const std::scoped_lock lock{mutex_};
    return server_name_;
  }
  // Whether it was of other content.
  bool replace(std::shared_ptr<const TlsContext> context, std::string server_name = {});

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;
  std::string server_name_;
};

}  // namespace balanceroute::net
