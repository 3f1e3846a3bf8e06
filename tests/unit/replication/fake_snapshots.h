// Snapshots without a child: a test says what they hold, and when they are done.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "replication/snapshot_maker.h"

namespace latchkey::tests {

class FakeSnapshots final : public replication::SnapshotMaker {
 public:
  ~FakeSnapshots() override {
    end_writing();
    unlink(path().c_str());
  }

  // --- For the test -----------------------------------------------------------------------------
  bool fail_to_begin = false;
  int begun = 0;
  int abandoned = 0;
  replication::SnapshotPlace place;  // of the last one

  // The child writes to the pipe, or to the file.
  void write(std::string_view bytes) {
    if (pipe_ >= 0) {
      // Nobody may want it any more, which a child hears in this way too.
      if (::send(pipe_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        std::abort();
    } else {
      file_.append(bytes);
    }
  }
  // It has written all there is to the pipe, and lives on until that has been read. False when it
  // writes to the file.
  bool end_writing() { return pipe_ >= 0 && close(std::exchange(pipe_, -1)) == 0; }
  // The child ends.
  void end(bool ok = true) {
    end_writing();
    std::ofstream(path(), std::ios::binary) << std::exchange(file_, {});
    std::exchange(done_, nullptr)(ok);
  }

  // --- SnapshotMaker ----------------------------------------------------------------------------
  bool is_busy() const override { return done_ != nullptr; }
  bool begin_file(const replication::SnapshotPlace& at, Done done) override {
    return begin(at, std::move(done));
  }
  std::string path() const override {
    return "/tmp/latchkey-fake-snapshot-" + std::to_string(getpid());
  }
  bool begin_pipe(const replication::SnapshotPlace& at, int pipe, Done done) override {
    pipe_ = dup(pipe);
    return begin(at, std::move(done));
  }
  bool begin_sockets(const replication::SnapshotPlace& at, Receivers, Done done) override {
    return begin(at, std::move(done));
  }
  void abandon() override {
    ++abandoned;
    end(false);
  }

 private:
  bool begin(const replication::SnapshotPlace& at, Done done) {
    if (fail_to_begin) return false;
    ++begun;
    place = at;
    done_ = std::move(done);
    return true;
  }

  Done done_;
  int pipe_ = -1;
  std::string file_;
};

}  // namespace latchkey::tests
