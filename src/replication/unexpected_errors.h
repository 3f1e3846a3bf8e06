// Errors that nobody reads: what a server answers to its master, or to a replica, stands for a
// dataset that may no longer be the same at both ends.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::server {
class Client;
}

namespace latchkey::replication {

class Replication;

// Counts it, and tells it in the log together with what the stream ends with. `text`: the error
// without its dash; `self` and `peer`: "master" and "replica", as they stand to each other. Returns
// which command it was, in words for a log line.
std::string note_unexpected_error(const Replication& replication, const server::Client& client,
                                  std::string_view text, std::string_view self,
                                  std::string_view peer);

}  // namespace latchkey::replication
