#include "server/client/authentication.h"

#include <string>
#include <vector>

#include "server/acl/access_control.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/server.h"

namespace latchkey::server {

void assume_default_user(Client& client) {
  client.user = client.server.access().default_user();
  client.authenticated = client.server.access().admits_without_login();
  update_rights(client);
}

bool authenticate(Client& client, std::string_view name, std::string_view password,
                  std::string_view command) {
  const acl::AccessControl& access = client.server.access();
  auto user = access.find(name);
  if (user == nullptr && !name.empty() && name == access.default_alias())
    user = access.default_user();
  if (user == nullptr || !user->accepts(password)) {
    client.server.access().login_failed(client, name, command);
    return false;
  }
  client.user = user;
  client.authenticated = client.has_logged_in = true;
  update_rights(client);
  return true;
}

void authenticate_by_certificate(Client& client) {
  Server& server = client.server;
  const net::TransportLayer& layer = *client.connection()->layer();
  std::vector<std::string> names;
  switch (server.settings().tls_auth_clients_user) {
    case TlsUserField::kOff:
      return;
    case TlsUserField::kCommonName:
      names.push_back(layer.peer_name());
      if (names.back().empty()) return;
      break;
    case TlsUserField::kUri:
      names = layer.peer_uris();
  }
  for (const std::string& name : names) {
    const auto user = server.access().find(name);
    if (user == nullptr || !user->enabled) continue;
    client.user = user;
    client.authenticated = true;
    update_rights(client);
    const bool hidden = server.settings().hide_user_data_from_log;
    server.log().verbose("TLS: Auto-authenticated client as " +
                         (hidden ? std::string(kRedacted) : name));
    return;
  }
  if (!names.empty()) server.access().certificate_refused(client, names.back());
  if (server.settings().tls_auth_clients_user == TlsUserField::kUri)
    server.log().verbose("TLS: No matching user found in certificate SAN URI fields");
}

void log_out(Client& client) {
  client.user = client.server.access().default_user();
  client.authenticated = false;
  update_rights(client);
}

void update_rights(Client& client) {
  if (client.user == nullptr) return;
  client.set(kClientNeedsAuth,
             !client.authenticated && !client.server.access().admits_without_login());
  client.set(kClientRestricted, !client.user->may_do_everything());
}

}  // namespace latchkey::server
