#include "server/client/flush_waits.h"

#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::server {

FlushWaits::FlushWaits(Server& server)
    : server_(server), waker_(*server.loop(), [this] { answer(); }) {}

FlushWaits::~FlushWaits() {
  server_.environment().reclaimer.drain();
}

void FlushWaits::wait(Client& client) {
  const uint64_t turn = ++last_turn_;
  waiting_.push_back({turn, client.id});
  client.wait({.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = nullptr});
  // The background thread runs jobs in order: when this one runs, all before it are done.
  server_.environment().reclaimer.free_later(0, [this, turn] {
    freed_turn_.store(turn, std::memory_order_release);
    waker_.wake();
  });
}

void FlushWaits::answer() {
  answer_up_to(freed_turn_.load(std::memory_order_acquire));
}

void FlushWaits::answer_all() {
  answer_up_to(last_turn_);
}

void FlushWaits::answer_up_to(uint64_t freed) {
  for (; !waiting_.empty() && waiting_.front().turn <= freed; waiting_.pop_front()) {
    server_.dispatcher().answer_waiting(waiting_.front().client_id,
                                        [](Client& client) { client.reply.ok(); });
  }
}

}  // namespace latchkey::server
