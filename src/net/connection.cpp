#include "net/connection.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "net/socket_options.h"

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

// Maximum pieces of one write call.
constexpr size_t kMaxPieces = 64;
// And of bytes: of much output a quarter, within these limits. What is sent in several calls costs
// less where the peer empties the socket meanwhile (1 MB: 160 us, 270 in one call), large calls
// save turns (64 MB: 16.7 ms in calls of 4 MB, 18.8 of 512 KB).
constexpr size_t kMinMostSent = 512 * 1024;
constexpr size_t kMaxMostSent = 4 * 1024 * 1024;
// From so many bytes on the rest waits for the next turn, although the socket takes more: a client
// that reads as fast as it is written to would hold up all others.
constexpr size_t kMaxSentInTurn = 4 * 1024 * 1024;

// Kept input up to this size is copied in front of the next read, in the shared buffer, so that
// reads stay large and the connection's own buffer small.
constexpr size_t kMaxMoved = 4 * 1024;
// The smallest size of a connection's own buffer, and the minimum room for a read into it.
constexpr size_t kMinKept = 16 * 1024;
// trim_input() does not shrink a connection's own buffer up to this size while the connection is in
// use.
constexpr size_t kMinTrimmed = 32 * 1024;
// An empty buffer larger than this is freed at once.
constexpr size_t kMaxRetained = 1024 * 1024;
// A large argument is read directly into a buffer of the size it will need. Because the peer may
// have announced a wrong size, memory is reserved at most this far ahead of the bytes that have
// arrived, or so many times as much as has arrived.
constexpr size_t kLargestStep = 8 * 1024 * 1024;
constexpr size_t kMaxGrowth = 8;
// Input becomes a value without being copied if not more than so much of the buffer would be
// wasted.
constexpr size_t kMaxWasted = 4 * 1024;

// Bytes that are encrypted ahead of what the socket takes, and the pieces that they are made of:
// small ones are joined, because each piece makes a record.
constexpr size_t kMaxEncrypted = 64 * 1024;
constexpr size_t kRecord = 16 * 1024;
// From this size on output is not left to the end of the turn: memory and the limits of output go
// by what the socket has not taken.
constexpr size_t kMaxDeferred = 4 * 1024 * 1024;
// What a peer may make a layer answer without reading it.
constexpr size_t kMaxUnreadAnswers = 256 * 1024;

// Whether reset_on_close() was called: the socket itself remembers it.
bool resets_on_close(int socket) {
  linger lingering{};
  socklen_t size = sizeof(lingering);
  return getsockopt(socket, SOL_SOCKET, SO_LINGER, &lingering, &size) == 0 &&
         lingering.l_onoff != 0 && lingering.l_linger == 0;
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

// The front of the buffer, as much as one write call takes. Returns the number of pieces.
size_t gather_for_write(const resp::OutputBuffer& buffer, uv_buf_t (&pieces)[kMaxPieces]) {
  const size_t count = buffer.gather(pieces, kMaxPieces);
  size_t left = std::clamp(buffer.size() / 4, kMinMostSent, kMaxMostSent);
  if (buffer.size() <= left) return count;
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].len >= left) {
      pieces[i].len = left;
      return i + 1;
    }
    left -= pieces[i].len;
  }
  return count;
}

// Writes directly to the socket, because the loop's write(2) takes a longer path through the
// kernel. Returns the bytes taken, or a negated errno.
ssize_t send_pieces(int socket, uv_buf_t* pieces, size_t count) {
  msghdr message{};
  message.msg_iov = reinterpret_cast<iovec*>(pieces);  // a uv_buf_t is an iovec on Unix
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t sent = count == 1 ? send(socket, pieces->base, pieces->len, MSG_NOSIGNAL)
                                    : sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno != EINTR) return -errno;
  }
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

Connection::~Connection() {
  free_input();
}

