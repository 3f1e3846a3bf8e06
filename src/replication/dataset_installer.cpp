#include "replication/dataset_installer.h"

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "persist/persistence.h"
#include "replication/connection_source.h"
#include "replication/sync_file.h"
#include "server/command/keyspace_events.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::replication {

using persist::Loading;
using server::ReplDisklessLoad;

namespace {

// Closes the append-only file during its lifetime: a load has no effects to be recorded there.
class ClosedFile {
 public:
  explicit ClosedFile(persist::Aof& aof) : aof_(aof) { aof_.begin_replacement(); }
  ~ClosedFile() { aof_.end_replacement(snapshot_); }
  ClosedFile(const ClosedFile&) = delete;
  ClosedFile& operator=(const ClosedFile&) = delete;
  // The file that has been loaded.
  void loaded(const std::string& path) { snapshot_ = path; }

 private:
  persist::Aof& aof_;
  std::string snapshot_;
};

// Sets kStateLoading or kStateAsyncLoading during its lifetime.
class LoadingState {
 public:
  LoadingState(server::Server& server, uint32_t state) : server_(server), state_(state) {
    server_.set_state(state_, true);
  }
  ~LoadingState() { server_.set_state(state_, false); }
  LoadingState(const LoadingState&) = delete;
  LoadingState& operator=(const LoadingState&) = delete;

 private:
  server::Server& server_;
  uint32_t state_;
};

}  // namespace

bool DatasetInstaller::is_empty() const {
  for (int i = 0; i < server_.database_count(); ++i) {
    if (!server_.database(i).empty()) return false;
  }
  return true;
}

bool DatasetInstaller::wants_socket() const {
  switch (server_.settings().repl_diskless_load) {
    case ReplDisklessLoad::kDisabled:
      return false;
    case ReplDisklessLoad::kOnEmptyDb:
      return is_empty();
    case ReplDisklessLoad::kSwapdb:
    case ReplDisklessLoad::kFlushdb:
      return true;
  }
  return false;
}

void DatasetInstaller::stop_children() {
  persist::Persistence& persistence = server_.layer<persist::Persistence>();
  if (!persistence.snapshots().running()) return;
  server_.log().notice(
      "Replica is about to load the RDB file received from the master, but there is a pending RDB "
      "child running. Killing process " +
      std::to_string(persistence.child().pid()) + " and removing its temp file to avoid any race");
  persistence.child().kill_and_wait();
}

void DatasetInstaller::announce_replacement() {
  if (on_replacing_) on_replacing_();
  server_.hooks().dataset_replacing.run();
}

void DatasetInstaller::empty() {
  server_.log().notice("MASTER <-> REPLICA sync: Flushing old data");
  announce_replacement();
  for (int i = 0; i < server_.database_count(); ++i) {
    store::Keyspace& keyspace = server_.database(i);
    if (keyspace.empty()) continue;
    server_.events().clearing(keyspace);
    keyspace.clear(server_.settings().replica_lazy_flush);
  }
  server_.events().flushed();
  if (server_.functions() != nullptr) server_.functions()->clear();
}

DatasetInstaller::Result DatasetInstaller::install(DatasetReceiver& received) {
  base::Logger& log = server_.log();
  base::FileSystem& files = server_.files();
  const std::string& name = server_.settings().dbfilename;
  const std::string place = server_.config().directory().path_of(name);
  stop_children();
  persist::Loading& loading = server_.layer<persist::Persistence>().loading();
  if (!received.keep() || !loading.may_load(received.path())) {
    files.remove(received.path());
    return {};
  }
  if (!files.rename(received.path(), place)) {
    log.warning("Failed trying to rename the temp DB into " + name +
                " in MASTER <-> REPLICA synchronization: " + strerror(errno));
    files.remove(received.path());
    return {};
  }
  if (!base::sync_directory_of(place, files)) {
    log.warning("Failed trying to sync DB directory " + name +
                " in MASTER <-> REPLICA synchronization: " + strerror(errno));
    return {};
  }
  log.notice("MASTER <-> REPLICA sync: Loading DB in memory");
  ClosedFile closed(server_.layer<persist::Persistence>().aof());
  empty();
  Result result;
  const auto loaded = loading.load_snapshot(name, {.place = &result.place, .slots = &result.slots});
  result.ok = loaded == Loading::Result::kDone;
  result.dataset_lost = !result.ok;
  if (result.ok) {
    closed.loaded(place);
  } else {
    log.warning(
        "Failed trying to load the MASTER synchronization DB from disk, check server logs.");
    empty();
  }
  remove_sync_file(place);
  return result;
}

