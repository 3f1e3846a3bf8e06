// Loads the dataset from disk: at start, and for DEBUG RELOAD.
//
// While a task (server/tasks.h) loads a dataset, clients are served: after every
// loading-process-events-interval-bytes the task is suspended for a turn of the loop, in which
// commands that need the dataset are refused with -LOADING. No key expires meanwhile, but the clock
// advances.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command/slot_gate.h"
#include "server/observe/persistence_figures.h"
#include "server/observe/progress.h"
#include "server/replication_history.h"
#include "store/keyspace.h"

namespace latchkey::server {
struct CommandContext;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class Aof;
class ByteSource;
class ProgressWatch;

// The progress of the current loading, or the results of the last one.
struct LoadingFigures {
  int64_t since_us = 0;  // Unix time
  uint64_t total_bytes = 0;
  uint64_t done_bytes = 0;
  uint64_t dataset_memory = 0;  // as recorded in the file when it was saved
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;

  void describe(int64_t now_us, server::PersistenceFigures* figures) const;
};

// Sets the server's loading state during its lifetime, and logs the progress by Server::clock().
class LoadingScope {
 public:
  // `beside`: clients are served from another, complete dataset meanwhile.
  LoadingScope(server::Server& server, LoadingFigures& figures, uint64_t total_bytes,
               bool beside = false);
  ~LoadingScope();
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;

  // While the result lives, serves clients whenever loading-process-events-interval-bytes more have
  // been read, and stops `source` when the server must stop. `base`: bytes of files loaded before.
  [[nodiscard]] ProgressWatch watch(ByteSource& source, uint64_t base = 0);
  // Serves clients once. False when the server must stop.
  bool serve_others(uint64_t done_bytes);
  // Callers must call this for each key; pauses as key-load-delay says, for tests.
  void key_loaded(uint64_t keys);
  // The same for each request of an append-only file.
  void request_run(uint64_t requests) { pause_for_tests(requests); }

 private:
  void pause_for_tests(uint64_t count);

  server::Server& server_;
  LoadingFigures& figures_;
  uint32_t state_;  // the bit of ServerState
  server::Progress progress_;
};

// Refuses, with the error sent, a request to reload the dataset, if one is being loaded already or
// the request comes from a script, which would lose the data it runs on.
bool refuses_reload(server::CommandContext& ctx);

// Empties all databases and drops the function libraries, before another dataset is loaded.
// Propagates nothing, but calls KeyspaceEvents::flushed().
void clear_dataset(server::Server& server);

// Database and key.
using DroppedKey = std::pair<int, std::string>;

class Loading {
 public:
  explicit Loading(server::Server& server) : server_(server) {}

  enum class Result : uint8_t {
    kDone,
    kNoFile,
    kFailed,   // the log says why
    kStopped,  // the server has been asked to stop
  };

  // Loads the dataset at start; only this function decides which files are read.
  Result load_at_start();

  struct FileOptions {
    bool replace_existing = false;
    // The destination, as many databases as the server has; empty: the server's own databases.
    std::span<const std::unique_ptr<store::Keyspace>> databases = {};
    // The destination for the code of function libraries; null: the server's own functions.
    std::vector<std::string>* functions = nullptr;
    // Whether clients are served from the server's own databases meanwhile.
    bool serves_old = false;
    // Set to the dataset's replication id and offset when it was saved, if the file has them.
    std::optional<server::StreamPlace>* place = nullptr;
    // Set to the slots in the file that were migrating in a cluster.
    server::DatasetSlots* slots = nullptr;
    // Expired keys that were dropped are appended here.
    std::vector<DroppedKey>* dropped = nullptr;
    // Set to whether the failure is due to the file (ReadReport::is_damaged).
    bool* is_damaged = nullptr;
  };
  // Whether the file at `path`, if there is one, begins as a snapshot of a version that this server
  // loads. False, with the reason logged: the dataset need not be emptied for it.
  bool may_load(const std::string& path);
  // Adds the contents of a snapshot to the databases. What was read before a failure stays.
  Result load_snapshot(const std::string& name, const FileOptions& options);
  // The same from any source. `total_bytes`: 0 when not known.
  Result load_from(ByteSource& source, uint64_t total_bytes, const FileOptions& options);

  // The replication id and offset in the snapshot that load_at_start() read, if it has them; and
  // its expired keys that were dropped, in the order of the file.
  const std::optional<server::StreamPlace>& place_at_start() const { return place_; }
  const server::DatasetSlots& slots_at_start() const { return slots_; }
  std::vector<DroppedKey> take_dropped_at_start() { return std::exchange(dropped_, {}); }

  LoadingFigures& figures() { return figures_; }
  const LoadingFigures& figures() const { return figures_; }

 private:
  Result load_own_aof(Aof& aof);
  // The reports and the advice of a start included.
  Result load_whole_snapshot(const std::string& name);
  std::string absolute(const std::string& path) const;
  // Logs the path of a file that could not be loaded, and the tool that checks it.
  void advise(std::string_view tool, const std::string& path);

  server::Server& server_;
  LoadingFigures figures_;
  std::optional<server::StreamPlace> place_;
  server::DatasetSlots slots_;
  std::vector<DroppedKey> dropped_;
};

}  // namespace latchkey::persist
