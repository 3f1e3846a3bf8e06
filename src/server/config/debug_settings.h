// Settings that DEBUG changes in a running server, read by the code they concern. Only tests of the
// server use them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::server {

// Points at which a synchronization stops the whole process (SIGSTOP), until SIGCONT.
enum class ReplicationPause : uint8_t {
  kNone,
  kAfterFork,         // a master, when the child that writes the dataset has begun; a replica, when
                      // Valkey's form of the RDB channel announces it
  kBeforeRdbChannel,  // a replica, before it connects for the dataset
  kOnStreaming,       // a replica, while it applies the stream buffered during the sync
};

struct DebugSettings {
  // QUICKLIST-PACKED-THRESHOLD: list elements of at least this many bytes get a node of their own.
  // 0: elements that are larger than a node.
  size_t quicklist_packed_threshold = 0;
  // SET-DISABLE-DENY-SCRIPTS: scripts may call DEBUG, CLIENT LIST and CLIENT INFO. The reference
  // allows them all other commands as well.
  bool scripts_may_debug = false;
  // CLIENT-ENFORCE-REPLY-LIST: a client that has not logged in is closed when it leaves a reply
  // unread.
  bool enforce_reply_list = false;
  // SET-SKIP-CHECKSUM-VALIDATION: checksums of files and dumps are not verified.
  bool skip_checksums = false;
  // PFDEBUG SIMD: dense HyperLogLogs are merged eight registers at a time.
  bool merge_eight_registers = true;
  // REPL-PAUSE.
  ReplicationPause replication_pause = ReplicationPause::kNone;
  // DELAY-RDB-CLIENT-FREE-SECONDS: for how many seconds the stream is held for a replica that has
  // its dataset from an RDB channel (Valkey's form), and has not asked for the stream.
  int64_t rdb_channel_grace_s = 60;
};

}  // namespace latchkey::server