Connection* Connection::adopt(Loop& loop, int socket, Kind kind,
                              std::optional<int> keepalive_seconds) {
  // Another account may be open when the connection is freed.
  base::HeapAccount::bill_none();
  auto* connection = new Connection(loop, kind);
  connection->inherited_keepalive_ = keepalive_seconds;
  Stream& stream = *connection->stream_;
  const int status =
      kind == Kind::kTcp ? uv_tcp_open(&stream.tcp, socket) : uv_pipe_open(&stream.pipe, socket);
  if (status == 0) return connection;
  connection->close();
  ::close(socket);
  return nullptr;
}

Connection* Connection::make(Loop& loop) {
  return new Connection(loop, Kind::kTcp);
}

int Connection::bind(const sockaddr* address) {
  return uv_tcp_bind(&stream_->tcp, address, 0);
}

int Connection::connect(uv_connect_s* request, const sockaddr* address,
                        void (*done)(uv_connect_s*, int)) {
  return uv_tcp_connect(request, &stream_->tcp, address, done);
}

void Connection::start(ConnectionHandler& handler, int keepalive_seconds) {
  handler_ = &handler;
  if (kind_ == Kind::kTcp && inherited_keepalive_ != keepalive_seconds)
    set_tcp_options(descriptor(), keepalive_seconds);
  resume_reading();
  if (layer_ == nullptr || std::exchange(layer_begun_, true)) return;
  layer_->begin();
  if (!layer_->wire().empty()) flush();
}

void Connection::set_nodelay(bool on) {
  inherited_keepalive_.reset();  // another start() sets all anew
  if (kind_ == Kind::kTcp && !closing_) uv_tcp_nodelay(&stream_->tcp, on ? 1 : 0);
}

void Connection::resume_reading() {
  if (closing_) return;
  reading_ = true;
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
  reading_ = false;
  if (!closing_) uv_read_stop(&stream_->stream);
}

void Connection::pause() {
  output_paused_ = true;
  pause_reading();
}

void Connection::resume() {
  output_paused_ = false;
  resume_reading();
}

void Connection::provide_buffer(char** base, size_t* size) {
  loop_.begin_work();
  if (io_thread_ != 0) [[unlikely]] {
    // Without a buffer libuv does not read, and calls on_read() with UV_ENOBUFS.
    loop_.threaded_io()->readable(*this);
    *base = nullptr;
    *size = 0;
    return;
  }
  if (layer_ != nullptr) [[unlikely]] {
    *base = loop_.wire_buffer();
    *size = Loop::kWireReadSize;
    return;
  }
  provide_room(base, size);
}

// The place for bytes behind the kept input.
void Connection::provide_room(char** base, size_t* size) {
  if (kept_size_ == 0 || (kept_size_ <= kMaxMoved && handler_->wanted_input() <= Loop::kReadSize)) {
    if (kept_size_ > 0) std::memcpy(loop_.read_buffer(), kept_ + kept_start_, kept_size_);
    *base = loop_.read_buffer() + kept_size_;
    *size = Loop::kReadSize - kept_size_;
    return;
  }
  make_room();
  *base = kept_ + kept_start_ + kept_size_;
  *size = kept_capacity_ - kept_start_ - kept_size_;
}

void Connection::on_read(ptrdiff_t count, char* buffer) {
  if (count == 0 || closing_) return;
  if (count == UV_ENOBUFS && readable_place_ != kNotListed) return;
  if (layer_ != nullptr) [[unlikely]]
    return on_wire_read(count, buffer);
  if (count == UV_EOF) return handler_->on_end_of_input();
  if (count < 0) return handler_->on_disconnect();
  received(static_cast<size_t>(count), buffer);
}

void Connection::received(size_t size, char* buffer) {
  count_received(size);
  char* shared = loop_.read_buffer();
  if (buffer != shared + kept_size_) {
    kept_size_ += size;
    most_kept_ = std::max(most_kept_, kept_size_);
    resume_input();
    return;
  }
  deliver_read(shared, size, Loop::kReadSize);
}

