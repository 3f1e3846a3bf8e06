// The stream of the master that this server follows: what is kept with the client that its requests
// come from.
//
// What has been applied is handed on to the stream's own followers, whole transactions at a time,
// so that nobody ends in the middle of one when the link breaks. The master is told every second
// how far this has come, and at once when it asks.
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
  // `on_closing` is told when the client closes. All must outlive it.
  MasterSession(server::Client& client, Replication& replication,
                std::function<void(MasterSession&)> on_closing);

  server::Client& client() { return client_; }
  // Whether what has been applied is what the master has sent: nothing was lost.
  bool in_step() const { return in_step_; }
  // Whether the master counts what it sends.
  bool counts() const { return counts_; }
  void set_counts(bool counts) { counts_ = counts; }
  // What has come of the stream, applied or not.
  int64_t read_offset() const;
  int64_t last_io_ms() const;
  uint64_t bytes_received() const;

  // REPLCONF ACK.
  void acknowledge();
  // The same behind the request that is being run, which asks for it.
  void acknowledge_soon() { acknowledge_soon_ = true; }

  // server::MasterLink
  void applied(std::string_view bytes) override;
  void failed(std::string_view text) override;
  void desynchronized(std::string_view reason) override;
  void closing() override;

 private:
  server::Client& client_;
  Replication& replication_;
  std::function<void(MasterSession&)> on_closing_;
  std::string transaction_;  // bytes of the one that has begun
  bool in_step_ = true;
  bool counts_ = true;
  bool acknowledge_soon_ = false;
};

}  // namespace latchkey::replication
