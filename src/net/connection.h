// A client's stream: TCP or unix socket. Owns the socket and the bytes in both directions, and does
// not interpret them.
//
// Input goes to the handler as it arrives, from a buffer that all connections share; only bytes
// that the handler leaves (the start of a request, or everything while the client is blocked) are
// copied to the connection's own buffer, which trim_input() shrinks. Output is appended to out()
// and sent by flush(): as much as the socket takes at once, the rest when the socket is ready.
//
// A TransportLayer (TLS) may stand between the connection and its socket. Then the input that the
// handler sees and the output it appends are the plain bytes; the layer's handshake runs by itself
// once reading has started, and output waits in out() until it is over. A connection without a
// layer pays the test of a pointer for each read and each flush().
//
// A connection that uses an I/O thread (net/threaded_io.h) is read once for each turn of the loop,
// and flush() leaves the sending to the end of the turn; its callbacks come on the loop's thread.
//
// A connection lives until its handler calls close() and drops its pointer; the loop frees it
// later, so that callers up the stack may still touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/blob.h"
#include "base/heap_account.h"
#include "net/loop.h"
#include "net/threaded_io.h"
#include "net/transport_layer.h"
#include "resp/output_buffer.h"

struct sockaddr;
struct uv_connect_s;

namespace latchkey::net {

class Connection;

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // Called with all bytes received and not yet consumed. Returns how many it has consumed; the rest
  // is offered again, at the same or another address, with more bytes behind it. May close the
  // connection.
  virtual size_t on_input(std::span<char> bytes) = 0;
  // The size that the input must reach before on_input() can make progress; 0 when not known.
  virtual size_t wanted_input() const = 0;
  // The peer will send no more, but may still read. The handler must close() eventually.
  virtual void on_end_of_input() = 0;
  // The stream has failed. The handler must close() it.
  virtual void on_disconnect() = 0;
  // All queued output has been sent.
  virtual void on_flushed() = 0;
  // The handshake of the connection's layer is over. May close the connection.
  virtual void on_secured() {}
  // The handshake has failed, or the stream during it. The handler must close() the connection.
  virtual void on_handshake_failed(const std::string& reason) {
    (void)reason;
    on_disconnect();
  }
};

class Connection {
 public:
  enum class Kind : uint8_t { kTcp, kUnix };

  // Takes ownership of a connected socket, whose options of set_tcp_options() are set already if
  // `keepalive_seconds` says which. Null when the loop has no place for it.
  static Connection* adopt(Loop& loop, int socket, Kind kind, std::optional<int> keepalive_seconds);

  // Creates an outgoing TCP connection for bind() and connect(), which return libuv errors or 0.
  static Connection* make(Loop& loop);
  int bind(const sockaddr* address);
  int connect(uv_connect_s* request, const sockaddr* address, void (*done)(uv_connect_s*, int));

  // Puts a layer between the connection and its socket. REQUIRES: not started.
  void secure(std::unique_ptr<TransportLayer> layer) {
    LK_ASSERT(handler_ == nullptr);
    layer_ = std::move(layer);
  }
  // Null when there is none.
  const TransportLayer* layer() const { return layer_.get(); }
  // For a child process that writes to the socket by itself. The layer of this process does not
  // know of what the child has written: nothing more may be sent here, and closing sends the peer
  // nothing that it could read.
  TransportLayer* layer() { return layer_.get(); }
  // Whether a layer's handshake is not over yet.
  bool in_handshake() const {
    return layer_ != nullptr && layer_->state() == TransportLayer::State::kHandshake;
  }

  // Starts reading, and the handshake of the layer; from here on `handler` gets all callbacks. May
  // be called again, to give the connection to another handler. keepalive_seconds 0: no TCP
  // keep-alive probes.
  void start(ConnectionHandler& handler, int keepalive_seconds);

  // Replaces the handler. resume_input() offers it the kept input.
  void set_handler(ConnectionHandler& handler) { handler_ = &handler; }

  resp::OutputBuffer& out() { return out_; }
  // Sends as much as the socket takes, or waits for Loop::release_output() if the loop holds
  // output; the rest follows when the socket is ready. With an I/O thread it sends before the loop
  // waits, or at once if there is much. When the stream has failed, the loop calls on_disconnect()
  // in a later turn: the connection and its handler are there when this returns. Only a layer that
  // cannot encrypt any more has on_disconnect() called at once.
  void flush();
  // Sends at once what flush() has left to the end of the turn, as far as the socket takes it;
  // without callbacks.
  void send_deferred();

  // Chooses the I/O thread with the fewest connections for the socket calls of this connection, or
  // (`on` false) none. Of no effect if the loop has no such threads, or the connection has a layer.
  // REQUIRES: not closing.
  void use_io_thread(bool on);
  // The number of that thread; 0 without one.
  int io_thread() const;
  // Bytes queued and not yet taken by the kernel, the memory they occupy, and the part of it that
  // is not shared with others.
  size_t pending_output() const;
  size_t output_memory() const { return out_.memory_usage() + in_flight_.memory_usage(); }
  size_t own_output_memory() const { return out_.own_memory() + in_flight_.own_memory(); }
  // True while the socket takes no more bytes.
  bool waits_to_write() const { return writing_; }
  // Bytes sent and received since the connection began; without what a layer adds.
  uint64_t bytes_sent() const { return bytes_sent_ + (layer_ == nullptr ? taken_of_write() : 0); }
  uint64_t bytes_received() const { return bytes_received_; }

  // Whether small writes on a TCP socket are sent at once, which is the default.
  void set_nodelay(bool on);

