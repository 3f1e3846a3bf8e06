#include "server/authentication.h"

#include "server/client.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kDefaultUser = "default";

// Looks at every byte, so that the time taken does not tell how many were right.
bool equal_in_constant_time(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<unsigned char>(given[i] ^ other);
  }
  return difference == 0;
}

}  // namespace

void assume_default_user(Client& client) {
  client.user = kDefaultUser;
  client.authenticated = client.server.settings().requirepass.empty();
  client.set(kClientNeedsAuth, !client.authenticated);
}

bool authenticate(Client& client, std::string_view user, std::string_view password) {
  const std::string& expected = client.server.settings().requirepass;
  const bool right = expected.empty() || equal_in_constant_time(password, expected);
  if (user != kDefaultUser || !right) {
    ++client.server.stats().denied_auth;
    return false;
  }
  client.user = kDefaultUser;
  client.authenticated = true;
  client.set(kClientNeedsAuth, false);
  return true;
}

void password_changed(Server& server) {
  const bool asked_for = !server.settings().requirepass.empty();
  server.clients().for_each(
      [&](Client& client) { client.set(kClientNeedsAuth, asked_for && !client.authenticated); });
}

}  // namespace latchkey::server
