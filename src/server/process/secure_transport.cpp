#include "server/process/secure_transport.h"

#include <utility>

#include "server/server.h"
#include "tls/context.h"

namespace latchkey::server {

namespace {

tls::Settings::Clients clients_of(TlsAuthClients value) {
  switch (value) {
    case TlsAuthClients::kNo:
      return tls::Settings::Clients::kNoCertificate;
    case TlsAuthClients::kOptional:
      return tls::Settings::Clients::kOptional;
    case TlsAuthClients::kYes:
      break;
  }
  return tls::Settings::Clients::kRequired;
}

tls::Settings settings_of(const Config& config) {
  const ConfigValues& values = config.values();
  const auto path = [&](const std::string& name) {
    return name.empty() ? std::string() : config.directory().path_of(name);
  };
  return {.cert_file = path(values.tls_cert_file),
          .key_file = path(values.tls_key_file),
          .key_file_password = values.tls_key_file_pass,
          .client_cert_file = path(values.tls_client_cert_file),
          .client_key_file = path(values.tls_client_key_file),
          .client_key_file_password = values.tls_client_key_file_pass,
          .dh_params_file = path(values.tls_dh_params_file),
          .ca_cert_file = path(values.tls_ca_cert_file),
          .ca_cert_dir = path(values.tls_ca_cert_dir),
          .clients = clients_of(values.tls_auth_clients),
          .connects = values.tls_replication || values.tls_cluster,
          .protocols = values.tls_protocols,
          .ciphers = values.tls_ciphers,
          .ciphersuites = values.tls_ciphersuites,
          .prefer_server_ciphers = values.tls_prefer_server_ciphers,
          .session_caching = values.tls_session_caching,
          .session_cache_size = values.tls_session_cache_size,
          .session_cache_timeout = values.tls_session_cache_timeout};
}

}  // namespace

SecureTransport::SecureTransport(Server& server)
    : server_(server), reload_(server, [this](std::unique_ptr<tls::Context> context) {
        context_ = std::move(context);
      }) {
  server.config().on_change({"tls-auto-reload-interval"}, [this] {
    reload_.set_interval(server_.settings().tls_auto_reload_interval);
  });
  server.config().on_change(
      {"tls-port",
       "tls-cert-file",
       "tls-key-file",
       "tls-key-file-pass",
       "tls-client-cert-file",
       "tls-client-key-file",
       "tls-client-key-file-pass",
       "tls-dh-params-file",
       "tls-ca-cert-file",
       "tls-ca-cert-dir",
       "tls-auth-clients",
       "tls-replication",
       "tls-cluster",
       "tls-protocols",
       "tls-ciphers",
       "tls-ciphersuites",
       "tls-prefer-server-ciphers",
       "tls-session-caching",
       "tls-session-cache-size",
       "tls-session-cache-timeout"},
      [this]() -> base::Result<> {
        // A space has no port of its own; its host refuses what would need one.
        if ((server_.state() & kStateSpace) != 0 || configure()) return {};
        return base::fail("Unable to update TLS configuration. Check server logs.");
      });
}

SecureTransport::~SecureTransport() = default;

bool SecureTransport::is_wanted() const {
  const ConfigValues& values = server_.settings();
  return values.tls_port != 0 || values.tls_replication || values.tls_cluster;
}

base::Result<> SecureTransport::configure() {
  reload_.set_interval(server_.settings().tls_auto_reload_interval);
  if (!is_wanted()) {
    context_.reset();
    reload_.stop();
    return {};
  }
  tls::Settings settings = settings_of(server_.config());
  std::vector<tls::FileStamp> stamps = tls::stamps_of(settings);
  base::Result<std::unique_ptr<tls::Context>> context = tls::Context::make(settings);
  if (!context) {
    server_.log().warning(context.error());
    return context.failure();
  }
  context_ = *std::move(context);
  reload_.watch(std::move(settings), std::move(stamps));
  return {};
}

std::unique_ptr<net::TransportLayer> SecureTransport::accept() {
  return context_->accept(server_.buffer_pool());
}

std::unique_ptr<net::TransportLayer> SecureTransport::accept_node() {
  return context_->accept_server(server_.buffer_pool());
}

net::LayerMaker SecureTransport::maker() {
  return [this](const std::string& host) -> std::unique_ptr<net::TransportLayer> {
    return context_ != nullptr ? context_->connect(server_.buffer_pool(), host) : nullptr;
  };
}

net::LayerMaker SecureTransport::for_replication() {
  return server_.settings().tls_replication ? maker() : net::LayerMaker();
}

net::LayerMaker SecureTransport::for_cluster() {
  return server_.settings().tls_cluster ? maker() : net::LayerMaker();
}

}  // namespace latchkey::server
