// The state of the master's stream, owned by the client that executes its requests.
//
// Applied requests are relayed to this server's own replicas, whole transactions at a time, so that
// no replica is left within one when the link breaks. The master is sent the offset every second,
// and at once when it asks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/client/master_link.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::replication {

class Replication;

class MasterSession final : public server::MasterLink {
 public:
  // `on_closing` is called when the client closes. All must outlive the session.
  MasterSession(server::Client& client, Replication& replication,
                std::function<void(MasterSession&)> on_closing);

  server::Client& client() { return client_; }
  // Whether everything that the master sent was applied: nothing was lost.
  bool is_in_sync() const { return is_in_sync_; }
  // Whether the master has offsets.
  bool counts() const { return counts_; }
  void set_counts(bool counts) { counts_ = counts; }
  // The offset received, applied or not.
  int64_t read_offset() const;
  int64_t last_io_ms() const;
  uint64_t bytes_received() const;

  // REPLCONF ACK.
  void acknowledge();
  // Sends REPLCONF ACK after the current request, which asks for it.
  void acknowledge_soon() { acknowledge_soon_ = true; }

  // The master has sent its clock, so it understands REPLCONF CLOCK ? (clock_sync.h).
  void clock_received() { clock_received_ = true; }
  // Asks the master to write its clock to the stream. Does nothing if the master has never sent it.
  void request_clock();

  // server::MasterLink
  void applied(std::string_view bytes) override;
  void failed(std::string_view text) override;
  void desynchronized(std::string_view reason) override;
  void closing() override;

 private:
  server::Client& client_;
  Replication& replication_;
  std::function<void(MasterSession&)> on_closing_;
  std::string transaction_;  // bytes of an incomplete transaction
  bool is_in_sync_ = true;
  bool counts_ = true;
  bool acknowledge_soon_ = false;
  bool clock_received_ = false;
};

}  // namespace latchkey::replication
