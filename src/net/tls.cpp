#include "net/tls.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>

namespace balanceroute::net {

namespace {

// As ALPN writes it: its length, then its name.
constexpr std::string_view kHttp11 = "\x08http/1.1";
constexpr std::string_view kServerSessions = "balanceroute";

template <auto free>
struct Free {
  template <class Object>
  void operator()(Object* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::unexpected<std::string> fault(std::string_view setting, const std::string& file, std::string_view what) {
  ERR_clear_error();
  return std::unexpected(std::string{setting} + " = " + file + ": " + std::string{what});
}

std::expected<std::string, std::string> read_file(std::string_view setting, const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return fault(setting, path, std::string{"cannot be read: "} + std::strerror(errno));
  std::string content{std::istreambuf_iterator<char>{file}, {}};
  if (file.bad()) return fault(setting, path, "cannot be read");
  return content;
}

Bio reader_of(const std::string& text) {
  return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

Certificate next_certificate(BIO* from) {
  return Certificate{PEM_read_bio_X509(from, nullptr, nullptr, nullptr)};
}

// Nobody is there to type a password.
int no_password(char*, int, int, void*) {
  return -1;
}

// HTTP/1.1 is all that is spoken here: who offers only others is told so by an alert, who offers nothing is let in.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                    unsigned offered_length, void*) {
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, length, bytes_of(kHttp11), static_cast<unsigned>(kHttp11.size()),
                                           offered, offered_length);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

TlsContext::~TlsContext() {
  SSL_CTX_free(native_);
}

TlsContext::Made TlsContext::make(ssl_ctx_st* native, const TlsFiles& files, std::string_view ca_name) {
  std::shared_ptr<TlsContext> made{new TlsContext{native}};
  SSL_CTX_set_min_proto_version(native, files.only_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Thousands of streams are silent most of the time: their 34 KiB of buffers are given back meanwhile.
  SSL_CTX_set_mode(native,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  if (!files.certificate.empty() || !files.key.empty()) {
    if (const auto used = made->use_certificate(files); !used) return std::unexpected(used.error());
  }
  if (!files.ca.empty()) {
    if (const auto used = made->use_authorities(files.ca, ca_name); !used) return std::unexpected(used.error());
  }
  return made;
}

TlsContext::Made TlsContext::for_server(const TlsFiles& files, std::string_view ca_name) {
  if (files.certificate.empty()) return std::unexpected("certificate = '': expected a file beside key");
  SSL_CTX* native = SSL_CTX_new(TLS_server_method());
  auto made = make(native, files, ca_name);
  if (!made) return made;
  SSL_CTX_set_alpn_select_cb(native, choose_protocol, nullptr);
  SSL_CTX_set_session_id_context(native, bytes_of(kServerSessions), static_cast<unsigned>(kServerSessions.size()));
  if (!files.ca.empty()) SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return made;
}

TlsContext::Made TlsContext::for_client(const TlsFiles& files) {
  SSL_CTX* native = SSL_CTX_new(TLS_client_method());
  auto made = make(native, files, "ca");
  if (!made) return made;
  if (files.ca.empty()) SSL_CTX_set_default_verify_paths(native);
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(native, bytes_of(kHttp11), static_cast<unsigned>(kHttp11.size()));
  return made;
}

std::expected<void, std::string> TlsContext::use_certificate(const TlsFiles& files) {
  if (files.certificate.empty()) return fault("certificate", "''", "expected a file beside key");
  if (files.key.empty()) return fault("key", "''", "expected a file beside certificate");
  const auto chain = read_file("certificate", files.certificate);
  if (!chain) return std::unexpected(chain.error());
  const auto key_text = read_file("key", files.key);
  if (!key_text) return std::unexpected(key_text.error());
  const Bio certificates = reader_of(*chain);
  const Certificate own = next_certificate(certificates.get());
  if (!own || SSL_CTX_use_certificate(native_, own.get()) != 1) {
    return fault("certificate", files.certificate, "expected a certificate in PEM");
  }
  while (Certificate between = next_certificate(certificates.get())) {
    SSL_CTX_add0_chain_cert(native_, between.release());
  }
  const Bio keys = reader_of(*key_text);
  const PrivateKey key{PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr)};
  if (!key) return fault("key", files.key, "expected a private key in PEM, without a password");
  if (X509_check_private_key(own.get(), key.get()) != 1 || SSL_CTX_use_PrivateKey(native_, key.get()) != 1) {
    return fault("key", files.key, "is not the key of the certificate " + files.certificate);
  }
  ERR_clear_error();  // the end of the chain is an error to the reader
  fingerprint_ ^= std::hash<std::string>{}(*chain + *key_text);
  return {};
}

std::expected<void, std::string> TlsContext::use_authorities(const std::string& file, std::string_view setting) {
  const auto text = read_file(setting, file);
  if (!text) return std::unexpected(text.error());
  const Bio certificates = reader_of(*text);
  std::size_t count = 0;
  while (const Certificate one = next_certificate(certificates.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(native_), one.get());
    SSL_CTX_add_client_CA(native_, one.get());
    ++count;
  }
  if (count == 0) return fault(setting, file, "expected certificates in PEM");
  ERR_clear_error();
  fingerprint_ ^= 3 * std::hash<std::string>{}(*text);
  return {};
}

std::optional<std::chrono::system_clock::time_point> TlsContext::expires() const {
  const X509* own = SSL_CTX_get0_certificate(native_);
  std::tm end{};
  if (own == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(own), &end) != 1) return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&end));
}

bool TlsInUse::replace(std::shared_ptr<const TlsContext> context, std::string server_name) {
  const std::scoped_lock lock{mutex_};
  const auto look = [](const auto& one) { return one ? one->fingerprint() : std::size_t{0}; };
  const bool other = look(context) != look(context_) || server_name != server_name_;
  context_ = std::move(context);
  server_name_ = std::move(server_name);
  return other;
}

}  // namespace balanceroute::net
