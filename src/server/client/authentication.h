// Who a client is (server/acl has the users), and whether it has proved it.
#pragma once

#include <string_view>

namespace latchkey::server {

class Client;

// Makes the client the default user: authenticated if that one is let in without a password. New
// clients, and those that RESET.
void assume_default_user(Client& client);

// True when there is such a user with this password; the client is that user from now on. A failure
// is counted and logged as one of `command`, as the client spelt it. Takes the same time wherever
// passwords differ.
bool authenticate(Client& client, std::string_view user, std::string_view password,
                  std::string_view command);

// Makes the client the default user without its having proved it.
void become_stranger(Client& client);

// Sets kClientNeedsAuth and kClientRestricted as the rules of users, which have changed, now say.
// Whoever has proved itself, or never had to, goes on.
void update_rights(Client& client);

}  // namespace latchkey::server
