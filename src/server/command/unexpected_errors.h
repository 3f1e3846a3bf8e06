// Error replies to requests that no ordinary client sent: those of the master, of a replica, or of
// an append-only file. Nobody reads such a reply; it means that the dataset here may differ from
// the one that the request comes from.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::server {

class Client;

// Counts the error (`unexpected_error_replies` of INFO) and logs it. `text`: the error without its
// dash. `self` and `peer`: this server and the sender, as in "This `self` is sending an error to
// its `peer`". Returns the name of the command as the end of a log line.
std::string note_unexpected_error(const Client& client, std::string_view text,
                                  std::string_view self, std::string_view peer);

}  // namespace latchkey::server
