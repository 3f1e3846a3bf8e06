// Writes a dataset as requests: the beginning of an append-only file that does not begin with RDB
// (aof-use-rdb-preamble no).
//
// Collections are written in requests of up to 64 elements, so that no request is large or keeps
// the loading server busy for long. Only reads the server; may run in a forked child.
#pragma once

#include <cstdint>
#include <functional>

#include "persist/byte_stream.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

struct AofDatasetOptions {
  // Begin with a timestamp annotation (aof-timestamp-enabled).
  bool timestamp = false;
  // Called after each key.
  std::function<void()> after_key;
};

// Writes all function libraries and databases and flushes the sink. Writes keys past their deadline
// too. False when the sink has failed; see its error().
bool write_dataset_as_requests(ByteSink& sink, server::Server& server,
                               const AofDatasetOptions& options);

}  // namespace latchkey::persist
