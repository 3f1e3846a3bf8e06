// Error replies to the master or to a replica. Nobody reads them; they mean that the datasets of
// the two servers may differ.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::server {
class Client;
}

namespace latchkey::replication {

class Replication;

// Counts the error, and logs it with the last bytes of the stream. `text`: the error without its
// dash; `self` and `peer`: "master" and "replica" or the reverse. Returns the command as words for
// a log line.
std::string note_unexpected_error(const Replication& replication, const server::Client& client,
                                  std::string_view text, std::string_view self,
                                  std::string_view peer);

}  // namespace latchkey::replication
