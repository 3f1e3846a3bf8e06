#include "tls/context.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "tls/error_text.h"
#include "tls/session.h"

namespace latchkey::tls {

namespace {

// Sessions are resumed only by contexts of this name.
constexpr std::string_view kSessionContext = "latchkey";

void initialise_library() {
  static const bool done = [] {
    constexpr uint64_t kOptions = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT |
                                  OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS;
    return OPENSSL_init_ssl(kOptions, nullptr) == 1;
  }();
  (void)done;
}

struct Protocol {
  std::string_view name;
  uint64_t off;  // the option that switches it off
};
constexpr Protocol kProtocols[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                                   {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                                   {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                                   {"TLSv1.3", SSL_OP_NO_TLSv1_3}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// The options that leave the named protocols; 0 for texts that name none, or an unknown one.
uint64_t options_for(std::string_view text) {
  uint64_t off = 0;
  for (const Protocol& each : kProtocols) off |= each.off;
  const uint64_t all_off = off;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const auto* const found =
        std::find_if(std::begin(kProtocols), std::end(kProtocols),
                     [&](const Protocol& each) { return equal_ignoring_case(each.name, word); });
    if (found == std::end(kProtocols)) return 0;
    off &= ~found->off;
  }
  return off == all_off ? 0 : off;
}

// Gives the password to OpenSSL, which would ask for it at the terminal otherwise.
int tell_password(char* buffer, int size, int, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || std::cmp_greater(text.size(), size)) return -1;
  std::copy(text.begin(), text.end(), buffer);
  return static_cast<int>(text.size());
}

base::Result<> load_certificate(SSL_CTX* context, const std::string& cert_file,
                                const std::string& key_file, const std::string& password) {
  SSL_CTX_set_default_passwd_cb(context, tell_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, const_cast<std::string*>(&password));
  const bool has_certificate = SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) == 1;
  const bool has_key = has_certificate && SSL_CTX_use_PrivateKey_file(context, key_file.c_str(),
                                                                      SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  if (!has_certificate)
    return base::fail("Failed to load certificate: " + cert_file + ": " + take_error_text());
  if (!has_key)
    return base::fail("Failed to load private key: " + key_file + ": " + take_error_text());
  return {};
}

base::Result<> load_authorities(SSL_CTX* context, const Settings& settings) {
  if (settings.ca_cert_file.empty() && settings.ca_cert_dir.empty()) return {};
  struct stat status {};
  // OpenSSL would find nothing in it, and say nothing.
  if (!settings.ca_cert_dir.empty() &&
      (stat(settings.ca_cert_dir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
    return base::fail("Failed to configure CA certificate(s) file/directory: " +
                      settings.ca_cert_dir + " is not a directory");
  }
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
  };
  if (SSL_CTX_load_verify_locations(context, text_or_null(settings.ca_cert_file),
                                    text_or_null(settings.ca_cert_dir)) != 1)
    return base::fail("Failed to configure CA certificate(s) file/directory: " + take_error_text());
  return {};
}

// Finds the certificates that stand between the own one and an authority, where its file has none.
// OpenSSL would find the same in each handshake, and verify them: 4 % of its cost.
void complete_chain(SSL_CTX* context) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  if (chain != nullptr) return;
  // It is sent however little is found, and also when it is not valid: clients tell better.
  SSL_CTX_build_cert_chain(context,
                           SSL_BUILD_CHAIN_FLAG_IGNORE_ERROR | SSL_BUILD_CHAIN_FLAG_CLEAR_ERROR);
}

base::Result<> choose_ciphers(SSL_CTX* context, const Settings& settings) {
  if (!settings.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context, settings.ciphers.c_str()) != 1) {
    ERR_clear_error();
    return base::fail("Failed to configure ciphers: " + settings.ciphers);
  }
  if (!settings.ciphersuites.empty() &&
      SSL_CTX_set_ciphersuites(context, settings.ciphersuites.c_str()) != 1) {
    ERR_clear_error();
    return base::fail("Failed to configure ciphersuites: " + settings.ciphersuites);
  }
  return {};
}

base::Result<> load_dh_params(SSL_CTX* context, const std::string& path) {
  if (path.empty()) {
    if (SSL_CTX_set_dh_auto(context, 1) != 1) return base::fail(take_error_text());
    return {};
  }
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(BIO_new_file(path.c_str(), "r"),
                                                           BIO_free_all);
  if (file == nullptr) {
    std::string error = "Failed to load " + path + ": " + strerror(errno);
    ERR_clear_error();
    return base::fail(std::move(error));
  }
  EVP_PKEY* const params = PEM_read_bio_Parameters(file.get(), nullptr);
  // The context owns them from here on.
  if (params != nullptr && SSL_CTX_set0_tmp_dh_pkey(context, params) == 1) return {};
  EVP_PKEY_free(params);
  ERR_clear_error();
  return base::fail(path + ": failed to read DH params.");
}

void set_session_caching(SSL_CTX* context, const Settings& settings) {
  SSL_CTX_set_session_id_context(context,
                                 reinterpret_cast<const unsigned char*>(kSessionContext.data()),
                                 static_cast<unsigned>(kSessionContext.size()));
  if (settings.session_caching) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, settings.session_cache_size);
    SSL_CTX_set_timeout(context, settings.session_cache_timeout);
    // OpenSSL would send two, and each costs as much as many requests. With each session that is
    // resumed comes another. Not later, with the first reply, which would spare a message: it
    // acknowledges the end of the handshake, for which a client without TCP_NODELAY waits before it
    // sends its request; other acknowledgements take the kernel 40 ms.
    SSL_CTX_set_num_tickets(context, 1);
  } else {
    // Tickets are sessions that clients keep.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
  }
}

