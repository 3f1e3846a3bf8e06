// TLS as one server uses it: certificates, the authorities it trusts, protocols and ciphers, for
// the connections it accepts and for those it opens. Made whole from settings, and never changed:
// other settings are another context. Sessions keep what they need of the context they began with,
// so that it may be replaced and destroyed while they go on.
//
// Nothing of OpenSSL is initialised before the first context is made. OpenSSL's configuration file
// is not read. This folder alone includes OpenSSL's headers. Not thread-safe, but any thread may
// make a context for another one.
#pragma once

#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "base/result.h"
#include "net/transport_layer.h"
#include "tls/certificate.h"

struct ssl_ctx_st;

namespace latchkey::tls {

// The directives tls-*. Texts that are empty: not given.
struct Settings {
  std::string cert_file;
  std::string key_file;
  std::string key_file_password;
  std::string client_cert_file;  // for connections that this server opens; empty: cert_file
  std::string client_key_file;   // empty: the key is in client_cert_file
  std::string client_key_file_password;
  std::string dh_params_file;
  std::string ca_cert_file;
  std::string ca_cert_dir;
  enum class Clients { kNoCertificate, kOptional, kRequired };
  Clients clients = Clients::kRequired;
  bool connects = false;     // connections to other servers are encrypted, so they must be verified
  std::string protocols;     // "TLSv1.2 TLSv1.3", which is the default
  std::string ciphers;       // up to TLS 1.2
  std::string ciphersuites;  // of TLS 1.3
  bool prefer_server_ciphers = false;
  bool session_caching = true;
  int session_cache_size = 20480;   // sessions; 0: no limit
  int session_cache_timeout = 300;  // seconds
};

class Context {
 public:
  // Reads the files, and all of ca_cert_dir. The error is a line for the log, in the reference's
  // words.
  static base::Result<std::unique_ptr<Context>> make(const Settings& settings);

  // The layer of an accepted connection. `pool` must outlive it.
  std::unique_ptr<net::TransportLayer> accept(base::BufferPool& pool) const;
  // As accept(), of a connection from another server, which must have a certificate whatever
  // Settings::clients says.
  std::unique_ptr<net::TransportLayer> accept_server(base::BufferPool& pool) const;
  // The layer of a connection to `host`, whose certificate must come from an authority that is
  // trusted; names in it are not compared. A name (not an address) is sent as SNI.
  std::unique_ptr<net::TransportLayer> connect(base::BufferPool& pool,
                                               const std::string& host) const;

  // The certificates that are shown; the client's has no facts where it is the server's.
  const CertificateFacts& server_certificate() const { return server_certificate_; }
  const CertificateFacts& client_certificate() const { return client_certificate_; }
  // Of the authorities that are trusted, the one that expires first.
  const CertificateFacts& authority() const { return authority_; }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  using Handle = std::unique_ptr<ssl_ctx_st, Free>;
  static base::Result<Handle> make_side(const Settings& settings, bool for_clients);
  Context(Handle incoming, Handle outgoing)
      : incoming_(std::move(incoming)), outgoing_(std::move(outgoing)) {}

  Handle incoming_;
  Handle outgoing_;
  CertificateFacts server_certificate_;
  CertificateFacts client_certificate_;
  CertificateFacts authority_;
};

}  // namespace latchkey::tls
