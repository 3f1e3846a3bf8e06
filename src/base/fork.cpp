#include "base/fork.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

// Of AddressSanitizer's runtime; null in programs without it.
namespace __lsan {
void LockAllocator() __attribute__((weak));
void UnlockAllocator() __attribute__((weak));
}  // namespace __lsan
namespace __sanitizer {
void StackDepotLockAll() __attribute__((weak));
void StackDepotUnlockAll() __attribute__((weak));
}  // namespace __sanitizer

namespace latchkey::base {

pid_t fork_process() {
  std::signal(SIGCHLD, SIG_DFL);
  const bool lock_heap = __lsan::LockAllocator != nullptr && __lsan::UnlockAllocator != nullptr;
  const bool lock_stacks =
      __sanitizer::StackDepotLockAll != nullptr && __sanitizer::StackDepotUnlockAll != nullptr;
  if (lock_heap) __lsan::LockAllocator();
  if (lock_stacks) __sanitizer::StackDepotLockAll();
  const pid_t pid = fork();
  const int error = errno;
  if (lock_stacks) __sanitizer::StackDepotUnlockAll();
  if (lock_heap) __lsan::UnlockAllocator();
  errno = error;
  return pid;
}

}  // namespace latchkey::base
