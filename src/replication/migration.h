// MIGRATE: moves keys to another server, and deletes them here after it has restored them.
//
// With tls-cluster connections are encrypted. The server blocks on the other one, each step up to
// the command's timeout. A connection is kept for ten seconds for the next MIGRATE to the same
// place, and opened again if it turns out to be closed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "replication/peer_socket.h"

namespace latchkey::server {
struct CommandContext;
}

namespace latchkey::replication {

struct MigrationOrder;

class Migration {
 public:
  // The handler of MIGRATE.
  void migrate(server::CommandContext& ctx);
  // Closes connections not used for kKeptMs (now_ms: Unix time). To be called now and then.
  void close_idle(int64_t now_ms);
  size_t kept_connections() const { return peers_.size(); }

 private:
  static constexpr int64_t kKeptMs = 10'000;
  static constexpr size_t kMaxKept = 64;

  struct Peer {
    std::unique_ptr<PeerSocket> socket;
    int64_t used_ms = 0;    // Unix time
    int64_t database = -1;  // selected there; -1: unknown
    bool is_fresh = true;   // new: a failure is not due to its age
  };
  enum class Outcome : uint8_t { kDone, kTryAnew };

  // Null when an error has been sent.
  Peer* peer_for(server::CommandContext& ctx, const MigrationOrder& order);
  Outcome attempt(server::CommandContext& ctx, const MigrationOrder& order);

  std::map<std::string, Peer> peers_;  // by "host:port"
};

}  // namespace latchkey::replication
