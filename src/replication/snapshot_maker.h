// Where full resynchronisations get the dataset from: a child that writes it while the server goes
// on. An interface, so that tests can go without processes and disks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace latchkey::replication {

// What a snapshot is to say of its place in the stream.
struct SnapshotPlace {
  std::string replication_id;
  uint64_t offset = 0;
  int database = -1;  // that the stream has selected there, or -1
  bool without_keys = false;
  bool without_functions = false;
};

class SnapshotMaker {
 public:
  // Called in the server's turn when the child has ended.
  using Done = std::function<void(bool ok)>;

  virtual ~SnapshotMaker() = default;
  // Whether a child is at work, whoever began it. Only one can be.
  virtual bool is_busy() const = 0;
  // Both begin to write the dataset as it is now, and return false, with the reason logged, when
  // they cannot; `done` is not called then. REQUIRES: !is_busy().
  //
  // Into a file that is at path() when it is done.
  virtual bool begin_file(const SnapshotPlace& place, Done done) = 0;
  virtual std::string path() const = 0;
  // Into a socket, whose other end the server reads; it closes this one when this returns. The
  // child shuts it down when it has written all, and then lives until the server has closed the
  // other end too: so when `done` is called with true, everything has been read.
  virtual bool begin_pipe(const SnapshotPlace& place, int pipe, Done done) = 0;
  // Gives up what was begun with either; `done` is called with false.
  virtual void abandon() = 0;
};

}  // namespace latchkey::replication
