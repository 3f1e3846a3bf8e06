// TransportLayer: a layer between a connection and its socket that encrypts the bytes, as TLS does
// (src/tls). It has no socket and never waits: the connection gives it the bytes that the socket
// has received, and sends the bytes that it appends to wire().
//
//     received bytes -> receive() -> read() -> bytes for the handler
//     bytes to send  -> write()   -> wire() -> bytes for the socket
//
// Not thread-safe. A function that fails leaves the layer in State::kFailed with the cause in
// reason(); wire() may then hold an alert, which should still be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resp/output_buffer.h"

namespace latchkey::net {

class TransportLayer {
 public:
  enum class State : uint8_t {
    kHandshake,  // neither write() nor read() of the peer's bytes is possible yet
    kOpen,
    kEnded,   // the peer has said that it sends no more; write() is still possible
    kFailed,  // nothing more is possible
  };

  virtual ~TransportLayer() = default;

  virtual State state() const = 0;
  // Starts the handshake of the side that connects; to be called once, before all others.
  virtual void begin() = 0;
  // Takes all of `bytes`, which were received from the peer, and does not keep a reference to them.
  // Every call must be followed by calls of read() until one returns 0.
  virtual void receive(std::span<const char> bytes) = 0;
  // The stream has ended: the layer fails unless the peer has ended it before.
  virtual void receive_end() = 0;
  // Writes up to `size` of the peer's bytes to `room`, and returns their number. 0: more must be
  // received first, or see state(). Of N bytes received come at most N + kMaxHeldBytes
  // bytes.
  virtual size_t read(char* room, size_t size) = 0;
  static constexpr size_t kMaxHeldBytes = 16 * 1024;
  // Appends the bytes to wire(), encrypted. REQUIRES: state() is kOpen or kEnded.
  virtual void write(std::string_view bytes) = 0;
  // Appends to wire() that this side sends no more; without effect where write() is not possible.
  virtual void end() = 0;
  // What is to be sent to the peer. The caller takes it.
  virtual resp::OutputBuffer& wire() = 0;

  // Why the layer has failed, as the cryptographic library words it.
  virtual const std::string& reason() const = 0;
  // The common name (CN) in the peer's certificate, whole, be there zeros in it; empty without a
  // certificate.
  virtual std::string peer_name() const = 0;
  // The URIs among the alternative names of the peer's certificate, in its order.
  virtual std::vector<std::string> peer_uris() const = 0;
  // Bytes of memory, without wire() and the memory of the cryptographic library, which is not
  // known.
  virtual size_t memory() const = 0;
};

// Makes the layer of an outgoing connection to `host` (a name or an address). An empty function: no
// layer is wanted.
using LayerMaker = std::function<std::unique_ptr<TransportLayer>(const std::string& host)>;

}  // namespace latchkey::net
