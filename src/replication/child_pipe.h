// A pipe from a forked child. This process reads it and forwards the bytes, because they go to
// several peers or have to be encrypted, at the pace of the slowest receiver.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "net/descriptor_watcher.h"
#include "net/loop.h"

namespace latchkey::replication {

class ChildPipe {
 public:
  // Bytes that may wait in a receiver's output before no more are read.
  static constexpr size_t kMaxPending = 256 * 1024;
  // Bytes forwarded in one turn of the loop; after that other clients are served.
  static constexpr size_t kMaxPerTurn = 8 * 1024 * 1024;

  // Null, with errno set, when the system has no descriptors left. Without a loop it is read by
  // forward() alone.
  static std::unique_ptr<ChildPipe> open(net::Loop* loop);
  ~ChildPipe();
  ChildPipe(const ChildPipe&) = delete;
  ChildPipe& operator=(const ChildPipe&) = delete;

  // The end that the child inherits: a socket, which blocks.
  int child_end() const { return child_end_; }
  // To be called once the child is there, so that its end is seen.
  void close_child_end();
  // In the child: signals the end of the data, and waits until all of it has been read.
  static void end(int child_end);

  // Gives `take` the bytes that have arrived, until there are no more for now, `is_full` returns
  // true, or kMaxPerTurn bytes were given. To be called at the end of each turn. False once all was
  // read, and from then on.
  bool forward(const std::function<bool()>& is_full,
               const std::function<void(std::string_view)>& take);

 private:
  ChildPipe(net::Loop* loop, int end, int child_end);
  void close();

  net::Loop* loop_;
  int end_;  // -1: all was read
  int child_end_;
  std::unique_ptr<net::DescriptorWatcher> watcher_;
  // Keeps the loop from waiting while there is more to read than fits into one turn.
  std::unique_ptr<net::Timer> again_;
};

}  // namespace latchkey::replication
