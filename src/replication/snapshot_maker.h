// Makes the snapshots for full resynchronisations: a child writes the dataset while the server
// continues. An interface, so that tests need no processes and disks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace latchkey::replication {

// The position in the stream that a snapshot records.
struct SnapshotPlace {
  std::string replication_id;
  uint64_t offset = 0;
  int database = -1;  // selected in the stream at that offset, or -1
  bool without_keys = false;
  bool without_functions = false;
};

class SnapshotMaker {
 public:
  // Called in the server's thread when the child has ended.
  using Done = std::function<void(bool ok)>;

  virtual ~SnapshotMaker() = default;
  // Whether any child is running, for any purpose. Only one can.
  virtual bool is_busy() const = 0;
  // All begin to write the present dataset, and return false, with the reason logged, when they
  // cannot; `done` is not called then. REQUIRES: !is_busy().
  //
  // begin_file(): into a file, which is at path() when it is done.
  virtual bool begin_file(const SnapshotPlace& place, Done done) = 0;
  virtual std::string path() const = 0;
  // begin_pipe(): into a socket, whose other end the server reads; `pipe` is closed here on return.
  // The child shuts it down after the last byte, and then lives until the server has closed the
  // other end too: so when `done` is called with true, everything was read.
  virtual bool begin_pipe(const SnapshotPlace& place, int pipe, Done done) = 0;
  // begin_sockets(): to all of these sockets, which do not block and stay open here; the child puts
  // "$EOF:", the mark and an end of line before the dataset, and the mark behind it. A socket that
  // takes nothing for `timeout_ms`, or fails, is shut down; `done` is called with false when that
  // becomes of all of them.
  struct Receivers {
    std::vector<int> sockets;
    std::string mark;
    int timeout_ms = 0;
  };
  virtual bool begin_sockets(const SnapshotPlace& place, Receivers receivers, Done done) = 0;
  // Aborts what any has begun; `done` is called with false.
  virtual void abandon() = 0;
};

}  // namespace latchkey::replication
