#include "replication/master_session.h"

#include <utility>

#include "replication/replication.h"
#include "server/client/client.h"
#include "server/command/unexpected_errors.h"
#include "server/server.h"

namespace latchkey::replication {

using server::Client;

MasterSession::MasterSession(Client& client, Replication& replication,
                             std::function<void(MasterSession&)> on_closing)
    : client_(client), replication_(replication), on_closing_(std::move(on_closing)) {}

int64_t MasterSession::read_offset() const {
  const net::Connection* connection = client_.connection();
  const size_t waiting = connection != nullptr ? connection->input_size() : 0;
  return static_cast<int64_t>(replication_.offset() + transaction_.size() + waiting);
}

int64_t MasterSession::last_io_ms() const {
  return client_.last_interaction_ms;
}

uint64_t MasterSession::bytes_received() const {
  return client_.connection() != nullptr ? client_.connection()->bytes_received() : 0;
}

void MasterSession::acknowledge() {
  if (client_.has(server::kClientClosing)) return;
  const std::string offset = std::to_string(replication_.offset());
  const int64_t synced = replication_.synced_offset();
  resp::ReplyBuilder& say = client_.reply;
  say.array(synced >= 0 ? 5 : 3);
  say.bulk("REPLCONF");
  say.bulk("ACK");
  say.bulk(offset);
  if (synced >= 0) {
    say.bulk("FACK");
    say.bulk(std::to_string(synced));
  }
  client_.flush_soon();
}

void MasterSession::request_clock() {
  if (!clock_received_ || client_.has(server::kClientClosing)) return;
  resp::ReplyBuilder& say = client_.reply;
  say.array(3);
  say.bulk("REPLCONF");
  say.bulk("CLOCK");
  say.bulk("?");
  client_.flush_soon();
}

void MasterSession::applied(std::string_view bytes) {
  // A suspended request that ends after the link broke counts as applied too.
  if (client_.has(server::kClientClosing) && !client_.has(server::kClientSuspended)) return;
  if (std::exchange(acknowledge_soon_, false)) acknowledge();
  if (client_.has(server::kClientInMulti)) {
    transaction_.append(bytes);
    return;
  }
  if (!transaction_.empty()) replication_.stream().relay(std::exchange(transaction_, {}));
  replication_.stream().relay(bytes);
}

void MasterSession::failed(std::string_view text) {
  server::Server& server = client_.server;
  const std::string behind = server::note_unexpected_error(client_, text, "replica", "master");
  replication_.stream().log_latest();
  // Writes of clients to a writable replica may conflict with the master's.
  const server::ConfigValues& settings = server.settings();
  if (settings.replica_read_only &&
      settings.propagation_error_behavior != server::PropagationErrorBehavior::kIgnore)
    server.panic("This replica panicked sending an error to its master" + behind, __FILE__,
                 __LINE__);
}

void MasterSession::desynchronized(std::string_view reason) {
  is_in_sync_ = false;
  if (reason.find("inline") == std::string_view::npos) return;
  client_.server.log().warning(
      "WARNING: Receiving inline protocol from master, master stream corruption? Closing the "
      "master connection and discarding the cached master.");
}

void MasterSession::closing() {
  // The master sends an incomplete transaction again.
  transaction_.clear();
  on_closing_(*this);
}

}  // namespace latchkey::replication
