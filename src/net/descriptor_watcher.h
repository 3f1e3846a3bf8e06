// Calls back on the loop when a descriptor that is not a connection, such as a pipe, is readable.
#pragma once

#include <functional>

#include "net/loop.h"

namespace latchkey::net {

class DescriptorWatcher {
 public:
  // Does not own the descriptor, which must stay open until the watcher is destroyed. Makes it
  // non-blocking. Does not start watching.
  DescriptorWatcher(Loop& loop, int descriptor, std::function<void()> on_readable);
  ~DescriptorWatcher();
  DescriptorWatcher(const DescriptorWatcher&) = delete;
  DescriptorWatcher& operator=(const DescriptorWatcher&) = delete;

  // While started, calls back in every turn in which there is data to read, or the end of the file.
  void start();
  void stop();

 private:
  struct Handle;
  Handle* handle_;
};

}  // namespace latchkey::net
