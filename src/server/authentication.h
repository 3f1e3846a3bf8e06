// Who a client is, and whether it has proved it. There is one user, "default", whose password is
// `requirepass`; without one everybody is it.
#pragma once

#include <string_view>

namespace latchkey::server {

class Client;
class Server;

// Makes the client the default user: authenticated if no password is asked for. New clients, and
// those that RESET.
void assume_default_user(Client& client);

// True when there is such a user with this password; the client is that user from now on. Takes the
// same time wherever the passwords differ.
bool authenticate(Client& client, std::string_view user, std::string_view password);

// After `requirepass` has changed: those who proved themselves, or never had to, go on; the others
// must.
void password_changed(Server& server);

}  // namespace latchkey::server