void Connection::count_received(size_t size) {
  bytes_received_ += size;
  loop_.counters().bytes_read += size;
  ++loop_.counters().reads;
}

// Hands over `size` bytes that were read behind a copy of the kept input at `front`, in a buffer
// that other connections use as well.
void Connection::deliver_read(char* front, size_t size, size_t capacity) {
  const size_t total = kept_size_ + size;
  const size_t consumed = deliver(front, total, capacity);
  if (closing_) return;
  if (consumed == total) {
    kept_size_ = 0;
  } else {
    keep(front + consumed, total - consumed);
  }
}

void Connection::on_wire_read(ptrdiff_t count, const char* wire) {
  if (input_ended_) return;
  if (count < 0 && count != UV_EOF) {
    if (layer_opened_) return handler_->on_disconnect();
    return handler_->on_handshake_failed(strerror(static_cast<int>(-count)));
  }
  if (count == UV_EOF) {
    layer_->receive_end();
  } else {
    layer_->receive({wire, static_cast<size_t>(count)});
  }
  // The shared buffer has room for all of it; a large argument's own buffer ends where that ends.
  static_assert(Loop::kWireReadSize + TransportLayer::kMaxHeldBytes + kMaxMoved <= Loop::kReadSize);
  using State = TransportLayer::State;
  State state = State::kOpen;
  for (bool full = true; full;) {
    char* room = nullptr;
    size_t capacity = 0;
    provide_room(&room, &capacity);
    size_t size = 0;
    for (size_t more = 1; more > 0 && size < capacity; size += more)
      more = layer_->read(room + size, capacity - size);
    full = size == capacity;
    state = layer_->state();
    const bool open = state == State::kOpen || state == State::kEnded || size > 0;
    if (open && !std::exchange(layer_opened_, true)) {
      handler_->on_secured();
      if (closing_) return;
    }
    flush();
    if (closing_) return;
    if (size > 0) received(size, room);
    if (closing_) return;
  }
  if (count == UV_EOF || state == State::kEnded) {
    input_ended_ = true;
    if (layer_opened_) return handler_->on_end_of_input();
  }
  if (state == State::kFailed || layer_->wire().size() > kMaxUnreadAnswers) failed();
}

// The layer has failed.
void Connection::failed() {
  if (layer_opened_) return handler_->on_disconnect();
  handler_->on_handshake_failed(layer_->reason());
}

size_t Connection::deliver(char* bytes, size_t size, size_t capacity) {
  in_handler_ = true;
  in_hand_size_ = size;
  in_hand_capacity_ = capacity;
  const size_t consumed = handler_->on_input({bytes, size});
  in_handler_ = false;
  if (given_) {
    if (consumed != size && !closing_) take_back_given();
    given_ = {};
  }
  return consumed;
}

void Connection::keep(const char* rest, size_t size) {
  if (kept_capacity_ < size) resize_input(std::max(size, kMinKept));
  std::memcpy(kept_, rest, size);
  kept_start_ = 0;
  kept_size_ = size;
  most_kept_ = std::max(most_kept_, size);
  if (handler_->wanted_input() > kept_capacity_) make_room();
}

void Connection::make_room() {
  const size_t wanted = handler_->wanted_input();
  const size_t spare = kept_capacity_ - kept_start_ - kept_size_;
  const size_t missing = wanted > kept_size_ ? wanted - kept_size_ : 0;
  if (spare >= (missing > 0 ? std::min(missing, Loop::kReadSize) : kMinKept)) return;
  const size_t room = missing > 0
                          ? std::min(missing, std::max(kMaxGrowth * kept_size_, kLargestStep))
                          : kept_size_ / 2;
  if (kept_start_ > 0) {
    std::memmove(kept_, kept_ + kept_start_, kept_size_);
    kept_start_ = 0;
  }
  const size_t needed = kept_size_ + std::max(room, kMinKept);
  if (kept_capacity_ < needed) resize_input(needed);
}

