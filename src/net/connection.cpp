#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "base/assert.h"

namespace latchkey::net {

struct Connection::Stream {
  union {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
    uv_handle_t handle;
  };
  uv_write_t write;
};

namespace {

// Pieces of one write call.
constexpr size_t kMostPieces = 64;

void set_keepalive(int descriptor, int seconds) {
  const int on = 1;
  if (seconds <= 0 || setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) != 0) return;
  // First probe after the whole time, then three at a third of it: a dead peer is found after twice the time.
  const int interval = std::max(seconds / 3, 1);
  const int probes = 3;
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

std::string format_address(const sockaddr_storage& address) {
  char ip[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    uv_ip4_name(&v4, ip, sizeof(ip));
    return std::string(ip) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  uv_ip6_name(&v6, ip, sizeof(ip));
  return "[" + std::string(ip) + "]:" + std::to_string(ntohs(v6.sin6_port));
}

}  // namespace

Connection::Connection(Loop& loop, Kind kind)
    : loop_(loop),
      stream_(std::make_unique<Stream>()),
      out_(loop.buffer_pool()),
      in_flight_(loop.buffer_pool()),
      kind_(kind) {
  if (kind == Kind::kTcp) {
    uv_tcp_init(loop.handle(), &stream_->tcp);
  } else {
    uv_pipe_init(loop.handle(), &stream_->pipe, 0);
  }
  stream_->handle.data = this;
}

Connection::~Connection() { std::free(kept_); }

Connection* Connection::accept(Loop& loop, void* listener, Kind kind) {
  auto* connection = new Connection(loop, kind);
  if (uv_accept(static_cast<uv_stream_t*>(listener), &connection->stream_->stream) != 0) {
    connection->close();
    return nullptr;
  }
  return connection;
}

void Connection::start(ConnectionHandler& handler, int keepalive_seconds) {
  handler_ = &handler;
  if (kind_ == Kind::kTcp) {
    uv_tcp_nodelay(&stream_->tcp, 1);
    set_keepalive(descriptor(), keepalive_seconds);
  }
  resume_reading();
}

void Connection::resume_reading() {
  if (closing_) return;
  uv_read_start(
      &stream_->stream,
      [](uv_handle_t* handle, size_t, uv_buf_t* buffer) {
        static_cast<Connection*>(handle->data)->provide_buffer(&buffer->base, &buffer->len);
      },
      [](uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
        static_cast<Connection*>(stream->data)->on_read(count, buffer->base);
      });
}

void Connection::pause_reading() {
  if (!closing_) uv_read_stop(&stream_->stream);
}

void Connection::provide_buffer(char** base, size_t* size) {
  loop_.begin_work();
  if (kept_size_ == 0) {
    *base = loop_.read_buffer();
    *size = Loop::kReadSize;
    return;
  }
  constexpr size_t kLeastRoom = 16 * 1024;
  // A large argument is read straight into its place, in a buffer of the size that is known to be needed; whether the peer
  // means it shows as bytes arrive, so memory is committed a step ahead of them only.
  constexpr size_t kLargestStep = 8 * 1024 * 1024;
  const size_t wanted = handler_->wanted_input();
  size_t needed = kept_size_ + kLeastRoom;
  if (wanted > kept_size_) needed = std::min(wanted, std::max(kept_size_ * 2, kept_size_ + kLargestStep));
  if (kept_capacity_ - kept_size_ == 0 || kept_capacity_ < std::min(needed, wanted == 0 ? needed : wanted)) {
    reserve_input(needed);
  }
  *base = kept_ + kept_size_;
  *size = kept_capacity_ - kept_size_;
}

void Connection::reserve_input(size_t capacity) {
  if (capacity <= kept_capacity_) return;
  auto* grown = static_cast<char*>(std::realloc(kept_, capacity));
  if (grown == nullptr) throw std::bad_alloc();
  kept_ = grown;
  kept_capacity_ = capacity;
}

void Connection::on_read(ptrdiff_t count, const char* buffer) {
  if (count == 0 || closing_) return;
  if (count < 0) {
    handler_->on_disconnect();
    return;
  }
  const auto size = static_cast<size_t>(count);
  loop_.counters().bytes_read += size;
  ++loop_.counters().reads;
  if (kept_size_ > 0) {
    kept_size_ += size;
    resume_input();
    return;
  }
  char* bytes = const_cast<char*>(buffer);
  in_handler_ = true;
  const size_t consumed = handler_->on_input({bytes, size});
  in_handler_ = false;
  if (consumed < size && !closing_) keep({bytes + consumed, size - consumed});
}

void Connection::keep(std::span<const char> rest) {
  reserve_input(rest.size());
  std::memcpy(kept_, rest.data(), rest.size());
  kept_size_ = rest.size();
}

void Connection::resume_input() {
  // While the handler has the bytes in hand, they come back by on_input's result.
  if (kept_size_ == 0 || closing_ || in_handler_) return;
  in_handler_ = true;
  const size_t consumed = handler_->on_input({kept_, kept_size_});
  in_handler_ = false;
  if (closing_) return;
  kept_size_ -= consumed;
  if (kept_size_ == 0) {
    std::free(kept_);
    kept_ = nullptr;
    kept_capacity_ = 0;
  } else if (consumed > 0) {
    std::memmove(kept_, kept_ + consumed, kept_size_);
  }
}

void Connection::shrink_input() {
  if (in_handler_ || kept_size_ == 0 || kept_capacity_ == kept_size_) return;
  if (auto* smaller = static_cast<char*>(std::realloc(kept_, kept_size_)); smaller != nullptr) {
    kept_ = smaller;
    kept_capacity_ = kept_size_;
  }
}

void Connection::flush() {
  if (writing_ || closing_) return;
  while (!out_.empty()) {
    uv_buf_t pieces[kMostPieces];
    const size_t count = out_.gather(pieces, kMostPieces);
    size_t offered = 0;
    for (size_t i = 0; i < count; ++i) offered += pieces[i].len;
    const int written = uv_try_write(&stream_->stream, pieces, static_cast<unsigned>(count));
    if (written < 0 && written != UV_EAGAIN) {
      out_.clear();
      handler_->on_disconnect();
      return;
    }
    ++loop_.counters().writes;
    if (written > 0) {
      loop_.counters().bytes_written += static_cast<size_t>(written);
      out_.take(static_cast<size_t>(written));
    }
    if (written < 0 || static_cast<size_t>(written) < offered) {
      write_rest();
      return;
    }
  }
  handler_->on_flushed();
}

void Connection::write_rest() {
  writing_ = true;
  in_flight_.swap(out_);
  std::vector<uv_buf_t> pieces;
  size_t count = kMostPieces;
  do {
    count *= 2;
    pieces.resize(count);
  } while (in_flight_.gather(pieces.data(), count) == count);
  count = in_flight_.gather(pieces.data(), pieces.size());
  stream_->write.data = this;
  const int status = uv_write(&stream_->write, &stream_->stream, pieces.data(), static_cast<unsigned>(count),
                              [](uv_write_t* request, int result) {
                                auto* self = static_cast<Connection*>(request->data);
                                self->writing_ = false;
                                self->loop_.counters().bytes_written += result == 0 ? self->in_flight_.size() : 0;
                                self->in_flight_.clear();
                                if (self->closing_) return;
                                if (result != 0) {
                                  self->handler_->on_disconnect();
                                } else {
                                  self->flush();
                                }
                              });
  if (status != 0) {
    writing_ = false;
    handler_->on_disconnect();
  }
}

size_t Connection::pending_output() const {
  return out_.size() + (writing_ ? uv_stream_get_write_queue_size(&stream_->stream) : 0);
}

void Connection::flush_and_close() {
  uv_buf_t pieces[kMostPieces];
  const size_t count = out_.gather(pieces, kMostPieces);
  uv_try_write(&stream_->stream, pieces, static_cast<unsigned>(count));
  close();
}

void Connection::close() {
  if (closing_) return;
  closing_ = true;
  uv_close(&stream_->handle, [](uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); });
}

int Connection::descriptor() const {
  uv_os_fd_t descriptor = -1;
  uv_fileno(&stream_->handle, &descriptor);
  return descriptor;
}

const std::string& Connection::peer_address() {
  if (peer_address_.empty()) {
    sockaddr_storage address{};
    int size = sizeof(address);
    if (kind_ == Kind::kUnix) {
      char path[sizeof(sockaddr_un::sun_path) + 1];
      size_t length = sizeof(path);
      if (uv_pipe_getsockname(&stream_->pipe, path, &length) != 0) length = 0;
      peer_address_ = std::string(path, length) + ":0";
    } else if (uv_tcp_getpeername(&stream_->tcp, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      peer_address_ = format_address(address);
    } else {
      peer_address_ = "?:0";
    }
  }
  return peer_address_;
}

const std::string& Connection::local_address() {
  if (local_address_.empty()) {
    sockaddr_storage address{};
    int size = sizeof(address);
    if (kind_ == Kind::kUnix) {
      local_address_ = peer_address();
    } else if (uv_tcp_getsockname(&stream_->tcp, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      local_address_ = format_address(address);
    } else {
      local_address_ = "?:0";
    }
  }
  return local_address_;
}

bool Connection::peer_is_local() {
  if (kind_ == Kind::kUnix) return true;
  const std::string& address = peer_address();
  return address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("[::ffff:127.");
}

}  // namespace latchkey::net
