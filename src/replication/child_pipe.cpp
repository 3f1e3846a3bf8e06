#include "replication/child_pipe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace latchkey::replication {

namespace {

constexpr size_t kReadSize = 64 * 1024;

}  // namespace

std::unique_ptr<ChildPipe> ChildPipe::open(net::Loop* loop) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildPipe>(new ChildPipe(loop, ends[0], ends[1]));
}

ChildPipe::ChildPipe(net::Loop* loop, int end, int child_end)
    : loop_(loop), end_(end), child_end_(child_end) {
  if (loop == nullptr) return;
  // Read at the end of the turn.
  watcher_ = std::make_unique<net::DescriptorWatcher>(*loop, end_, [] {});
  watcher_->start();
  again_ = std::make_unique<net::Timer>(*loop, [] {});
}

ChildPipe::~ChildPipe() {
  close();
  close_child_end();
}

void ChildPipe::close() {
  watcher_.reset();
  if (const int end = std::exchange(end_, -1); end >= 0) ::close(end);
}

void ChildPipe::close_child_end() {
  if (const int end = std::exchange(child_end_, -1); end >= 0) ::close(end);
}

void ChildPipe::end(int child_end) {
  shutdown(child_end, SHUT_WR);
  char byte;
  while (read(child_end, &byte, 1) < 0 && errno == EINTR) {
  }
}

bool ChildPipe::forward(const std::function<bool()>& is_full,
                        const std::function<void(std::string_view)>& take) {
  if (end_ < 0) return false;
  for (size_t passed = 0; passed <= kMaxPerTurn; passed += kReadSize) {
    if (is_full()) {
      // The connections call when the slowest has sent some output, unless the loop holds it.
      if (watcher_ != nullptr) watcher_->stop();
      if (loop_ != nullptr && loop_->holds_output()) again_->start(0);
      return true;
    }
    if (watcher_ != nullptr) watcher_->start();
    char bytes[kReadSize];
    const ssize_t count = read(end_, bytes, sizeof bytes);
    if (count < 0) return true;
    if (count == 0) {
      close();
      return false;
    }
    take({bytes, static_cast<size_t>(count)});
  }
  if (again_ != nullptr) again_->start(0);
  return true;
}

}  // namespace latchkey::replication
