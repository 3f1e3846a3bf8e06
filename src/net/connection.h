// One client's stream: TCP or unix socket. Owns the socket and the bytes in both directions, and
// knows nothing of what they mean.
//
// Input goes to the handler as it arrives, from a buffer that all connections share; only what the
// handler leaves (the start of a request, or everything while the client waits) is kept here, in a
// buffer of the connection's own that trim_input() gives back. Output is appended to out() and
// leaves with flush(): at once as far as the socket takes it, the rest when the socket is ready.
//
// A connection lives until close(), which its handler calls and forgets it; it is freed by the loop
// later, so that callers up the stack may still touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/loop.h"
#include "resp/output_buffer.h"

struct sockaddr;
struct uv_connect_s;

namespace latchkey::net {

class Connection;

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // All bytes received and not yet consumed. Returns how many it has done with; the rest is offered
  // again, at the same or another address, with more behind it. May close the connection.
  virtual size_t on_input(std::span<char> bytes) = 0;
  // The size that the input must reach before on_input can make progress, or 0 when it does not
  // know.
  virtual size_t wanted_input() const = 0;
  // The peer will send no more; it may still read. The handler is expected to close() in the end.
  virtual void on_end_of_input() = 0;
  // The stream has failed. The handler is expected to close() it.
  virtual void on_disconnect() = 0;
  // Everything that was queued has left.
  virtual void on_flushed() = 0;
};

class Connection {
 public:
  enum class Kind : uint8_t { kTcp, kUnix };

  // Takes over the connection that waits at `listener` (a uv_stream_t). Null when it has gone
  // already.
  static Connection* accept(Loop& loop, void* listener, Kind kind);

  // One of our own making, over TCP, for the two below: errors are libuv's, 0 is none.
  static Connection* make(Loop& loop);
  int bind(const sockaddr* address);
  int connect(uv_connect_s* request, const sockaddr* address, void (*done)(uv_connect_s*, int));

  // From now on `handler` hears of everything. keepalive_seconds 0: no TCP keep-alive probes.
  void start(ConnectionHandler& handler, int keepalive_seconds);

  // Another hears of it from now on. What is kept is offered by resume_input().
  void set_handler(ConnectionHandler& handler) { handler_ = &handler; }

  resp::OutputBuffer& out() { return out_; }
  // Sends as much as the socket takes now, or when the loop no longer holds output; the rest
  // follows by itself.
  void flush();
  // Bytes queued and not yet taken by the kernel, the memory they occupy, and what of it is not
  // shared with others.
  size_t pending_output() const;
  size_t output_memory() const { return out_.memory_usage() + in_flight_.memory_usage(); }
  size_t own_output_memory() const { return out_.own_memory() + in_flight_.own_memory(); }
  // True while the socket takes no more.
  bool waits_to_write() const { return writing_; }
  // Bytes that have left, and that have come, since the connection began.
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

  // TCP: whether small writes leave at once, as they do unless this says otherwise.
  void set_nodelay(bool on);

  // Offers the kept input to the handler again, after it had to leave some.
  void resume_input();
  // Stops and restarts reading from the socket.
  void pause_reading();
  void resume_reading();
  // The same for both directions: nothing of out() leaves while paused. What the system is sending
  // already goes on.
  void pause();
  void resume();
  // Input that was left, from its start on, for whoever takes it without a handler's help. Valid
  // until the loop's next turn. REQUIRES: not called by on_input().
  std::span<const char> kept_input() const { return {kept_ + kept_start_, kept_size_}; }
  // Drops the first `size` bytes of it.
  void drop_input(size_t size);
  // Input that is kept, or that the handler has in hand just now, and the size of the buffer that
  // it stands in.
  size_t input_size() const { return in_handler_ ? in_hand_size_ : kept_size_; }
  size_t input_capacity() const { return in_handler_ ? in_hand_capacity_ : kept_capacity_; }
  // Memory of the connection itself, and of its own input buffer.
  static size_t own_memory();
  size_t input_memory() const { return kept_capacity_; }
  // Gives room of the input buffer back: all that is spare when the connection is idle, otherwise
  // what is much more than was used since the last call. To be called now and then.
  void trim_input(bool idle);

  // Sends what one write takes, then closes; for a connection that was never started.
  void flush_and_close();
  // Drops what has not been sent and closes; no callback comes any more.
  void close();
  bool closing() const { return closing_; }

  Kind kind() const { return kind_; }
  int descriptor() const;
  // "ip:port", "[ip6]:port", or "path:0" for a unix socket.
  const std::string& peer_address();
  const std::string& local_address();
  // True when the peer is on this machine by its address (or uses a unix socket).
  bool peer_is_local();

 private:
  friend class Loop;
  struct Stream;
  Connection(Loop& loop, Kind kind);
  ~Connection();
  void provide_buffer(char** base, size_t* size);
  void on_read(ptrdiff_t count, char* buffer);
  size_t hand_over(char* bytes, size_t size, size_t capacity);
  void keep(const char* rest, size_t size);
  void make_room();
  void resize_input(size_t capacity);
  static constexpr size_t kNotHeld = static_cast<size_t>(-1);
  bool drain(resp::OutputBuffer& buffer);
  void wait_to_write();
  void hold();
  void flush_held();

  Loop& loop_;
  ConnectionHandler* handler_ = nullptr;
  std::unique_ptr<Stream> stream_;
  resp::OutputBuffer out_;
  // What the socket did not take at once, older than all of out_; not to be touched while writing_.
  resp::OutputBuffer in_flight_;
  size_t offered_ = 0;  // bytes from the front of in_flight_ that the loop is sending
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  // Input not consumed yet: kept_size_ bytes from kept_start_ on.
  char* kept_ = nullptr;
  size_t kept_start_ = 0;
  size_t kept_size_ = 0;
  size_t kept_capacity_ = 0;
  size_t most_kept_ = 0;  // since the last trim_input
  // While in_handler_.
  size_t in_hand_size_ = 0;
  size_t in_hand_capacity_ = 0;
  size_t held_place_ = kNotHeld;  // in the loop's list
  Kind kind_;
  bool writing_ = false;
  bool closing_ = false;
  bool in_handler_ = false;
  bool output_paused_ = false;
  std::string peer_address_;
  std::string local_address_;
};

}  // namespace latchkey::net
