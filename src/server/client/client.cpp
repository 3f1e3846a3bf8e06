#include "server/client/client.h"

#include <utility>

#include "base/assert.h"
#include "base/heap_account.h"
#include "server/client/authentication.h"
#include "server/client/fieldsets.h"
#include "server/client/master_link.h"
#include "server/client/monitors.h"
#include "server/client/node_link.h"
#include "server/client/pubsub.h"
#include "server/client/replica_link.h"
#include "server/client/request_pump.h"
#include "server/client/tracking.h"
#include "server/command/dispatcher.h"
#include "server/command/fault_injector.h"
#include "server/command/lock_claims.h"
#include "server/command/transaction.h"
#include "server/command/watch.h"
#include "server/process/listeners.h"
#include "server/server.h"

namespace latchkey::server {

Client::Client(Server& owner, uint64_t client_id, net::Connection* connection)
    : id(client_id),
      server(owner),
      created_ms(owner.machine_ms()),
      last_interaction_ms(owner.machine_ms()),
      connection_(connection),
      local_out_(connection != nullptr ? nullptr
                                       : std::make_unique<resp::OutputBuffer>(owner.buffer_pool())),
      reply(out()) {
  if (!owner.edition().has({7, 2})) reply.use_17_digits();
}

Client::~Client() {
  LK_ASSERT(connection_ == nullptr && !has(kClientSuspended));
}

std::string Client::peer_address() const {
  return connection_ != nullptr ? connection_->peer_address() : std::string("?:0");
}

std::string Client::local_address() const {
  return connection_ != nullptr ? connection_->local_address() : std::string("?:0");
}

resp::OutputBuffer& Client::push_out() {
  return server.dispatcher().push_out(*this);
}

void Client::flush_soon() {
  if (has(kClientClosing)) return;
  server.client_eviction().touch(*this);
  if (connection_ == nullptr || flush_scheduled_ || has(kClientSuspended)) return;
  flush_scheduled_ = true;
  server.clients().schedule_flush(*this);
}

void Client::close() {
  if (has(kClientClosing)) return;
  server.enter();
  set(kClientClosing);
  if (has(kClientBlocked)) unblock(BlockEnd::kClosed);
  unregister();
  if ((server.state() & kStateFaults) != 0) server.fault_injector().client_closed(*this);
  if (replica != nullptr) replica->closing();
  if (node != nullptr) node->closing();
  // If a suspended request of the master is still running, request_ended() calls closing().
  if (master != nullptr && !has(kClientSuspended)) master->closing();
  if (connection_ != nullptr) disconnect();
  server.clients().remove(*this);
}

void Client::unregister() {
  server.watches().unwatch_all(*this);
  server.pubsub().unsubscribe_all(*this);
  server.monitors().remove(*this);
  server.tracking().stop(*this);
  transaction.reset();
  if (has(kClientTookLock) && server.lock_claims() != nullptr)
    server.lock_claims()->client_gone(*this);
}

void Client::disconnect() {
  connection_->send_deferred();
  // Marks that callers hold remain valid in local_out_.
  local_out_ = std::make_unique<resp::OutputBuffer>(std::move(connection_->out()));
  reply.set_out(*local_out_);
  std::exchange(connection_, nullptr)->close();
}

Client& Client::move_to(Server& target) {
  net::Connection* connection = connection_;
  const size_t input = connection->input_memory();
  const size_t moved_too[] = {input == 0 ? 0 : input + sizeof(base::Blob),
                              connection->own_output_memory()};
  server.enter();
  // While its address can still be told.
  if (has(kClientTookLock) && server.lock_claims() != nullptr)
    server.lock_claims()->client_gone(*this);
  set(kClientTookLock, false);
  for (const size_t size : moved_too) base::HeapAccount::transfer_out(size);
  // What was written stays with the connection.
  local_out_ = std::make_unique<resp::OutputBuffer>(server.buffer_pool());
  reply.set_out(*local_out_);
  connection_ = nullptr;
  target.refresh_clock();
  for (const size_t size : moved_too) base::HeapAccount::transfer_in(size);
  ++target.stats().connections_received;
  Client& moved = target.clients().add(connection);
  constexpr uint32_t kKept =
      kClientUnixSocket | kClientReplyOff | kClientReplySkipNext | kClientNoTouch | kClientNoEvict;
  moved.set(flags & kKept);
  moved.reply.set_protocol(reply.is_resp3() ? 3 : 2);
  moved.name = name;
  if (library != nullptr) moved.library = std::make_unique<ClientLibrary>(*library);
  assume_default_user(moved);
  connection->set_handler(moved);
  moved.resume_soon();
  close();
  return moved;
}

void Client::request_suspended() {
  set(kClientSuspended);
  if (connection_ != nullptr) connection_->pause();
}

void Client::request_ended() {
  set(kClientSuspended, false);
  if (has(kClientClosing)) {
    if (master != nullptr) master->closing();
    return;
  }
  if (connection_ == nullptr) return;
  connection_->resume();
  flush_soon();
  resume_soon();
}

void Client::wait(Block reason) {
  LK_ASSERT(!has(kClientBlocked));
  set(kClientBlocked);
  block = std::make_unique<Block>(std::move(reason));
  server.clients().started_waiting(*this);
}

void Client::unblock(BlockEnd end) {
  LK_ASSERT(has(kClientBlocked));
  const bool served = end == BlockEnd::kServed;
  set(kClientBlocked | kClientPostponed, false);
  server.clients().stopped_waiting(*this);
  const auto ended = std::exchange(block, nullptr);
  const size_t mark = out().mark();
  if (end == BlockEnd::kUnblockedWithError || end == BlockEnd::kRoleChanged) {
    reply.error(end == BlockEnd::kRoleChanged
                    ? "UNBLOCKED force unblock from blocking operation, instance state changed "
                      "(master -> replica?)"
                    : "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    server.dispatcher().count_error(*this, reply.last_error_mark());
    CommandStats& stats = last_command->stats;
    ++(server.edition().is_valkey_since({8, 1}) ? stats.rejected_calls : stats.failed_calls);
  }
  if (!served && ended->ended) ended->ended(end);
  if (has(kClientBlocked)) return;  // it waits on
  if (!served && end != BlockEnd::kClosed && has(kClientReplyOff | kClientReplySkip))
    out().truncate(mark);
  if ((server.state() & (kStateRecorded | kStateFaults)) != 0)
    server.dispatcher().wait_ended(*this, end, mark);
  if (end != BlockEnd::kClosed) resume_soon();
}

void Client::resume_soon() {
  if (connection_ == nullptr || resume_scheduled_) return;
  resume_scheduled_ = true;
  server.clients().schedule_resume(*this);
}

size_t Client::on_input(std::span<char> bytes) {
  ClientEviction& eviction = server.client_eviction();
  eviction.touch(*this);
  // Before a large request is complete, because once it has run its memory is free again: whether
  // it exceeds the limit must not depend on how many reads a turn has.
  const bool is_large =
      connection_ != nullptr && connection_->input_memory() >= ClientEviction::kMinToClose;
  if (is_large && eviction.enforce(this)) return bytes.size();
  return server.pump().process(*this, bytes);
}

void Client::on_end_of_input() {
  if (replica != nullptr && replica->survives_end_of_input()) return;
  // A blocked client has no reply to wait for; others may still read the replies they asked for.
  if (has(kClientBlocked | kClientSuspended) || pending_output() == 0) return close();
  close_after_reply();
}

void Client::on_secured() {
  server.refresh_clock();
  if (!server.listeners().refuse_protected(*this)) authenticate_by_certificate(*this);
}

void Client::on_handshake_failed(const std::string& reason) {
  server.log().warning("Error accepting a client connection: " + reason +
                       " (addr=" + peer_address() + " laddr=" + local_address() + ")");
  close();
}

void Client::on_flushed() {
  server.client_eviction().touch(*this);
  if (has(kClientCloseAfterReply)) close();
}

}  // namespace latchkey::server
