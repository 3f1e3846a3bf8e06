// A blocking connection to another server, plain or through a layer (TLS), with a timeout for each
// step: MIGRATE sends keys through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/transport_layer.h"

namespace latchkey::replication {

class PeerSocket {
 public:
  // Waits up to `timeout_ms` for the connection, and as long for each step of the handshake of
  // `layer`, which is empty for a plain one. Null when the host is unknown or the time is over;
  // a refused connection is found by the first write.
  static std::unique_ptr<PeerSocket> connect(const std::string& host, const std::string& port,
                                             int64_t timeout_ms, const net::LayerMaker& layer = {});
  ~PeerSocket();
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  // Each waits up to `timeout_ms` at a time for the peer. False on failure; timed_out() tells
  // whether that was the timeout.
  bool write(std::string_view bytes, int64_t timeout_ms);
  // The line is without its end. Fails when kLongestLine bytes have none: it is no server of this
  // protocol that sends them.
  static constexpr size_t kLongestLine = 64 * 1024;
  bool read_line(std::string* line, int64_t timeout_ms);
  bool timed_out() const { return timed_out_; }
  // The address and port that it is connected to, when both ends have the same address: then it is
  // one of this machine's. Nothing otherwise.
  struct Place {
    std::string ip;
    int port;
  };
  std::optional<Place> place_at_this_machine() const;

 private:
  explicit PeerSocket(int descriptor) : descriptor_(descriptor) {}
  bool wait(short events, int64_t timeout_ms);
  bool secure(std::unique_ptr<net::TransportLayer> layer, int64_t timeout_ms);
  bool send_all(std::string_view bytes, int64_t timeout_ms);
  bool send_wire(int64_t timeout_ms);
  // Waits for bytes, and appends what they mean to received_.
  bool receive(int64_t timeout_ms);

  int descriptor_;
  bool timed_out_ = false;
  std::string received_;
  std::unique_ptr<net::TransportLayer> layer_;
};

}  // namespace latchkey::replication