void Connection::resize_input(size_t capacity) {
  if (capacity == 0) return free_input();
  // A blob may be made of it.
  void* const memory = kept_ == nullptr ? nullptr : kept_ - sizeof(base::Blob);
  auto* const resized = static_cast<char*>(std::realloc(memory, sizeof(base::Blob) + capacity));
  if (resized == nullptr) throw std::bad_alloc();
  kept_ = resized + sizeof(base::Blob);
  kept_capacity_ = capacity;
}

void Connection::free_input() {
  if (kept_ != nullptr) std::free(kept_ - sizeof(base::Blob));
  kept_ = nullptr;
  kept_capacity_ = 0;
}

base::Blob* Connection::give_input(std::string_view bytes) {
  constexpr size_t kLineBreak = 2;
  if (!in_handler_ || kept_ == nullptr) return nullptr;
  // Elsewhere it may be in the shared buffer, or be a copy.
  const auto at = reinterpret_cast<uintptr_t>(bytes.data()) - reinterpret_cast<uintptr_t>(kept_);
  const size_t end = at + bytes.size() + kLineBreak;
  if (at >= kept_capacity_ || end != kept_start_ + kept_size_) return nullptr;
  if (at >= base::Blob::kMaxFront || kept_capacity_ - bytes.size() > kMaxWasted) return nullptr;
  base::Blob* const blob = base::Blob::adopt(kept_ - sizeof(base::Blob), at, bytes.size());
  given_ = base::BlobRef(blob);
  const size_t capacity = std::exchange(kept_capacity_, 0);
  kept_ = nullptr;
  // The next argument may be as large. Nothing is written to the room before.
  if (capacity <= kMaxRetained) resize_input(capacity);
  return blob;
}

// The handler wants to see the input again although it was given away.
void Connection::take_back_given() {
  const size_t size = kept_start_ + kept_size_;
  if (kept_capacity_ < size) resize_input(size);
  std::memcpy(kept_, given_.get() + 1, size);
}

void Connection::resume_input() {
  // During on_input() the bytes are returned by its result.
  if (kept_size_ == 0 || closing_ || in_handler_) return;
  const size_t consumed = deliver(kept_ + kept_start_, kept_size_, kept_capacity_);
  if (!closing_) drop_input(consumed);
}

void Connection::drop_input(size_t size) {
  kept_start_ += size;
  kept_size_ -= size;
  if (kept_size_ > 0) return;
  kept_start_ = 0;
  if (kept_capacity_ > kMaxRetained) resize_input(0);
}

void Connection::trim_input(bool idle) {
  const size_t used = std::exchange(most_kept_, kept_size_);
  if (in_handler_ || kept_capacity_ == 0) return;
  size_t capacity = kept_size_;
  if (!idle) {
    // A large argument that is still arriving needs its room.
    if (kept_capacity_ <= kMinTrimmed || kept_capacity_ / 2 <= used || handler_->wanted_input() > 0)
      return;
    capacity = std::max(used, kMinKept);
  }
  if (kept_start_ > 0) std::memmove(kept_, kept_ + kept_start_, kept_size_);
  kept_start_ = 0;
  resize_input(capacity);
}

void Connection::flush() {
  if (closing_) return;
  // What comes now waits, perhaps for long.
  if (writing_ || output_paused_) return out_.leave_pool();
  if (loop_.holds_output()) [[unlikely]]
    return hold();
  if (io_thread_ != 0) [[unlikely]] {
    const size_t unsent = out_.size() + in_flight_.size();
    if (unsent > 0 && unsent < kMaxDeferred) return loop_.threaded_io()->to_send(*this);
  }
  if (layer_ != nullptr) [[unlikely]]
    return flush_layer();
  size_t allowed = kMaxSentInTurn;
  if (drain(in_flight_, &allowed) && drain(out_, &allowed)) return handler_->on_flushed();
  if (in_flight_.empty()) in_flight_.swap(out_);
  wait_to_write();
}