int verification_of(Settings::Clients clients) {
  switch (clients) {
    case Settings::Clients::kNoCertificate:
      return SSL_VERIFY_NONE;
    case Settings::Clients::kOptional:
      return SSL_VERIFY_PEER;
    case Settings::Clients::kRequired:
      break;
  }
  return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

// Whether OpenSSL may read the files: it would wait for a writer of a pipe, and read a device
// to its end.
base::Result<> check_files(const Settings& settings) {
  constexpr uint64_t kMaxBytes = 64 << 20;
  for (const std::string* path :
       {&settings.cert_file, &settings.key_file, &settings.client_cert_file,
        &settings.client_key_file, &settings.dh_params_file, &settings.ca_cert_file}) {
    if (path->empty()) continue;
    const base::Descriptor file(base::open_regular(*path, O_RDONLY, base::disk()));
    // Of other errors OpenSSL tells.
    if (!file.is_open() && errno != ENOTSUP) continue;
    const int problem = !file.is_open() ? errno : EFBIG;
    if (file.is_open() && file.size().value_or(0) <= kMaxBytes) continue;
    return base::fail("Failed to load " + *path + ": " + base::read_error_text(problem));
  }
  return {};
}

// Whether the settings are complete, and OpenSSL may read their files.
base::Result<> check(const Settings& settings) {
  if (settings.cert_file.empty()) return base::fail("No tls-cert-file configured!");
  if (settings.key_file.empty()) return base::fail("No tls-key-file configured!");
  const bool verifies = settings.connects || settings.clients != Settings::Clients::kNoCertificate;
  if (verifies && settings.ca_cert_file.empty() && settings.ca_cert_dir.empty()) {
    return base::fail(
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, "
        "tls-replication or tls-auth-clients are enabled!");
  }
  if (!settings.protocols.empty() && options_for(settings.protocols) == 0) {
    return base::fail(
        "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and "
        "'TLSv1.3'.");
  }
  return check_files(settings);
}

}  // namespace

void Context::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

base::Result<std::unique_ptr<Context>> Context::make(const Settings& settings) {
  if (base::Result<> checked = check(settings); !checked) return checked.failure();
  initialise_library();
  ERR_clear_error();
  base::Result<Handle> incoming = make_side(settings, true);
  if (!incoming) return incoming.failure();
  base::Result<Handle> outgoing = make_side(settings, false);
  if (!outgoing) return outgoing.failure();
  std::unique_ptr<Context> context(new Context(*std::move(incoming), *std::move(outgoing)));
  SSL_CTX* const accepting = context->incoming_.get();
  context->server_certificate_ = facts_of(SSL_CTX_get0_certificate(accepting));
  if (!settings.client_cert_file.empty())
    context->client_certificate_ = facts_of(SSL_CTX_get0_certificate(context->outgoing_.get()));
  context->authority_ = first_to_expire(*SSL_CTX_get_cert_store(accepting), settings.ca_cert_dir);
  return context;
}

base::Result<Context::Handle> Context::make_side(const Settings& settings, bool for_clients) {
  Handle handle(SSL_CTX_new(for_clients ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* const context = handle.get();
  if (context == nullptr) return base::fail("Failed to create a TLS context: " + take_error_text());
  constexpr std::string_view kDefaultProtocols = "TLSv1.2 TLSv1.3";
  SSL_CTX_set_options(
      context, options_for(settings.protocols.empty() ? kDefaultProtocols
                                                      : std::string_view(settings.protocols)) |
                   SSL_OP_NO_SSLv3 | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // Chosen here and not by OpenSSL's own bounds, which would leave TLS 1.0 and 1.1 out.
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  if (for_clients && settings.prefer_server_ciphers)
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Idle connections hold no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);

  const bool as_client = !for_clients && !settings.client_cert_file.empty();
  const std::string& cert_file = as_client ? settings.client_cert_file : settings.cert_file;
  const std::string& own_key =
      settings.client_key_file.empty() ? settings.client_cert_file : settings.client_key_file;
  base::Result<> done =
      load_certificate(context, cert_file, as_client ? own_key : settings.key_file,
                       as_client ? settings.client_key_file_password : settings.key_file_password);
  if (done) done = load_authorities(context, settings);
  if (done) complete_chain(context);
  if (done) done = choose_ciphers(context, settings);
  if (done && for_clients) done = load_dh_params(context, settings.dh_params_file);
  if (!done) return done.failure();
  SSL_CTX_set_verify(context, for_clients ? verification_of(settings.clients) : SSL_VERIFY_PEER,
                     nullptr);
  if (for_clients) set_session_caching(context, settings);
  return handle;
}

std::unique_ptr<net::TransportLayer> Context::accept(base::BufferPool& pool) const {
  return std::make_unique<Session>(incoming_.get(), pool, Session::Side::kAccepts, std::string());
}

std::unique_ptr<net::TransportLayer> Context::accept_server(base::BufferPool& pool) const {
  auto session =
      std::make_unique<Session>(incoming_.get(), pool, Session::Side::kAccepts, std::string());
  session->require_certificate();
  return session;
}

std::unique_ptr<net::TransportLayer> Context::connect(base::BufferPool& pool,
                                                      const std::string& host) const {
  unsigned char address[sizeof(in6_addr)];
  const bool is_address = inet_pton(AF_INET, host.c_str(), address) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), address) == 1;
  return std::make_unique<Session>(outgoing_.get(), pool, Session::Side::kConnects,
                                   is_address ? std::string() : host);
}

}  // namespace latchkey::tls
