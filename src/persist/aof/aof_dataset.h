// Writes a dataset as requests: the beginning of an append-only file that does not begin with RDB
// (aof-use-rdb-preamble no).
//
// Collections are written in requests of up to 64 elements, so that no request is large or keeps
// the loading server busy for long. Only reads the server; may run in a forked child.
#pragma once

#include <cstdint>
#include <functional>

#include "persist/rdb/byte_stream.h"
#include "store/entry.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// Writes requests that make the key with its value and deadline, where there is no such key. Large
// collections are written in several. version: of the RDB format, for types that RESTORE makes.
// Does not flush the sink.
void write_key_as_requests(ByteSink& sink, const store::Entry& entry, int version);

struct AofDatasetOptions {
  // Begin with a timestamp annotation (aof-timestamp-enabled).
  bool timestamp = false;
  // If not null, gets the number of keys that were left out: those of slots that are being deleted
  // (store/hidden_slots.h).
  uint64_t* skipped = nullptr;
  // Called after each key.
  std::function<void()> after_key;
};

// Writes all function libraries and databases and flushes the sink. Writes keys past their deadline
// too. False when the sink has failed; see its error().
bool write_dataset_as_requests(ByteSink& sink, server::Server& server,
                               const AofDatasetOptions& options);

}  // namespace latchkey::persist
