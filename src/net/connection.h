// One client's stream: TCP or unix socket. Owns the socket and the bytes in both directions, and knows nothing of what they
// mean.
//
// Input goes to the handler as it arrives, from a buffer that all connections share; only what the handler leaves (the start
// of a request, or everything while the client waits) is kept here. Output is appended to out() and leaves with flush(): at
// once as far as the socket takes it, the rest when the socket is ready. An idle connection holds no buffer.
//
// A connection lives until close(); it is freed by the loop later, so callers up the stack may still touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "net/loop.h"
#include "resp/output_buffer.h"

namespace latchkey::net {

class Connection;

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // All bytes received and not yet consumed. Returns how many it has done with; the rest is offered again, at the same or
  // another address, with more behind it. May close the connection.
  virtual size_t on_input(std::span<char> bytes) = 0;
  // The size that the input must reach before on_input can make progress, or 0 when it does not know.
  virtual size_t wanted_input() const = 0;
  // The peer has closed, or the stream has failed. The handler is expected to close() it.
  virtual void on_disconnect() = 0;
  // Everything that was queued has left.
  virtual void on_flushed() = 0;
};

class Connection {
 public:
  enum class Kind : uint8_t { kTcp, kUnix };

  // Takes over the connection that waits at `listener` (a uv_stream_t). Null when it has gone already.
  static Connection* accept(Loop& loop, void* listener, Kind kind);

  // From now on `handler` hears of everything. keepalive_seconds 0: no TCP keep-alive probes.
  void start(ConnectionHandler& handler, int keepalive_seconds);

  resp::OutputBuffer& out() { return out_; }
  // Sends as much as the socket takes now; the rest follows by itself.
  void flush();
  // Bytes queued and not yet taken by the kernel.
  size_t pending_output() const;

  // Offers the kept input to the handler again, after it had to leave some.
  void resume_input();
  // Stops and restarts reading from the socket.
  void pause_reading();
  void resume_reading();
  size_t kept_input() const { return kept_size_; }
  size_t input_capacity() const { return kept_capacity_; }
  // Gives spare room of the input buffer back.
  void shrink_input();

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
  struct Stream;
  Connection(Loop& loop, Kind kind);
  ~Connection();
  void on_read(ptrdiff_t count, const char* buffer);
  void keep(std::span<const char> rest);
  void provide_buffer(char** base, size_t* size);
  void write_rest();
  void reserve_input(size_t capacity);

  Loop& loop_;
  ConnectionHandler* handler_ = nullptr;
  std::unique_ptr<Stream> stream_;
  resp::OutputBuffer out_;
  resp::OutputBuffer in_flight_;  // what libuv is sending; not to be touched until it is done
  char* kept_ = nullptr;          // input not consumed yet
  size_t kept_size_ = 0;
  size_t kept_capacity_ = 0;
  Kind kind_;
  bool writing_ = false;
  bool closing_ = false;
  bool in_handler_ = false;
  std::string peer_address_;
  std::string local_address_;
};

}  // namespace latchkey::net
