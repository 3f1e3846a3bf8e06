// The use of the server's memory, for INFO memory and MEMORY STATS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/observe/memory.h"

namespace latchkey::server {

class Server;

// Memory of scripts and functions; filled in by the script engine (LayerFigures).
struct ScriptFigures {
  size_t interpreter_bytes = 0;
  size_t scripts_bytes = 0;  // sources and their index
  size_t cached_scripts = 0;
  size_t function_interpreter_bytes = 0;
  size_t functions_bytes = 0;  // sources and their index
  size_t functions = 0;
  size_t libraries = 0;
  uint64_t evicted_scripts = 0;

  size_t all_interpreter_bytes() const { return interpreter_bytes + function_interpreter_bytes; }
  size_t all_sources_bytes() const { return scripts_bytes + functions_bytes; }
};

struct DatabaseMemory {
  int index = 0;
  size_t keys = 0;
  size_t table_bytes = 0;      // the buckets in use of the hash table of keys
  size_t deadlines_bytes = 0;  // the DeadlineWheel and its DeadlineNodes
};

struct MemoryReport {
  size_t used = 0;  // bytes allocated
  size_t peak = 0;
  size_t startup = 0;   // before the first client and key
  size_t resident = 0;  // of the process
  size_t clients = 0;   // without values of the dataset that wait to be sent
  // Of replication, links of the cluster and the append-only file.
  size_t buffers = 0;
  size_t keys = 0;
  std::vector<DatabaseMemory> databases;  // databases with keys
  ScriptFigures scripts;
  AllocatorFigures allocator;

  // All memory but keys and values.
  size_t overhead() const;
  size_t dataset() const { return used > overhead() ? used - overhead() : 0; }
  // Percent of what was allocated since the start.
  double dataset_percent() const;
  double peak_percent() const;

  double allocator_fragmentation() const;
  double allocator_resident_ratio() const;
  double resident_overhead_ratio() const;
  double fragmentation() const;
};

// Linear in the number of clients and databases.
MemoryReport measure_memory(Server& server);

}  // namespace latchkey::server
