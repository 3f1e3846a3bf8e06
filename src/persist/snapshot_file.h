// A snapshot on its way to disk: written to a temporary file beside its place, synced, moved there
// in one step, and the directory synced. Whatever fails, the file that was there stays as it was,
// and the log says what failed.
//
// File names are relative to the server's directory (`dir`).
#pragma once

#include <sys/types.h>

#include <string>

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

class ChildProgress;
struct WriteOptions;

// "temp-PID.rdb", what the process of that id writes to.
std::string temporary_snapshot(server::Server& server, pid_t pid);
// Removes what a process that was stopped has left. Nothing when there is nothing.
void remove_temporary_snapshot(server::Server& server, pid_t pid);

// How a child writes, or the server itself without `progress`: as the settings say, with its
// progress told and rdb-key-save-delay kept.
WriteOptions child_write_options(server::Server& server, ChildProgress* progress);

// Writes all databases to the file `name`, as the settings of the server say (compression,
// checksum, syncing on the way, and rdb-key-save-delay for tests). `progress`: of the child that
// this is, or null in the server itself. False after a line in the log.
bool write_snapshot(server::Server& server, const std::string& name, ChildProgress* progress);

}  // namespace latchkey::persist
