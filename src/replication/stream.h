// The replication stream as bytes with numbers and a name: what replicas follow.
//
// It is this server's own, or a master's (relays()): then its bytes are handed on as they came,
// under the master's numbers and name, and what happens here besides is nobody else's business. The
// numbers and names themselves are the server's (Server::replication_offset and history), which
// others ask for as well.
//
// It is written while it is open, that is, while there is a backlog. Until the end of the turn what
// happens is collected; then flush() gives it to the backlog and to whoever follows. Costs
// nothing while it is not open; else a copy of each effect.
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
  // `relays`: it is a master's from the beginning.
  Stream(server::Server& server, bool relays) : server_(server), relays_(relays) {}
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool is_open() const { return backlog_ != nullptr; }
  bool relays() const { return relays_; }
  // Null while it is not open.
  const Backlog* backlog() const { return backlog_.get(); }
  // The number of its last byte.
  uint64_t offset() const;
  // Of its own: the database that whoever follows has selected by now, or -1.
  int selected_database() const { return encoder_.database(); }
  // The next effect is preceded by a SELECT, for whoever begins here.
  void select_anew() { encoder_.forget_database(); }

  // Puts what has happened since the last time into the backlog, if that is anything, and has it
  // given on from there: `give` is called with the number of its first byte.
  void flush(const std::function<void(uint64_t first)>& give);
  // Lets the backlog forget what nobody needs any more, as repl-backlog-size says now.
  void trim();

  // `fn(true)` is called when it begins to count bytes (Server::replication_offset), `fn(false)`
  // when it ends to, so that others may.
  void on_counting(std::function<void(bool)> fn) { counting_ = std::move(fn); }

  // Opens it where the numbers have come to. REQUIRES: !is_open().
  void open();
  // The same under a new name, for its first replica: nobody can go on from what was before.
  void begin();
  // Closes it: bytes are no longer counted here. REQUIRES: all is handed on.
  void close();
  // For those who were replicas of the server as it was when the dataset was saved at that place.
  // `dropped`: keys of it, with their databases, that had expired by now and were left out, which
  // is the first thing that has happened since.
  void resume(const server::StreamPlace& place,
              const std::vector<std::pair<int, std::string>>& dropped);

  // From here on it is a master's. REQUIRES: all is handed on.
  void begin_relaying();
  // And is this server's own again, under another name.
  void end_relaying();
  // The dataset is the master's at that place. Without a name nobody can go on from there.
  void begin_at(std::string_view id, int64_t offset);
  // Whole requests of the master's, as they came.
  void relay(std::string_view bytes);

  // Shows in the log what it ends with.
  void log_latest() const;

  // server::PropagationSink
  void on_propagated(std::span<const server::PropagatedCommand> unit) override;

 private:
  void count(size_t bytes);
  size_t backlog_size() const;

  server::Server& server_;
  server::PropagationEncoder encoder_{server::kPropagateToReplicas};
  std::function<void(bool)> counting_;
  std::string turn_;  // what has happened and is not handed on yet
  std::unique_ptr<Backlog> backlog_;
  bool relays_;
};

}  // namespace latchkey::replication
