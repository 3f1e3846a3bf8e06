// Calls back on the loop when a descriptor that is no connection can be read: a pipe.
#pragma once

#include <functional>

#include "net/loop.h"

namespace latchkey::net {

class DescriptorWatcher {
 public:
  // Does not own the descriptor, which must stay open until the watcher has gone. Sets it not to
  // block. Not started yet.
  DescriptorWatcher(Loop& loop, int descriptor, std::function<void()> on_readable);
  ~DescriptorWatcher();
  DescriptorWatcher(const DescriptorWatcher&) = delete;
  DescriptorWatcher& operator=(const DescriptorWatcher&) = delete;

  // Between the two it calls back in every turn in which there is something to read, or the end.
  void start();
  void stop();

 private:
  struct Handle;
  Handle* handle_;
};

}  // namespace latchkey::net
