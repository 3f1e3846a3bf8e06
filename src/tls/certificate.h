// Facts about a certificate for operators, and the stamps by which replaced TLS files are noticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct x509_st;
struct x509_store_st;

namespace latchkey::tls {

struct Settings;

struct CertificateFacts {
  std::string serial;     // in hexadecimal digits; empty: there is no certificate
  int64_t expires_s = 0;  // Unix time
};

// No certificate (null): no facts.
CertificateFacts facts_of(const x509_st* certificate);

// Of the authorities that `store` holds, and of all certificates in the files of `directory`
// (empty: none), the one that expires first. Reads the whole directory, without those below.
CertificateFacts first_to_expire(x509_store_st& store, const std::string& directory);

// Where a file is and when it was changed; all zero where there is none. A name that is a link
// stands for the file it leads to.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;         // bytes
  int64_t modified_ns = 0;  // its content, Unix time
  int64_t changed_ns = 0;   // its content or its place
  bool operator==(const FileStamp&) const = default;
};

// Of all files that a context of the settings is made from, in one order: others than before mean
// that something was replaced. To be taken before the files are read, so that what is written
// meanwhile shows the next time. May be called by any thread.
std::vector<FileStamp> stamps_of(const Settings& settings);

}  // namespace latchkey::tls
