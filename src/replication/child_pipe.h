// What a forked child writes and this process passes on, because the bytes go to several peers or
// have to be encrypted: read at the pace of the slowest that receives them.
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
  // Bytes passed on in one turn of the loop; after that others are served.
  static constexpr size_t kMaxPerTurn = 8 * 1024 * 1024;

  // Null, with errno set, when the system has no descriptors left. Without a loop it is read by
  // pass_on() alone.
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

  // Hands over what there is, until nothing is left for now, somebody's output is full or it is
  // others' turn. To be called at the end of each turn. False once all was read, and from then on.
  bool pass_on(const std::function<bool()>& is_full,
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
