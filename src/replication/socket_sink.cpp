#include "replication/socket_sink.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "resp/output_buffer.h"

namespace latchkey::replication {

int SocketSink::put(std::string_view bytes) {
  if (layer_ == nullptr) return send_all(bytes);
  layer_->write(bytes);
  resp::OutputBuffer& wire = layer_->wire();
  while (!wire.empty()) {
    std::string_view piece;
    wire.gather(&piece, 1);
    if (const int error = send_all(piece); error != 0) return error;
    wire.take(piece.size());
  }
  return layer_->state() == net::TransportLayer::State::kFailed ? EPROTO : 0;
}

int SocketSink::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return errno;
    pollfd waiting{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    const int ready = poll(&waiting, 1, timeout_ms_);
    if (ready == 0) return ETIMEDOUT;
    if (ready < 0 && errno != EINTR) return errno;
  }
  return 0;
}

SharedSocketSink::SharedSocketSink(std::span<const int> descriptors, int timeout_ms)
    : ByteSink(kBuffer) {
  for (const int descriptor : descriptors)
    receivers_.push_back({descriptor, std::make_unique<SocketSink>(descriptor, timeout_ms)});
}

int SharedSocketSink::put(std::string_view bytes) {
  int error = EPIPE;
  std::erase_if(receivers_, [&](const Receiver& receiver) {
    if (receiver.sink->write(bytes) && receiver.sink->flush()) return false;
    error = receiver.sink->error();
    shutdown(receiver.descriptor, SHUT_RDWR);
    return true;
  });
  return receivers_.empty() ? error : 0;
}

}  // namespace latchkey::replication