// The same through the layer: only so much is encrypted as the socket may take soon.
void Connection::flush_layer() {
  size_t allowed = kMaxSentInTurn;
  for (;;) {
    if (!drain(in_flight_, &allowed)) return wait_to_write();
    if (layer_->wire().empty()) encrypt_some();
    if (layer_->wire().empty()) break;
    in_flight_.swap(layer_->wire());
  }
  if (out_.empty()) return handler_->on_flushed();
  if (layer_->state() == TransportLayer::State::kFailed && layer_opened_) handler_->on_disconnect();
}

void Connection::encrypt_some() {
  using State = TransportLayer::State;
  if (layer_->state() != State::kOpen && layer_->state() != State::kEnded) return;
  char joined[kRecord];
  while (!out_.empty() && layer_->wire().size() < kMaxEncrypted) {
    uv_buf_t pieces[kMaxPieces];
    const size_t count = out_.gather(pieces, kMaxPieces);
    std::string_view record(pieces[0].base, std::min(pieces[0].len, kRecord));
    if (record.size() < kRecord && count > 1) {
      size_t size = 0;
      for (size_t i = 0; i < count && size < kRecord; ++i) {
        const size_t part = std::min(pieces[i].len, kRecord - size);
        std::memcpy(joined + size, pieces[i].base, part);
        size += part;
      }
      record = {joined, size};
    }
    layer_->write(record);
    loop_.counters().bytes_written += record.size();
    bytes_sent_ += record.size();
    out_.take(record.size());
  }
}

void Connection::count_sent(size_t size) {
  ++loop_.counters().writes;
  // What a layer sends is counted before it is encrypted.
  if (layer_ != nullptr) return;
  loop_.counters().bytes_written += size;
  bytes_sent_ += size;
}

// Tells the peer, if that is possible at once, that this side sends no more.
void Connection::end_layer() {
  if (!layer_opened_ || writing_ || !in_flight_.empty() || !layer_->wire().empty()) return;
  // A connection that is reset ends without a word.
  if (resets_on_close(descriptor())) return;
  layer_->end();
  uv_buf_t pieces[kMaxPieces];
  const size_t count = layer_->wire().gather(pieces, kMaxPieces);
  if (count > 0) send_pieces(descriptor(), pieces, count);
}

void Connection::hold() {
  if (held_place_ != kNotHeld) return;
  held_place_ = loop_.held_.size();
  loop_.held_.push_back(this);
}

void Connection::flush_held() {
  held_place_ = kNotHeld;
  flush();
}

// Sends from the buffer until it is empty, `allowed` bytes at most, or some more of one call. False
// when something is left: the socket takes no more, or has failed. Who flushes is not told of that
// but by the loop, in a later turn, which tries once more.
bool Connection::drain(resp::OutputBuffer& buffer, size_t* allowed) {
  while (!buffer.empty()) {
    if (*allowed == 0) return false;
    uv_buf_t pieces[kMaxPieces];
    const size_t count = gather_for_write(buffer, pieces);
    const ssize_t written = send_pieces(descriptor(), pieces, count);
    if (written < 0) return false;
    const auto sent = static_cast<size_t>(written);
    *allowed -= std::min(*allowed, sent);
    count_sent(sent);
    buffer.take(sent);
  }
  return true;
}

// Passes the front of in_flight_ to the loop, which sends it when the socket is ready.
void Connection::wait_to_write() {
  in_flight_.leave_pool();
  uv_buf_t pieces[kMaxPieces];
  const size_t count = gather_for_write(in_flight_, pieces);
  offered_ = 0;
  for (size_t i = 0; i < count; ++i) offered_ += pieces[i].len;
  writing_ = true;
  stream_->write.data = this;
  const int status = uv_write(&stream_->write, &stream_->stream, pieces,
                              static_cast<unsigned>(count), [](uv_write_t* request, int result) {
                                auto* self = static_cast<Connection*>(request->data);
                                self->loop_.begin_work();
                                self->writing_ = false;
                                if (self->closing_) return;
                                if (result != 0) return self->handler_->on_disconnect();
                                self->count_sent(self->offered_);
                                self->in_flight_.take(self->offered_);
                                self->flush();
                              });
  // libuv refuses only what is closed or cannot be written to.
  LK_ASSERT(status == 0);
}

