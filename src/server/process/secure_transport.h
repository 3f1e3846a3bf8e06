// TLS of one server: makes the context (tls/context.h) from the directives tls-*, replaces it when
// they change, and gives connections their layers.
//
// A context that cannot be made leaves the old one in use, and CONFIG SET fails; so certificates
// are replaced by setting their files again, also under the names they had, or by themselves
// (certificate_reload.h). Connections go on with
// the context they began with. While no directive asks for TLS there is no context, and the other
// directives are kept without being checked.
#pragma once

#include <memory>

#include "base/result.h"
#include "net/transport_layer.h"
#include "server/process/certificate_reload.h"

namespace latchkey::server {

class Server;

class SecureTransport {
 public:
  explicit SecureTransport(Server& server);
  ~SecureTransport();
  SecureTransport(const SecureTransport&) = delete;
  SecureTransport& operator=(const SecureTransport&) = delete;

  // Makes the context if one is asked for. The error, why it cannot be made, has been logged.
  base::Result<> configure();
  // The layer of an accepted connection. REQUIRES: configured, and tls-port is not 0 or tls-cluster
  // is yes.
  std::unique_ptr<net::TransportLayer> accept();
  // The same of a connection to the bus of a cluster: nodes need a certificate, whatever
  // tls-auth-clients asks of clients.
  std::unique_ptr<net::TransportLayer> accept_node();
  // In use; null: no directive asks for TLS.
  const tls::Context* context() const { return context_.get(); }
  // For connections to a master, and to nodes of a cluster (bus and MIGRATE). Empty: they are
  // plain. The functions return null once TLS was switched off, and must not be called after the
  // server's end.
  net::LayerMaker for_replication();
  net::LayerMaker for_cluster();

 private:
  bool is_wanted() const;
  net::LayerMaker maker();

  Server& server_;
  std::unique_ptr<tls::Context> context_;
  CertificateReload reload_;
};

}  // namespace latchkey::server
