// The dataset's way back from disk: at start, and for DEBUG RELOAD.
//
// While a dataset is being loaded by a task (server/tasks.h) clients are served all the same: the
// task is suspended every so many bytes for a turn of the loop, in which commands that need the
// dataset are refused with -LOADING. Nothing expires meanwhile, and time goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/observe/persistence_figures.h"
#include "server/replication_history.h"
#include "store/keyspace.h"

namespace latchkey::server {
struct CommandContext;
class Server;
}  // namespace latchkey::server

namespace latchkey::persist {

class ByteSource;

// How far the loading that goes on has come, and what the last one found.
struct LoadingFigures {
  int64_t since_us = 0;  // Unix time
  uint64_t total_bytes = 0;
  uint64_t done_bytes = 0;
  uint64_t dataset_memory = 0;  // when it was saved
  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;

  void describe(int64_t now_us, server::PersistenceFigures* figures) const;
};

// The state of loading, for as long as it lives.
class LoadingScope {
 public:
  // `beside`: the dataset that clients are served is another one, and is there.
  LoadingScope(server::Server& server, LoadingFigures& figures, uint64_t total_bytes,
               bool beside = false);
  ~LoadingScope();
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;

  // Has clients served whenever loading-process-events-interval-bytes more have been read, and
  // `source` stopped when the server is to end. `base`: what other files have held before.
  void watch(ByteSource& source, uint64_t base = 0);
  // The same at one such point. False when the server is to end.
  bool serve_others(uint64_t done_bytes);
  // key-load-delay, for tests: to be called for each key.
  void key_loaded(uint64_t keys);
  // The same for each request of so many.
  void request_run(uint64_t requests) { pause_for_tests(requests); }

 private:
  void pause_for_tests(uint64_t count);

  server::Server& server_;
  LoadingFigures& figures_;
  uint32_t state_;  // the bit of ServerState
};

// Whether a request to load the dataset anew has to be refused, with the error sent: one is being
// loaded already, or a script that runs would lose what it runs on.
bool refuses_reload(server::CommandContext& ctx);

// Empties all databases and drops the function libraries, before a dataset is loaded in their
// place. Tells nobody.
void forget_dataset(server::Server& server);

// Database and key.
using DroppedKey = std::pair<int, std::string>;

class Loading {
 public:
  explicit Loading(server::Server& server) : server_(server) {}

  enum class Result : uint8_t {
    kDone,
    kNoFile,
    kFailed,   // the log says why
    kStopped,  // the server is to end
  };

  // What a server starts with: the one place that decides which files are read.
  Result load_at_start();

  struct FileOptions {
    bool replace_existing = false;
    // Where it goes, as many as the server has; empty: the server's own databases.
    std::span<const std::unique_ptr<store::Keyspace>> databases = {};
    // Where the code of function libraries goes; null: they become the server's own.
    std::vector<std::string>* functions = nullptr;
    // Clients are served from the server's own databases meanwhile.
    bool serves_old = false;
    // Set to where the dataset's place in a stream was when it was saved, if it tells.
    std::optional<server::StreamPlace>* place = nullptr;
    // The keys that were dropped because they had expired, added here.
    std::vector<DroppedKey>* dropped = nullptr;
    // Whether a failure is the file's (ReadReport::is_damaged).
    bool* is_damaged = nullptr;
  };
  // Adds what a snapshot holds to the databases. What has been read before a failure stays.
  Result load_snapshot(const std::string& name, const FileOptions& options);
  // The same from any source. `total_bytes`: 0 when that is not known.
  Result load_from(ByteSource& source, uint64_t total_bytes, const FileOptions& options);

  // Of the snapshot that load_at_start() has read, if it told; and what of it was dropped because
  // it had expired, in the order of the file.
  const std::optional<server::StreamPlace>& place_at_start() const { return place_; }
  std::vector<DroppedKey> take_dropped_at_start() { return std::exchange(dropped_, {}); }

  LoadingFigures& figures() { return figures_; }
  const LoadingFigures& figures() const { return figures_; }

 private:
  server::Server& server_;
  LoadingFigures figures_;
  std::optional<server::StreamPlace> place_;
  std::vector<DroppedKey> dropped_;
};

}  // namespace latchkey::persist
