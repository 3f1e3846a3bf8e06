// The replication stream: numbered bytes with a replication id, which replicas receive.
//
// It is this server's own, or a master's (relays()): then the master's bytes are relayed unchanged,
// with its numbers and id, and what this server itself propagates is not part of it. The offset and
// the ids belong to Server (replication_offset() and history()), because others need them as well.
//
// It is written while it is open, which means while there is a backlog. Propagated commands are
// collected until the end of the turn; then flush() gives them to the backlog and to the replicas.
// Costs nothing while it is closed; else a copy of each command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replication/backlog.h"
#include "server/command/propagation.h"
#include "server/replication_history.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::replication {

class Stream final : public server::PropagationSink {
 public:
  // `relays`: it is a master's from the start.
  Stream(server::Server& server, bool relays);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool is_open() const { return backlog_ != nullptr; }
  bool relays() const { return relays_; }
  // Null while it is not open.
  const Backlog* backlog() const { return backlog_.get(); }
  // The number of its last byte.
  uint64_t offset() const;
  // Of its own stream: the selected database, or -1.
  int selected_database() const { return encoder_.database(); }
  // The next command is preceded by a SELECT, for a replica that begins here.
  void select_anew() { encoder_.forget_database(); }

  // Appends the commands since the last call to the backlog, if there are any, and calls `give`
  // with the number of their first byte.
  void flush(const std::function<void(uint64_t first)>& give);
  // Trims the backlog to the current repl-backlog-size.
  void trim();

  // `fn(true)` is called when the stream begins to count bytes (Server::replication_offset),
  // `fn(false)` when it stops, so that another counter can take over.
  void on_counting(std::function<void(bool)> fn) { counting_ = std::move(fn); }

  // Opens it at the current offset. REQUIRES: !is_open().
  void open();
  // The same with a new replication id, for its first replica: earlier offsets are not valid.
  void begin();
  // Closes it: it does not count bytes any more. REQUIRES: flush() was called after the last
  // command.
  void close();
  // Opens it for replicas that the server had when the dataset was saved at `place`. `dropped`:
  // keys (with their databases) that had expired and were not loaded; their deletion is the first
  // command.
  void resume(const server::StreamPlace& place,
              const std::vector<std::pair<int, std::string>>& dropped);

  // The stream is a master's from here on. REQUIRES: flush() was called after the last command.
  void begin_relaying();
  // The stream is this server's own again, with a new id.
  void end_relaying();
  // The dataset is the master's at that offset. With an empty id no replica can continue from
  // there.
  void begin_at(std::string_view id, int64_t offset);
  // Appends whole requests of the master, unchanged.
  void relay(std::string_view bytes);

  // Logs the last bytes of the stream.
  void log_latest() const;

  // server::PropagationSink
  void on_propagated(std::span<const server::PropagatedCommand> unit) override;

 private:
  void count(size_t bytes);
  size_t backlog_size() const;

  server::Server& server_;
  server::PropagationEncoder encoder_;
  std::function<void(bool)> counting_;
  std::string turn_;  // commands since the last flush()
  std::unique_ptr<Backlog> backlog_;
  bool relays_;
};

}  // namespace latchkey::replication
