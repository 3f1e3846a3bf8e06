// Composes the persistence of a server: the background child, snapshots, the append-only file,
// loading. One per server, a layer of it.
#pragma once

#include "persist/aof/aof.h"
#include "persist/aof/backup.h"
#include "persist/background_child.h"
#include "persist/loading.h"
#include "persist/snapshots.h"

namespace latchkey::persist {

class Persistence {
 public:
  // Registers itself with the server, which must outlive it: ticks, INFO, SHUTDOWN, FLUSHALL,
  // DEBUG.
  Persistence(server::Server& server, ChildProcessParts parts);

  BackgroundChild& child() { return child_; }
  Snapshots& snapshots() { return snapshots_; }
  Aof& aof() { return aof_; }
  Backup& backup() { return backup_; }
  Loading& loading() { return loading_; }

 private:
  void tick();
  server::PersistenceFigures figures() const;

  server::Server& server_;
  BackgroundChild child_;
  Snapshots snapshots_;
  Aof aof_;
  Backup backup_;
  Loading loading_;
};

}  // namespace latchkey::persist