size_t Connection::pending_output() const {
  size_t pending = out_.size() + in_flight_.size();
  if (layer_ != nullptr) pending += layer_->wire().size();
  return pending - taken_of_write();
}

size_t Connection::taken_of_write() const {
  return writing_ ? offered_ - uv_stream_get_write_queue_size(&stream_->stream) : 0;
}

void Connection::flush_and_close() {
  if (layer_ != nullptr) return close();
  uv_buf_t pieces[kMaxPieces];
  const size_t count = out_.gather(pieces, kMaxPieces);
  if (count > 0) uv_try_write(&stream_->stream, pieces, static_cast<unsigned>(count));
  close();
}

void Connection::reset_on_close() {
  const linger no_lingering{.l_onoff = 1, .l_linger = 0};
  if (!closing_ && kind_ == Kind::kTcp)
    setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &no_lingering, sizeof(no_lingering));
}

void Connection::close() {
  if (closing_) return;
  if (layer_ != nullptr) end_layer();
  send_deferred();
  if (loop_.threaded_io() != nullptr) {
    loop_.threaded_io()->forget(*this);
    use_io_thread(false);
  }
  closing_ = true;
  handler_ = nullptr;
  if (held_place_ != kNotHeld) loop_.held_[held_place_] = nullptr;
  billed_at_close_ = base::HeapAccount::billed();
  uv_close(&stream_->handle,
           [](uv_handle_t* handle) { free_closed(static_cast<Connection*>(handle->data)); });
}

void Connection::free_closed(Connection* connection) {
  base::HeapAccount::bill(connection->billed_at_close_);
  connection->free_input();
  {
    const resp::OutputBuffer out = std::move(connection->out_);
    const resp::OutputBuffer in_flight = std::move(connection->in_flight_);
  }
  base::HeapAccount::bill_none();
  delete connection;
}

// --- With an I/O thread --------------------------------------------------------------------------

void Connection::use_io_thread(bool on) {
  ThreadedIo* const threads = loop_.threaded_io();
  if (threads == nullptr || layer_ != nullptr || on == (io_thread_ != 0)) return;
  LK_ASSERT(!closing_);
  if (on) {
    io_thread_ = threads->assign();
  } else {
    threads->unassign(std::exchange(io_thread_, uint8_t{0}));
  }
}

int Connection::io_thread() const {
  return io_thread_ == 0 ? 0 : loop_.threaded_io()->thread_of(io_thread_);
}

// A large argument is read into the connection's own buffer, all else into a slot.
ThreadedIo::Read Connection::prepare_read(char* slot) {
  ThreadedIo::Read read = {this, descriptor(), slot, ThreadedIo::kSlotSize, true, 0, 0};
  static_assert(ThreadedIo::kSlotFront >= kMaxMoved);
  const bool large = handler_->wanted_input() > ThreadedIo::kSlotSize;
  if (kept_size_ == 0 || (kept_size_ <= kMaxMoved && !large)) return read;
  make_room();
  read.room = kept_ + kept_start_ + kept_size_;
  read.size = kept_capacity_ - kept_start_ - kept_size_;
  read.in_slot = false;
  return read;
}

ssize_t Connection::receive(int socket, char* room, size_t size) {
  for (;;) {
    const ssize_t count = recv(socket, room, size, 0);
    if (count >= 0) return count;
    if (errno != EINTR) return -errno;
  }
}

