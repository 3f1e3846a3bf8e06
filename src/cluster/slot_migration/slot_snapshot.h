// The keys of slots as requests, for the node that imports them: functions first, then slot by
// slot, ended by CLUSTER SYNCSLOTS SNAPSHOT-EOF. The format is the reference's.
//
// Only reads the server; runs in a forked child.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "cluster/slot_set.h"
#include "net/transport_layer.h"
#include "persist/byte_stream.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::cluster {

// Writes to a socket that does not block, and which another process may have in use: waits up to
// `timeout_ms` for the peer to take more. layer: what encrypts the bytes; null: they are sent as
// they are.
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

// Writes all of it and flushes the sink; `after_key` is called after each key. False when the sink
// has failed; see its error().
bool write_slot_snapshot(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key);

// The same as Valkey has it: the keys alone, for each database that has any behind a SELECT.
bool write_slot_requests(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key);

}  // namespace latchkey::cluster
