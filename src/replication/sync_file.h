// The snapshot files that full resynchronisations leave, with the master and with the replica.
#pragma once

#include "server/config/config_values.h"

namespace latchkey::replication {

// Whether such a file is to be removed once it has served: rdb-del-sync-files, and nothing else is
// stored on disk.
inline bool removes_sync_files(const server::ConfigValues& settings) {
  return settings.rdb_del_sync_files && !settings.appendonly && settings.save.empty();
}

}  // namespace latchkey::replication
