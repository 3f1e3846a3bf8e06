// What comes to a TLS port from anybody: whatever it is, and in whatever pieces, the session says
// that it has failed or waits for more, gives out no bytes that were not encrypted, and answers no
// more than it was asked.
//
// Half of the inputs change a real client's bytes: some are replaced, dropped or said twice, so
// that the handshake is reached behind its first message.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "input.h"
#include "tls/context.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using net::TransportLayer;

// Writes a key and a certificate that it has signed itself, and makes a context of them.
std::unique_ptr<tls::Context> make_context() {
  char directory[] = "/tmp/latchkey-tls-fuzz-XXXXXX";
  require(mkdtemp(directory) != nullptr);
  const std::string key_file = std::string(directory) + "/key";
  const std::string cert_file = std::string(directory) + "/crt";
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), -1000);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 1'000'000);
  X509_set_pubkey(certificate, key);
  require(X509_sign(certificate, key, EVP_sha256()) > 0);
  std::FILE* file = std::fopen(key_file.c_str(), "w");
  require(file != nullptr &&
          PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr));
  std::fclose(file);
  file = std::fopen(cert_file.c_str(), "w");
  require(file != nullptr && PEM_write_X509(file, certificate));
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  auto context = tls::Context::make({.cert_file = cert_file,
                                     .key_file = key_file,
                                     .ca_cert_file = cert_file,
                                     .clients = tls::Settings::Clients::kOptional});
  require(bool(context));
  unlink(key_file.c_str());
  unlink(cert_file.c_str());
  rmdir(directory);
  return *std::move(context);
}

std::string taken(TransportLayer& layer) {
  std::string bytes = layer.wire().copy_since(0);
  layer.wire().clear();
  return bytes;
}

std::string given(TransportLayer& layer, std::string_view bytes) {
  std::string plain;
  char room[997];
  layer.receive(bytes);
  for (size_t size = 0; (size = layer.read(room, sizeof room)) > 0;) plain.append(room, size);
  require(plain.size() <= bytes.size() + TransportLayer::kMaxHeldBytes);
  return plain;
}

// Changes one place of the bytes as the input says.
void damage(Input& input, std::string* bytes) {
  if (bytes->empty()) return;
  const size_t at = (input.byte() * 256u + input.byte()) % bytes->size();
  switch (input.byte() % 4) {
    case 0:
      (*bytes)[at] = static_cast<char>(input.byte());
      break;
    case 1:
      bytes->erase(at, 1 + input.byte());
      break;
    case 2:
      bytes->insert(at, bytes->substr(at, 1 + input.byte()));
      break;
    default:
      bytes->resize(at);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 8192;
  constexpr size_t kMaxAnswered = 64 * 1024;
  if (size < 2 || size > kLongestInput) return 0;
  static const std::unique_ptr<tls::Context> context = make_context();
  Input input(data, size);
  base::BufferPool pool;
  const auto server = context->accept(pool);
  server->begin();
  const uint8_t choice = input.byte();
  std::string plain;
  if ((choice & 1) != 0) {
    const auto client = context->connect(pool, "localhost");
    client->begin();
    const int damaged_flight = choice >> 1 & 3;
    for (int flight = 0; flight < 5; ++flight) {
      if (client->state() == TransportLayer::State::kOpen) client->write("PING\r\n");
      std::string bytes = taken(*client);
      if (flight == damaged_flight) damage(input, &bytes);
      plain += given(*server, bytes);
      given(*client, taken(*server));
    }
    // What is authentic is the client's own.
    require(plain.size() % 6 == 0);
    for (size_t at = 0; at < plain.size(); at += 6) require(plain.substr(at, 6) == "PING\r\n");
  } else {
    std::string_view rest = input.rest();
    const size_t piece = 1 + choice;
    while (!rest.empty()) {
      plain += given(*server, rest.substr(0, piece));
      rest.remove_prefix(std::min(piece, rest.size()));
    }
    require(plain.empty());
  }
  if ((choice & 0x80) != 0) server->receive_end();
  given(*server, "");
  require(server->wire().size() <= kMaxAnswered);
  if (server->state() == TransportLayer::State::kFailed) require(!server->reason().empty());
  return 0;
}
