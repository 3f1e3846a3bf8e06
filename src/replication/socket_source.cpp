#include "replication/socket_source.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace latchkey::replication {

namespace {

// For how long others wait to be served while nothing comes.
constexpr int kSliceMs = 20;

}  // namespace

SocketSource::SocketSource(int descriptor, std::string_view begun, DatasetShape shape,
                           int64_t timeout_ms, std::function<bool()> meanwhile)
    : descriptor_(descriptor),
      begun_(begun),
      shape_(std::move(shape)),
      timeout_ms_(timeout_ms),
      meanwhile_(std::move(meanwhile)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

bool SocketSource::wait() {
  for (int64_t waited_ms = 0; waited_ms < timeout_ms_; waited_ms += kSliceMs) {
    pollfd watched{descriptor_, POLLIN, 0};
    const int ready = poll(&watched, 1, kSliceMs);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (!meanwhile_()) break;
  }
  errno = ETIMEDOUT;
  return false;
}

std::optional<std::string_view> SocketSource::fetch() {
  uint64_t most = step(kBuffer);
  if (!shape_.has_mark()) most = std::min(most, shape_.size - received_);
  if (most == 0) return std::string_view();
  if (!begun_.empty()) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(most, begun_.size()));
    std::copy_n(begun_.begin(), size, buffer_.get());
    begun_.erase(0, size);
    received_ += size;
    return std::string_view(buffer_.get(), size);
  }
  for (;;) {
    const ssize_t count = recv(descriptor_, buffer_.get(), most, 0);
    if (count >= 0) {
      received_ += static_cast<uint64_t>(count);
      return std::string_view(buffer_.get(), static_cast<size_t>(count));
    }
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait()) return std::nullopt;
  }
}

bool SocketSource::ends_well() {
  if (!shape_.has_mark()) {
    // What the file holds besides is not wanted, but stands before the stream.
    uint8_t byte;
    while (offset() < shape_.size && read_byte(&byte)) {
    }
    return ok() && offset() == shape_.size;
  }
  std::string mark(shape_.mark.size(), '\0');
  return read(mark.data(), mark.size()) && mark == shape_.mark && offset() == received_ &&
         begun_.empty();
}

}  // namespace latchkey::replication
