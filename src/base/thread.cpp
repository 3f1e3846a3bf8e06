#include "base/thread.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/heap_use.h"

namespace latchkey::base {

namespace {

constexpr size_t kLongestName = 15;

}  // namespace

std::thread start_thread(std::string name, std::function<void()> body) {
  name.resize(std::min(name.size(), kLongestName));
  // A new thread inherits the signal mask of its creator.
  sigset_t held_back, before;
  sigfillset(&held_back);
  sigdelset(&held_back, kTraceSignal);
  pthread_sigmask(SIG_SETMASK, &held_back, &before);
  std::thread thread;
  try {
    thread = std::thread([name = std::move(name), body = std::move(body)] {
      pthread_setname_np(pthread_self(), name.c_str());
      const BackgroundHeapUse counted;
      body();
    });
  } catch (const std::system_error&) {
    // The thread could not be started: `thread` stays empty.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace latchkey::base
