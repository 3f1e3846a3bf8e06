#include "server/command/unexpected_errors.h"

#include "server/client/client.h"
#include "server/command/command_table.h"
#include "server/server.h"

namespace latchkey::server {

std::string note_unexpected_error(const Client& client, std::string_view text,
                                  std::string_view self, std::string_view peer) {
  ++client.server.stats().unexpected_error_replies;
  // Other error codes are shown with the dash.
  constexpr std::string_view kPlain = "ERR ";
  const std::string shown =
      text.starts_with(kPlain) ? std::string(text.substr(kPlain.size())) : "-" + std::string(text);
  const std::string behind =
      " after processing the command '" +
      (client.last_command != nullptr ? client.last_command->full_name : "<unknown>") + "'";
  client.server.log().warning("== CRITICAL == This " + std::string(self) +
                              " is sending an error to its " + std::string(peer) + ": '" + shown +
                              "'" + behind);
  return behind;
}

}  // namespace latchkey::server
