// Temporary files of processes that were killed before they could remove them: the child that wrote
// a snapshot or the base of the append-only file, a replica that received a dataset.
//
// A child that ends, and one whose server finds it ended, leaves nothing. These are of servers that
// were killed together with their child, or whose child went on without them. The reference leaves
// them for ever.
#pragma once

#include <optional>
#include <string_view>

#include <sys/types.h>

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// The process whose temporary file this is, going by the name alone: "temp-PID.rdb",
// "temp-SECONDS.PID.rdb", "temp-rewriteaof-PID.aof", "temp-rewriteaof-bg-PID.aof". Nothing for
// other names.
std::optional<pid_t> writer_of_temporary(std::string_view name);

// Removes such files from the server's directory, each of which is logged: plain files of this user
// whose process is no more, or is this one by now. REQUIRES: this process writes none as yet.
void remove_leftovers(server::Server& server);

}  // namespace latchkey::persist