void DatasetInstaller::remove_sync_file(const std::string& path) {
  if (!removes_sync_files(server_.settings())) return;
  server_.log().notice(
      "Removing the RDB file obtained from the master. This replica has persistence disabled");
  server_.files().remove(path);
}

DatasetInstaller::Result DatasetInstaller::install(ConnectionSource& source, uint64_t size,
                                                   bool same_history) {
  stop_children();
  server_.log().notice("MASTER <-> REPLICA sync: Loading DB in memory");
  const ClosedFile closed(server_.layer<persist::Persistence>().aof());
  if (server_.settings().repl_diskless_load == ReplDisklessLoad::kSwapdb)
    return load_beside(source, size, same_history);
  return load_over(source, size);
}

DatasetInstaller::Result DatasetInstaller::load_over(ConnectionSource& source, uint64_t size) {
  empty();
  Result result;
  const auto loaded = server_.layer<persist::Persistence>().loading().load_from(
      source, size, {.place = &result.place, .slots = &result.slots});
  if (loaded == Loading::Result::kDone) {
    const LoadingState loading(server_, server::kStateLoading);
    result.ok = source.is_complete();
  }
  if (result.ok) return result;
  result.dataset_lost = true;
  server_.log().warning(
      "Failed trying to load the MASTER synchronization DB from socket, check server logs.");
  empty();
  return result;
}

DatasetInstaller::Result DatasetInstaller::load_beside(ConnectionSource& source, uint64_t size,
                                                       bool same_history) {
  std::vector<std::unique_ptr<store::Keyspace>> loaded;
  for (int i = 0; i < server_.database_count(); ++i) {
    loaded.push_back(std::make_unique<store::Keyspace>(i, server_.environment()));
    if (server_.database(i).slot_index() != nullptr) loaded.back()->index_slots();
  }
  std::vector<std::string> functions;
  Result result;
  const auto ended =
      server_.layer<persist::Persistence>().loading().load_from(source, size,
                                                                {.databases = loaded,
                                                                 .functions = &functions,
                                                                 .serves_old = same_history,
                                                                 .place = &result.place,
                                                                 .slots = &result.slots});
  {
    const LoadingState state(server_,
                             same_history ? server::kStateAsyncLoading : server::kStateLoading);
    result.ok = ended == Loading::Result::kDone && source.is_complete();
    wait_for_other_tasks();
  }
  // The installation may have been cancelled during the wait: then the caller does not take over
  // the dataset's position in the stream, and the dataset must not be swapped in either.
  result.ok = result.ok && !source.is_cut();
  if (result.ok) {
    swap_in(loaded);
    replace_functions(functions);
  } else {
    server_.log().warning(
        "Failed trying to load the MASTER synchronization DB from socket, check server logs.");
    server_.log().notice("MASTER <-> REPLICA sync: Discarding temporary DB in background");
  }
  for (const auto& keyspace : loaded) keyspace->clear(/*lazily=*/true);
  return result;
}

void DatasetInstaller::wait_for_other_tasks() {
  while (server_.tasks().any() && !server_.tasks().finishing()) server_.tasks().yield();
}

void DatasetInstaller::replace_functions(const std::vector<std::string>& codes) {
  server::FunctionLibraries* functions = server_.functions();
  if (functions == nullptr) return;
  for (const std::string& error : functions->replace_all(codes))
    server_.log().warning("Failed creating the library: " + error);
}

void DatasetInstaller::swap_in(std::vector<std::unique_ptr<store::Keyspace>>& loaded) {
  server_.log().notice("MASTER <-> REPLICA sync: Swapping active DB with loaded DB");
  announce_replacement();
  for (const auto& keyspace : loaded) {
    store::Keyspace& own = server_.database(keyspace->index());
    server_.events().swapping(own, *keyspace);
    own.swap(*keyspace);
  }
  server_.events().flushed();
  server_.log().notice("MASTER <-> REPLICA sync: Discarding old DB in background");
}

}  // namespace latchkey::replication
