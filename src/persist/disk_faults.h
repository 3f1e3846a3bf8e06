// Failures of the disk that FAULT asks for (server/command/fault_injector.h), as an errno.
#pragma once

#include <cerrno>

#include "server/command/fault_injector.h"
#include "server/server.h"

namespace latchkey::persist {

// ENOSPC when a write that is about to be made is to fail, else 0.
inline int injected_write_error(server::Server& server) {
  if ((server.state() & server::kStateFaults) == 0) return 0;
  return server.fault_injector().disk_fails(server::DiskFault::kFull) ? ENOSPC : 0;
}

// EIO when a sync that is about to be made is to fail, else 0.
inline int injected_sync_error(server::Server& server) {
  if ((server.state() & server::kStateFaults) == 0) return 0;
  return server.fault_injector().disk_fails(server::DiskFault::kSyncFails) ? EIO : 0;
}

// Of a file that is about to be written and synced as a whole.
inline int injected_file_error(server::Server& server) {
  const int error = injected_write_error(server);
  return error != 0 ? error : injected_sync_error(server);
}

}  // namespace latchkey::persist
