// Authentication of clients: the user of each (users are in server/acl), and whether it logged in.
#pragma once

#include <string_view>

namespace latchkey::server {

class Client;

// Makes the client the default user; it is authenticated if that user needs no password. Called for
// new clients and by RESET.
void assume_default_user(Client& client);

// True when there is such a user with this password; the client becomes that user. A failure is
// counted and logged as one of `command`, as the client spelt it. The time does not depend on where
// passwords differ.
bool authenticate(Client& client, std::string_view user, std::string_view password,
                  std::string_view command);

// The client's TLS handshake is over: makes it the user that its certificate names, if
// tls-auth-clients-user asks for that. When there is no such enabled user, its user stays, and the
// refusal is counted and logged.
void authenticate_by_certificate(Client& client);

// Makes the client the default user, not authenticated.
void log_out(Client& client);

// Sets kClientNeedsAuth and kClientRestricted after the ACL rules have changed. A client that has
// logged in, or never had to, is not logged out.
void update_rights(Client& client);

}  // namespace latchkey::server
