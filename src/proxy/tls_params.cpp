#include "proxy/tls_params.hpp"

#include <array>
#include <initializer_list>

namespace balanceroute::proxy {

namespace {

constexpr std::array<std::string_view, 2> kVersions{"1.2", "1.3"};

net::TlsContext::Made named(net::TlsContext::Made made, std::string_view path) {
  if (made) return made;
  return std::unexpected(std::string{path} + "." + made.error());
}

std::vector<std::string> given(std::initializer_list<std::string> names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (!name.empty()) files.push_back(name);
  }
  return files;
}

}  // namespace

void ListenTlsParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"certificate",
                "PEM file with its certificate and those up to its authority; none means plaintext. Read again when it "
                "has changed."},
               certificate);
  visitor.text({"key", "PEM file with the certificate's private key, without a password."}, key);
  visitor.text({"client_ca", "PEM file of authorities; with it clients must show a certificate of one of them."},
               client_ca);
  visitor.choice({"min_version", "Oldest version of TLS that is spoken."}, min_version, kVersions);
}

net::TlsContext::Made ListenTlsParams::load(std::string_view path) const {
  if (!used()) return nullptr;
  return named(
      net::TlsContext::for_server(
          {.certificate = certificate, .key = key, .ca = client_ca, .only_1_3 = min_version == "1.3"}, "client_ca"),
      path);
}

std::vector<std::string> ListenTlsParams::files() const {
  return given({certificate, key, client_ca});
}

void WorkerTlsParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"ca", "PEM file of the authorities that engines' certificates are of; none means the system's."}, ca);
  visitor.text({"certificate", "PEM file with the certificate that engines are shown; none if they want none."},
               certificate);
  visitor.text({"key", "PEM file with its private key, without a password."}, key);
  visitor.text({"server_name",
                "Name that engines' certificates must have instead of the host in their URL, as for engines found by "
                "DNS."},
               server_name);
  visitor.choice({"min_version", "Oldest version of TLS that is spoken."}, min_version, kVersions);
}

net::TlsContext::Made WorkerTlsParams::load(std::string_view path) const {
  return named(
      net::TlsContext::for_client({.certificate = certificate, .key = key, .ca = ca, .only_1_3 = min_version == "1.3"}),
      path);
}

std::vector<std::string> WorkerTlsParams::files() const {
  return given({ca, certificate, key});
}

}  // namespace balanceroute::proxy
