// MIGRATE: keys that move to another server, which restores them before they go here.
//
// The server waits for the other one, each step up to the command's timeout. A connection that
// worked is kept for ten seconds, for whoever moves keys to the same place next, and tried anew
// when it turns out to have been closed meanwhile.
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
  // The command's handler.
  void migrate(server::CommandContext& ctx);
  // Closes what was not used for too long by now (Unix time). To be called now and then.
  void close_idle(int64_t now_ms);
  size_t kept_connections() const { return peers_.size(); }

 private:
  static constexpr int64_t kKeptMs = 10'000;
  static constexpr size_t kMaxKept = 64;

  struct Peer {
    std::unique_ptr<PeerSocket> socket;
    int64_t used_ms = 0;    // Unix time
    int64_t database = -1;  // that is selected there; -1: not known
    bool is_fresh = true;   // not proven yet: a failure has other reasons than age
  };
  enum class Outcome : uint8_t { kDone, kTryAnew };

  // Null with the error sent.
  Peer* peer_for(server::CommandContext& ctx, const MigrationOrder& order);
  Outcome attempt(server::CommandContext& ctx, const MigrationOrder& order);

  std::map<std::string, Peer> peers_;  // by "host:port"
};

}  // namespace latchkey::replication
