// Replaces the server's dataset by one that a master has sent.
//
// A file becomes the dump file and is loaded from there, after the old dataset was emptied. From
// the socket the old one is emptied first too, unless repl-diskless-load is swapdb: then the new
// one is loaded beside it, clients are served from the old one meanwhile if both have the same
// history, and the old one stays if loading fails. Until all that the master announced was read, a
// mark behind the dataset included, the server is in the loading state. In the end the append-only
// file is rewritten with the resulting dataset.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replication/dataset_receiver.h"
#include "server/command/slot_gate.h"
#include "server/replication_history.h"
#include "store/keyspace.h"

namespace latchkey::persist {
class ByteSource;
}
namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class ConnectionSource;

class DatasetInstaller {
 public:
  // `on_replacing` is called before the present dataset is emptied or replaced.
  explicit DatasetInstaller(server::Server& server, std::function<void()> on_replacing = {})
      : server_(server), on_replacing_(std::move(on_replacing)) {}

  struct Result {
    bool ok = false;
    bool dataset_lost = false;  // the old one was emptied, and the new one failed to load
    // The replication id, offset and database in the dataset.
    std::optional<server::StreamPlace> place;
    server::DatasetSlots slots = {};
  };
  // Both are to be called in a task; other clients are served meanwhile.
  Result install(DatasetReceiver& received);
  // `same_history`: clients may read the old dataset meanwhile. It is replaced when no other task
  // is in the middle of a command on it.
  Result install(ConnectionSource& source, uint64_t size, bool same_history);

  // Whether a dataset is to be read from the socket, by the current settings and keys.
  bool wants_socket() const;

 private:
  bool is_empty() const;
  void stop_children();
  void empty();
  void announce_replacement();
  Result load_over(ConnectionSource& source, uint64_t size);
  Result load_beside(ConnectionSource& source, uint64_t size, bool same_history);
  void swap_in(std::vector<std::unique_ptr<store::Keyspace>>& loaded);
  void replace_functions(const std::vector<std::string>& codes);
  void wait_for_other_tasks();
  void remove_sync_file(const std::string& path);

  server::Server& server_;
  std::function<void()> on_replacing_;
};

}  // namespace latchkey::replication
