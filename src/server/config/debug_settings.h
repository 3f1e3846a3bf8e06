// What DEBUG changes about a running server, for those it concerns to read. Tests of the server use
// them; nobody else should.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latchkey::server {

// Where a synchronization stops the whole process (SIGSTOP), until somebody lets it go on.
enum class ReplicationPause : uint8_t {
  kNone,
  kAfterFork,         // a master, when the child that writes the dataset has begun
  kBeforeRdbChannel,  // a replica, before it connects for the dataset
  kOnStreaming,       // a replica, while it applies what has come beside the dataset
};

struct DebugSettings {
  // QUICKLIST-PACKED-THRESHOLD: list elements of this many bytes and more get a node of their own.
  // 0: those that are larger than a node.
  size_t quicklist_packed_threshold = 0;
  // SET-DISABLE-DENY-SCRIPTS: scripts may call commands that are denied to them.
  bool scripts_may_call_denied = false;
  // SET-SKIP-CHECKSUM-VALIDATION: checksums of files and dumps are not looked at.
  bool skip_checksums = false;
  // PFDEBUG SIMD: dense HyperLogLogs are merged eight registers at a time.
  bool merge_eight_registers = true;
  // REPL-PAUSE.
  ReplicationPause replication_pause = ReplicationPause::kNone;
};

}  // namespace latchkey::server
