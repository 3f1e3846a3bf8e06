// A dataset as the requests that make it: what begins an append-only file when it does not begin
// with RDB (aof-use-rdb-preamble no).
//
// Collections are written in requests of up to 64 elements, so that none is large and the server
// that loads them is never long in one. Only reads the server; may run in a forked child.
#pragma once

#include <cstdint>
#include <functional>

#include "persist/byte_stream.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

struct AofDatasetOptions {
  // Begins with the time (aof-timestamp-enabled).
  bool timestamp = false;
  // Called behind each key.
  std::function<void()> after_key;
};

// Writes all function libraries and databases and flushes the sink. Keys past their deadline are
// written too. False when the sink has failed; its error() tells.
bool write_dataset_as_requests(ByteSink& sink, server::Server& server,
                               const AofDatasetOptions& options);

}  // namespace latchkey::persist
