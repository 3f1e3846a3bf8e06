// Writes a snapshot to disk: to a temporary file in the same directory, which is synced and
// renamed, and then the directory is synced. On any failure before the renaming the old file stays
// unchanged, and after it the new one is whole; the log says what failed.
//
// File names are relative to the server's directory (`dir`).
#pragma once

#include <sys/types.h>

#include <string>

namespace latchkey::server {
class Server;
struct StreamPlace;
}  // namespace latchkey::server

namespace latchkey::persist {

class ChildProgress;
struct WriteOptions;

// "temp-PID.rdb", the temporary file of the process with that id.
std::string temporary_snapshot(server::Server& server, pid_t pid);
// Removes the temporary file of a stopped process, if there is one.
void remove_temporary_snapshot(server::Server& server, pid_t pid);

// Options for writing in a child, or in the server itself if `progress` is null: by the settings,
// reporting progress and pausing as rdb-key-save-delay says.
WriteOptions child_write_options(server::Server& server, ChildProgress* progress);
// Adds the auxiliary fields with the replication id and offset of the dataset, by which a server
// that loads the file resumes the stream there.
void add_stream_place(const server::StreamPlace& place, WriteOptions* options);

// Writes all databases to the file `name`, as the server's settings say (compression, checksum,
// incremental syncing, and rdb-key-save-delay for tests). `progress`: of the child that calls this,
// or null in the server itself. `injected`: an errno with which it is to fail, or 0. False, with
// the reason logged, on failure.
bool write_snapshot(server::Server& server, const std::string& name, ChildProgress* progress,
                    int injected);

}  // namespace latchkey::persist