  // Offers the kept input to the handler again.
  void resume_input();
  // Stops and restarts reading from the socket.
  void pause_reading();
  void resume_reading();
  // Pauses both directions: nothing of out() is sent while paused, except what the system is
  // already sending.
  void pause();
  void resume();
  // Input that was not consumed, for code that takes it without a handler. Valid until the loop's
  // next turn. REQUIRES: not called by on_input().
  std::span<const char> kept_input() const {
    LK_ASSERT(!in_handler_);
    return {kept_ + kept_start_, kept_size_};
  }
  // Drops the first `size` bytes of kept_input().
  void drop_input(size_t size);
  // Size of the input that is kept or being handled in on_input(), and of the buffer that holds it.
  size_t input_size() const { return in_handler_ ? in_hand_size_ : kept_size_; }
  size_t input_capacity() const { return in_handler_ ? in_hand_capacity_ : kept_capacity_; }
  // Memory of the connection itself, and of its own input buffer.
  size_t own_memory() const;
  size_t input_memory() const { return kept_capacity_; }
  // A blob of these bytes, which are large, of the input that is being handled: the connection's
  // own buffer with everything in it, which stays valid until on_input() returns. Null when the
  // bytes are not nearly all of that buffer, or anything but a line break follows them.
  base::Blob* give_input(std::string_view bytes);
  // Shrinks the connection's own input buffer: by all spare room when the connection is idle,
  // otherwise if it is much larger than what was used since the last call. Callers must call this
  // regularly.
  void trim_input(bool idle);

  // Sends as much as one write takes, then closes; for a connection that was never started. Through
  // a layer nothing can be sent then.
  void flush_and_close();
  // Has close() reset the connection (TCP RST) instead of ending the stream. Of no effect on unix
  // sockets.
  void reset_on_close();
  // Drops unsent output and closes; no more callbacks follow.
  void close();
  bool closing() const { return closing_; }

  Kind kind() const { return kind_; }
  int descriptor() const;
  // "ip:port", "[ip6]:port", or "path:0" for a unix socket.
  const std::string& peer_address();
  const std::string& local_address();
  // Whether the peer is on this machine by its address (or uses a unix socket).
  bool peer_is_local();

 private:
  friend class Loop;
  friend class ThreadedIo;
  struct Stream;
  Connection(Loop& loop, Kind kind);
  ~Connection();
  void provide_buffer(char** base, size_t* size);
  void provide_room(char** base, size_t* size);
  void on_read(ptrdiff_t count, char* buffer);
  void on_wire_read(ptrdiff_t count, const char* wire);
  void failed();
  void end_layer();
  void received(size_t size, char* buffer);
  void count_received(size_t size);
  void deliver_read(char* front, size_t size, size_t capacity);
  size_t deliver(char* bytes, size_t size, size_t capacity);
  void keep(const char* rest, size_t size);
  void make_room();
  void resize_input(size_t capacity);
  void free_input();
  void take_back_given();
  static constexpr size_t kNotHeld = static_cast<size_t>(-1);
  static constexpr size_t kNotListed = static_cast<size_t>(-1);
  bool drain(resp::OutputBuffer& buffer, size_t* allowed);
  void flush_layer();
  void encrypt_some();
  void count_sent(size_t size);
  // Of what the loop is sending, the bytes that the socket has taken.
  size_t taken_of_write() const;
  void wait_to_write();
  void hold();
  void flush_held();
  // For ThreadedIo. `slot`: kSlotSize bytes, with kSlotFront bytes of room before them.
  ThreadedIo::Read prepare_read(char* slot);
  void extend_kept(ssize_t size);
  void finish_read(const ThreadedIo::Read& read);
  void append_kept(const char* bytes, size_t size);
  bool may_send();
  void take_sent(size_t size);
  void finish_send(const ThreadedIo::Send& send);
  // Called by I/O threads. recv(), and one write of what there is; `*offered` is the number of
  // bytes that were given to it. Both return bytes or a negated errno.
  static ssize_t receive(int socket, char* room, size_t size);
  ssize_t send_some(int socket, size_t* offered) const;
  static void free_closed(Connection* connection);

  Loop& loop_;
  ConnectionHandler* handler_ = nullptr;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<TransportLayer> layer_;
  resp::OutputBuffer out_;
  // Output that the socket did not take at once; it precedes everything in out_. Must not be
  // changed while writing_. With a layer: its wire bytes.
  resp::OutputBuffer in_flight_;
  size_t offered_ = 0;  // bytes from the front of in_flight_ that the loop is sending
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  // Unconsumed input: kept_size_ bytes from kept_start_ on.
  char* kept_ = nullptr;
  size_t kept_start_ = 0;
  size_t kept_size_ = 0;
  size_t kept_capacity_ = 0;
  size_t most_kept_ = 0;  // since the last trim_input
  base::BlobRef given_;   // what give_input() has made of kept_, until on_input() returns
  // Valid while in_handler_.
  size_t in_hand_size_ = 0;
  size_t in_hand_capacity_ = 0;
  size_t held_place_ = kNotHeld;  // index in the loop's list
  // Indices in the lists of ThreadedIo.
  size_t readable_place_ = kNotListed;
  size_t send_place_ = kNotListed;
  std::optional<int> inherited_keepalive_;     // seconds; only TCP sockets that were accepted
  base::HeapAccount::Id billed_at_close_ = 0;  // the account that its buffers are freed for
  Kind kind_;
  uint8_t io_thread_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool in_handler_ = false;
  bool output_paused_ = false;
  bool input_ended_ = false;  // on_end_of_input() was called for the layer's end
  bool layer_begun_ = false;
  bool layer_opened_ = false;  // the handshake is over
  std::string peer_address_;
  std::string local_address_;
};

}  // namespace latchkey::net
