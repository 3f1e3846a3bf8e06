// Puts a dataset that a master has sent into the place of the server's own.
//
// A file becomes the dump file and is loaded from there, the old dataset being gone. From the
// socket the old one goes first too, unless repl-diskless-load is swapdb: then the new one is
// loaded beside it, clients are served from the old one meanwhile if both are of the same history,
// and it stays if the new one cannot be had. The append-only file begins anew with what there is in
// the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/dataset_receiver.h"
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
  explicit DatasetInstaller(server::Server& server) : server_(server) {}

  struct Result {
    bool ok = false;
    bool dataset_lost = false;  // the old one is gone, and the new one could not be had
    // What the dataset tells of itself.
    std::optional<server::StreamPlace> place;
  };
  // Both are to be called by a task, which others are served beside.
  Result install(DatasetReceiver& received);
  // `same_history`: the old dataset may be served meanwhile. It goes when nobody is in the middle
  // of a command that works on it.
  Result install(ConnectionSource& source, uint64_t size, bool same_history);

  // Whether a dataset is to be read from the socket, as settings and keys say now.
  bool wants_socket() const;

 private:
  bool is_empty() const;
  void stop_children();
  void empty();
  Result load_over(ConnectionSource& source, uint64_t size);
  Result load_beside(ConnectionSource& source, uint64_t size, bool same_history);
  void swap_in(std::vector<std::unique_ptr<store::Keyspace>>& loaded);
  void replace_functions(const std::vector<std::string>& codes);
  void wait_for_others();
  void remove_sync_file(const std::string& path);

  server::Server& server_;
};

}  // namespace latchkey::replication
