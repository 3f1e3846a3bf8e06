#include "tls/certificate.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/time_units.h"
#include "tls/context.h"

namespace latchkey::tls {

namespace {

std::string serial_of(const X509* certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr), BN_free);
  char* const digits = number != nullptr ? BN_bn2hex(number.get()) : nullptr;
  if (digits == nullptr) return {};
  std::string serial = digits;
  OPENSSL_free(digits);
  return serial;
}

// The entries of a directory in the order of their names; none when it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::string& directory) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  while (!error && at != std::filesystem::directory_iterator()) {
    entries.push_back(at->path());
    at.increment(error);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void take_earlier(const X509* certificate, CertificateFacts* earliest) {
  CertificateFacts facts = facts_of(certificate);
  if (!earliest->serial.empty() && earliest->expires_s <= facts.expires_s) return;
  *earliest = std::move(facts);
}

// Every certificate of a file, which may hold other things.
void take_earlier_of_file(const std::string& path, CertificateFacts* earliest) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(BIO_new_file(path.c_str(), "r"),
                                                           BIO_free_all);
  X509* certificate = nullptr;
  while (file != nullptr &&
         (certificate = PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr)) != nullptr) {
    take_earlier(certificate, earliest);
    X509_free(certificate);
  }
  // How it ended, or why it cannot be read.
  ERR_clear_error();
}

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return {};
  const auto nanoseconds = [](const timespec& time) {
    return time.tv_sec * base::kNsPerSecond + time.tv_nsec;
  };
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

}  // namespace

CertificateFacts facts_of(const x509_st* certificate) {
  if (certificate == nullptr) return {};
  tm time{};
  // A time that cannot be read is over.
  const bool has_time = ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) == 1;
  return {.serial = serial_of(certificate), .expires_s = has_time ? timegm(&time) : 0};
}

CertificateFacts first_to_expire(x509_store_st& store, const std::string& directory) {
  CertificateFacts earliest;
  const STACK_OF(X509_OBJECT)* const objects = X509_STORE_get0_objects(&store);
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509* const certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (certificate != nullptr) take_earlier(certificate, &earliest);
  }
  if (directory.empty()) return earliest;
  for (const auto& path : entries_of(directory)) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) take_earlier_of_file(path, &earliest);
  }
  return earliest;
}

std::vector<FileStamp> stamps_of(const Settings& settings) {
  std::vector<FileStamp> stamps;
  for (const std::string* path :
       {&settings.cert_file, &settings.key_file, &settings.client_cert_file,
        &settings.client_key_file, &settings.dh_params_file, &settings.ca_cert_file})
    stamps.push_back(stamp_of(*path));
  if (settings.ca_cert_dir.empty()) return stamps;
  stamps.push_back(stamp_of(settings.ca_cert_dir));
  for (const auto& path : entries_of(settings.ca_cert_dir)) stamps.push_back(stamp_of(path));
  return stamps;
}

}  // namespace latchkey::tls
