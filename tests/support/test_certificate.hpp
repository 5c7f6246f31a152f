// test_certificate.hpp - a certificate that vouches for itself, made in the test and written to files.
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace balanceroute::testing_support {

// TestCertificate is for `name` ("IP:127.0.0.1" or "DNS:host"), for a day; its files go with it.
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& name) {
    std::string folder = std::filesystem::temp_directory_path() / "certificate-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair{EVP_EC_gen("P-256"), EVP_PKEY_free};
    const std::unique_ptr<X509, void (*)(X509*)> made{X509_new(), X509_free};
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 24L * 3600);
    X509_NAME* subject = X509_get_subject_name(made.get());
    const std::string common = "test";
    X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    X509_set_pubkey(made.get(), pair.get());
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, name.c_str());
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(made.get(), pair.get(), EVP_sha256());
    write(certificate(), [&](std::FILE* file) { PEM_write_X509(file, made.get()); });
    write(key(),
          [&](std::FILE* file) { PEM_write_PrivateKey(file, pair.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
  ~TestCertificate() { std::filesystem::remove_all(folder_); }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::string certificate() const { return folder_ / "certificate.pem"; }
  std::string key() const { return folder_ / "key.pem"; }

 private:
  template <class Write>
  static void write(const std::string& path, Write content) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    content(file);
    std::fclose(file);
  }

  std::filesystem::path folder_;
};

}  // namespace balanceroute::testing_support
