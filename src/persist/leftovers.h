// Removes temporary files of processes that were killed before they could remove them: of a child
// that wrote a snapshot or the base of the append-only file, or of a replica that received a
// dataset.
//
// A child that ends by itself leaves no file, and a server removes the file of a child that it
// finds ended. Files remain when a server was killed together with its child, or when its child
// went on without it. The reference never removes them.
#pragma once

#include <optional>
#include <string_view>

#include <sys/types.h>

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// The id of the process that wrote a temporary file of this name: "temp-PID.rdb",
// "temp-SECONDS.PID.rdb", "temp-rewriteaof-PID.aof", "temp-rewriteaof-bg-PID.aof". Nothing for
// other names, and for numbers that are no process id.
std::optional<pid_t> writer_of_temporary(std::string_view name);

// Removes and logs such files from the server's directory: plain files of this user whose process
// has ended, or whose process id is this process's own. A file that the configuration names stays,
// such as one that `dbfilename` or `preload-file` has given such a name. REQUIRES: this process has
// not written any yet.
void remove_leftovers(server::Server& server);

}  // namespace latchkey::persist
