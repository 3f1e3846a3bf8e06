// Sinks of a child process that writes to sockets by itself, which its parent has in use as well.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "net/transport_layer.h"
#include "persist/rdb/byte_stream.h"

namespace latchkey::replication {

// Writes to a socket that does not block: waits up to `timeout_ms` for the peer to take more.
// layer: what encrypts the bytes; null: they are sent as they are.
class SocketSink final : public persist::ByteSink {
 public:
  SocketSink(int descriptor, int timeout_ms, net::TransportLayer* layer = nullptr)
      : ByteSink(kBuffer), descriptor_(descriptor), timeout_ms_(timeout_ms), layer_(layer) {}

 private:
  static constexpr size_t kBuffer = 64 << 10;
  int put(std::string_view bytes) override;

  int send_all(std::string_view bytes);

  int descriptor_;
  int timeout_ms_;
  net::TransportLayer* layer_;
};

// Writes the same to several sockets, as fast as the slowest takes it. One that fails is shut down,
// so that the parent sees its end, and left out; the sink fails when none is left.
class SharedSocketSink final : public persist::ByteSink {
 public:
  SharedSocketSink(std::span<const int> descriptors, int timeout_ms);

 private:
  static constexpr size_t kBuffer = 64 << 10;
  int put(std::string_view bytes) override;

  struct Receiver {
    int descriptor;
    std::unique_ptr<SocketSink> sink;
  };
  std::vector<Receiver> receivers_;
};

}  // namespace latchkey::replication
