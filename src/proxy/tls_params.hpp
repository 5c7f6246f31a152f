// tls_params.hpp - certificates of the router's listeners and what its engines must show, and the files behind them.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"
#include "net/tls.hpp"

namespace balanceroute::proxy {

// Of a listener.
struct ListenTlsParams {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string min_version = "1.2";

  // Else the listener speaks plaintext.
  bool used() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
  // None where it is not used; `path` is that of the settings.
  net::TlsContext::Made load(std::string_view path) const;
  std::vector<std::string> files() const;
  void visit_params(ParamVisitor& visitor);
};

// Of the router towards the engines of a fleet whose URLs are https.
struct WorkerTlsParams {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string server_name;
  std::string min_version = "1.2";

  net::TlsContext::Made load(std::string_view path) const;
  std::vector<std::string> files() const;
  void visit_params(ParamVisitor& visitor);
};

// When one of our own certificates ends.
struct CertificateEnd {
  std::string owner;  // "listen", "admin.listen" or "fleet NAME"
  std::chrono::system_clock::time_point expires;
};

}  // namespace balanceroute::proxy