void Connection::extend_kept(ssize_t size) {
  kept_size_ += static_cast<size_t>(size);
  most_kept_ = std::max(most_kept_, kept_size_);
}

// A handler of the same batch may have closed this connection, or paused it: then what was read is
// kept, and an end of the stream shows again when reading is resumed.
void Connection::finish_read(const ThreadedIo::Read& read) {
  if (closing_ || read.result == -EAGAIN) return;
  if (read.result <= 0) {
    if (!reading_) return;
    pause_reading();
    return read.result == 0 ? handler_->on_end_of_input() : handler_->on_disconnect();
  }
  const auto size = static_cast<size_t>(read.result);
  count_received(size);
  if (read.in_slot && reading_ && kept_size_ <= ThreadedIo::kSlotFront) {
    char* const front = read.room - kept_size_;
    if (kept_size_ > 0) std::memcpy(front, kept_ + kept_start_, kept_size_);
    return deliver_read(front, size, kept_size_ + ThreadedIo::kSlotSize);
  }
  if (read.in_slot) append_kept(read.room, size);
  if (reading_) resume_input();
}

void Connection::append_kept(const char* bytes, size_t size) {
  if (kept_capacity_ - kept_start_ - kept_size_ < size) {
    if (kept_size_ > 0) std::memmove(kept_, kept_ + kept_start_, kept_size_);
    kept_start_ = 0;
    if (kept_capacity_ < kept_size_ + size) resize_input(std::max(kept_size_ + size, kMinKept));
  }
  std::memcpy(kept_ + kept_start_ + kept_size_, bytes, size);
  extend_kept(static_cast<ssize_t>(size));
}

// Whether there is something that may be sent now.
bool Connection::may_send() {
  if (closing_ || writing_ || output_paused_) return false;
  if (loop_.holds_output()) {
    // Replies that must wait may have come behind those that need not.
    hold();
    return false;
  }
  return !in_flight_.empty() || !out_.empty();
}

ssize_t Connection::send_some(int socket, size_t* offered) const {
  uv_buf_t pieces[kMaxPieces];
  size_t count = in_flight_.gather(pieces, kMaxPieces);
  count += out_.gather(pieces + count, kMaxPieces - count);
  *offered = 0;
  for (size_t i = 0; i < count; ++i) *offered += pieces[i].len;
  return send_pieces(socket, pieces, count);
}

void Connection::take_sent(size_t size) {
  count_sent(size);
  const size_t from_first = std::min(size, in_flight_.size());
  in_flight_.take(from_first);
  out_.take(size - from_first);
}

void Connection::finish_send(const ThreadedIo::Send& send) {
  if (closing_) return;
  if (send.result < 0 && send.result != -EAGAIN) return handler_->on_disconnect();
  if (in_flight_.empty() && out_.empty()) return handler_->on_flushed();
  // Another handler may have begun to send meanwhile, or there is more than one write takes.
  if (writing_ || output_paused_) return;
  if (loop_.holds_output() || send.result == static_cast<ssize_t>(send.offered)) return flush();
  if (in_flight_.empty()) in_flight_.swap(out_);
  wait_to_write();
}

void Connection::send_deferred() {
  if (send_place_ == kNotListed || !may_send()) return;
  size_t offered = 0;
  const ssize_t sent = send_some(descriptor(), &offered);
  if (sent > 0) take_sent(static_cast<size_t>(sent));
}

size_t Connection::own_memory() const {
  return sizeof(Connection) + sizeof(Stream) + (layer_ != nullptr ? layer_->memory() : 0);
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
    } else if (uv_tcp_getpeername(&stream_->tcp, reinterpret_cast<sockaddr*>(&address), &size) ==
               0) {
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
    } else if (uv_tcp_getsockname(&stream_->tcp, reinterpret_cast<sockaddr*>(&address), &size) ==
               0) {
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
  return address.starts_with("127.") || address.starts_with("[::1]") ||
         address.starts_with("[::ffff:127.");
}

}  // namespace latchkey::net
