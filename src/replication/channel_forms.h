// The two forms of full resynchronisation by an RDB channel: Redis's (8.0, `repl-rdb-channel`) and
// Valkey's dual channel replication (8.0, `dual-channel-replication-enabled`); handshake.h has the
// messages. Latchkey as itself knows both, and a master prefers Redis's with a replica that offers
// both; a server that emulates a release knows that release's.
#pragma once

#include "server/emulation/edition.h"

namespace latchkey::replication {

inline bool knows_rdb_channel(const server::Edition& edition) {
  return edition.has({8, 0});
}
inline bool knows_dual_channel(const server::Edition& edition) {
  return edition.has(server::kNever, {8, 0});
}

}  // namespace latchkey::replication
