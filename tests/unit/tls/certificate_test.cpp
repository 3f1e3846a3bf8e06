// What is told of certificates, and whether their files were replaced.
#include "tls/certificate.h"

#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "tls/context.h"
#include "unit/catch.h"
#include "unit/tls/certificates.h"

namespace latchkey::tests {

namespace {

using tls::Context;
using tls::Settings;

constexpr long kDay = Certificates::kDay;

struct Files {
  Certificates certificates;
  Settings settings;

  Files() {
    certificates.add("server", "the server", -kDay, 3 * kDay);
    certificates.add("client", "anna", -2 * kDay, -kDay);
    settings.cert_file = certificates.path("server.crt");
    settings.key_file = certificates.path("server.key");
    settings.ca_cert_file = certificates.path("ca.crt");
  }
  std::unique_ptr<Context> context() const {
    auto made = Context::make(settings);
    INFO((made ? "" : made.error()));
    REQUIRE(made);
    return *std::move(made);
  }
  // Whether the certificate is valid for so many days from now, by a minute.
  static bool expires_in(const tls::CertificateFacts& facts, long days) {
    return std::abs(facts.expires_s - (std::time(nullptr) + days * kDay)) < 60;
  }
};

}  // namespace

TEST_CASE("A context tells the serial numbers of its certificates and when they expire", "[tls]") {
  Files files;
  const auto context = files.context();
  // The authority is the first that was made.
  CHECK(context->authority().serial == "01");
  CHECK(files.expires_in(context->authority(), 1));
  CHECK(context->server_certificate().serial == "02");
  CHECK(files.expires_in(context->server_certificate(), 3));
  CHECK(context->client_certificate().serial.empty());
  CHECK(context->client_certificate().expires_s == 0);
}

TEST_CASE("A certificate for outgoing connections is told beside the other", "[tls]") {
  Files files;
  files.settings.client_cert_file = files.certificates.path("client.crt");
  files.settings.client_key_file = files.certificates.path("client.key");
  const auto context = files.context();
  CHECK(context->server_certificate().serial == "02");
  CHECK(context->client_certificate().serial == "03");
  CHECK(files.expires_in(context->client_certificate(), -1));
}

TEST_CASE("Of several authorities the one that expires first is told", "[tls]") {
  Files files;
  const std::string bundle = files.certificates.path("bundle");
  // Between them something else.
  std::ofstream(bundle) << std::ifstream(files.certificates.path("server.crt")).rdbuf() << "text\n"
                        << std::ifstream(files.certificates.path("ca.crt")).rdbuf();
  files.settings.ca_cert_file = bundle;
  CHECK(files.context()->authority().serial == "01");
  // A directory of them counts as well, with its files that are none.
  const std::string directory = files.certificates.path("directory");
  std::filesystem::create_directories(directory + "/below");
  files.settings.ca_cert_dir = directory;
  std::ofstream(directory + "/readme") << "no certificate\n";
  CHECK(files.context()->authority().serial == "01");
  std::filesystem::copy(files.certificates.path("client.crt"), directory);
  CHECK(files.context()->authority().serial == "03");
  files.settings.ca_cert_file.clear();
  CHECK(files.context()->authority().serial == "03");
}

TEST_CASE("Stamps change with each file that a context is made from", "[tls]") {
  Files files;
  files.settings.client_cert_file = files.certificates.path("client.crt");
  files.settings.client_key_file = files.certificates.path("client.key");
  files.settings.dh_params_file = files.certificates.path("parameters");
  const std::string directory = files.certificates.path("directory");
  std::filesystem::create_directory(directory);
  std::filesystem::copy(files.certificates.path("ca.crt"), directory);
  files.settings.ca_cert_dir = directory;
  const auto before = tls::stamps_of(files.settings);
  CHECK(tls::stamps_of(files.settings) == before);
  const Settings& settings = files.settings;
  for (const std::string& path :
       {settings.cert_file, settings.key_file, settings.client_cert_file, settings.client_key_file,
        settings.dh_params_file, settings.ca_cert_file, directory + "/ca.crt",
        directory + "/another.crt"}) {
    INFO(path);
    const auto earlier = tls::stamps_of(settings);
    std::ofstream(path, std::ios::app) << "\n";
    CHECK(tls::stamps_of(settings) != earlier);
  }
  const auto written = tls::stamps_of(settings);
  std::filesystem::remove(settings.key_file);
  CHECK(tls::stamps_of(settings) != written);
}

TEST_CASE("A file that another one takes the place of has another stamp", "[tls]") {
  // As certificates are replaced in containers: by a link to somewhere else. Size and time of the
  // files are the same.
  Files files;
  const std::string link = files.certificates.path("link");
  for (const char* name : {"first", "second"}) {
    std::ofstream(files.certificates.path(name)) << "same";
    const timeval times[2] = {{1'000'000, 0}, {1'000'000, 0}};
    REQUIRE(utimes(files.certificates.path(name).c_str(), times) == 0);
  }
  files.settings.cert_file = link;
  REQUIRE(symlink(files.certificates.path("first").c_str(), link.c_str()) == 0);
  const auto before = tls::stamps_of(files.settings);
  REQUIRE(unlink(link.c_str()) == 0);
  REQUIRE(symlink(files.certificates.path("second").c_str(), link.c_str()) == 0);
  CHECK(tls::stamps_of(files.settings) != before);
}

}  // namespace latchkey::tests
