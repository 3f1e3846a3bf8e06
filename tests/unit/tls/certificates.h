// Certificates for tests, made by OpenSSL in memory and written to files.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

class Certificates {
 public:
  Certificates() : authority_key_(make_key()) {
    authority_ = make("Authority", *authority_key_, nullptr, -kDay, kDay);
    write_certificate("ca", *authority_);
  }

  std::string path(const std::string& name) const { return directory_.path() / name; }
  // Writes NAME.crt and NAME.key: valid from and until so many seconds from now. An empty password:
  // the key is not encrypted. `names`: alternative ones, as OpenSSL's configuration has them.
  void add(const std::string& name, const std::string& common_name, long from_s = -kDay,
           long until_s = kDay, const std::string& password = "", const std::string& names = "") {
    const Key key = make_key();
    write_certificate(name, *make(common_name, *key, authority_.get(), from_s, until_s, names));
    const File file(path(name + ".key"));
    REQUIRE(PEM_write_PrivateKey(file.get(), key.get(),
                                 password.empty() ? nullptr : EVP_aes_128_cbc(),
                                 reinterpret_cast<const unsigned char*>(password.data()),
                                 static_cast<int>(password.size()), nullptr, nullptr) == 1);
  }
  static constexpr long kDay = 24 * 60 * 60;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  class File {
   public:
    explicit File(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {
      REQUIRE(file_ != nullptr);
    }
    ~File() { std::fclose(file_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    std::FILE* get() const { return file_; }

   private:
    std::FILE* file_;
  };

  static Key make_key() {
    Key key(EVP_EC_gen("P-256"));
    REQUIRE(key != nullptr);
    return key;
  }
  // Signed by `issuer`; null: by itself.
  Certificate make(const std::string& common_name, EVP_PKEY& key, X509* issuer, long from_s,
                   long until_s, const std::string& names = "") {
    Certificate certificate(X509_new());
    X509* const raw = certificate.get();
    X509_set_version(raw, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(raw), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(raw), from_s);
    X509_gmtime_adj(X509_getm_notAfter(raw), until_s);
    X509_set_pubkey(raw, &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.data()),
                               static_cast<int>(common_name.size()), -1, 0);
    X509_set_issuer_name(raw, X509_get_subject_name(issuer != nullptr ? issuer : raw));
    if (issuer == nullptr) extend(raw, NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) extend(raw, NID_subject_alt_name, names.c_str());
    REQUIRE(X509_sign(raw, authority_key_.get(), EVP_sha256()) > 0);
    return certificate;
  }
  static void extend(X509* certificate, int kind, const char* value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    REQUIRE(X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
  }
  void write_certificate(const std::string& name, X509& certificate) {
    const File file(path(name + ".crt"));
    REQUIRE(PEM_write_X509(file.get(), &certificate) == 1);
  }

  TemporaryDirectory directory_;
  Key authority_key_;
  Certificate authority_;
  long serial_ = 0;
};

}  // namespace latchkey::tests
