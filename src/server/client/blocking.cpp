#include "server/client/blocking.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/text/number.h"
#include "base/time_units.h"
#include "base/timeout.h"
#include "server/client/client.h"
#include "server/client/client_registry.h"
#include "server/client/pause.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/command/transaction.h"
#include "server/server.h"
#include "server/tasks.h"
#include "store/keyspace.h"

namespace latchkey::server {

struct Blocking::Waiter {
  struct Position {
    Queues::value_type* queue;
    Line::iterator at;
  };

  Client& client;
  StoredRequest request;
  store::Type type;
  bool also_without_key;
  uint64_t ticks = 0;        // that the request took before it began to wait
  int64_t deadline_ms = -1;  // for when it is run again as a new one
  std::vector<Position> positions = {};

  // Whether its time is that of being run again, not its deadline.
  bool runs_again() const { return deadline_ms >= 0; }
};

Blocking::Blocking(Server& server)
    : server_(server), queues_(0, KeyPlaceHash{&server.environment().secret}) {}

const Client& Blocking::client_of(const Waiter& waiter) {
  return waiter.client;
}

Blocking::~Blocking() = default;

uint64_t Blocking::id_of(const Client& client) {
  return client.id;
}

void Blocking::wait(CommandContext& ctx, const KeyWait& wanted) {
  Client& client = ctx.client;
  if (client.has(kClientDenyBlocking))
    return wanted.single_null_at_once ? ctx.reply.null() : ctx.reply.null_array();
  if (again_ == &client) {
    keeps_waiting_ = true;
    client.set(kClientBlocked);
    Block& block = *client.block;
    const bool is_earlier =
        wanted.again_ms != 0 && (block.deadline_ms == 0 || wanted.again_ms < block.deadline_ms);
    if (!is_earlier) return;
    Waiter& waiter = *waiters_.at(client.id);
    if (!waiter.runs_again()) waiter.deadline_ms = block.deadline_ms;
    server_.clients().stopped_waiting(client);
    block.deadline_ms = wanted.again_ms;
    return server_.clients().started_waiting(client);
  }
  if (waiters_.empty()) server_.events().add(*this);
  Command& command = *server_.dispatcher().lookup(ctx.args);
  auto& waiter = waiters_[client.id];
  waiter.reset(
      new Waiter{client, StoredRequest(command, ctx.args), wanted.type, wanted.also_without_key});
  for (const std::string_view key : wanted.keys) join(*waiter, client.database, key);

  const int64_t deadline_ms = kept_deadline_ms_ >= 0 ? kept_deadline_ms_ : wanted.deadline_ms;
  const bool runs_again =
      wanted.again_ms != 0 && (deadline_ms == 0 || wanted.again_ms < deadline_ms);
  if (runs_again) waiter->deadline_ms = deadline_ms;
  client.wait({.deadline_ms = runs_again ? wanted.again_ms : deadline_ms,
               .may_unblock = true,
               .ended = [this, &client](BlockEnd end) {
                 auto over = take(client);
                 if (end == BlockEnd::kClosed) return;
                 if (end == BlockEnd::kTimeout && over->runs_again())
                   return keep_until_served(std::move(over));
                 server_.dispatcher().count_call(client, over->request.command(),
                                                 over->request.words(), over->ticks);
                 if (end == BlockEnd::kTimeout || end == BlockEnd::kUnblocked)
                   client.reply.null_array();
               }});
}

void Blocking::began_after(const Client& client, uint64_t ticks) {
  waiters_.at(id_of(client))->ticks += ticks;
}

void Blocking::join(Waiter& waiter, int database, std::string_view key) {
  auto it = queues_.find(KeyPlaceView{database, key});
  if (it == queues_.end())
    it = queues_.emplace(KeyPlace{database, std::string(key)}, Queue{}).first;
  Queue& queue = it->second;
  // Only this one has joined since it began.
  if (!queue.line.empty() && queue.line.back() == &waiter) return;
  if (waiter.also_without_key && queue.also_without_key++ == 0) ++queues_also_without_key_;
  queue.line.push_back(&waiter);
  waiter.positions.push_back({&*it, std::prev(queue.line.end())});
}

void Blocking::remove_from_queues(Waiter& waiter) {
  for (const Waiter::Position& position : waiter.positions) {
    Queue& queue = position.queue->second;
    queue.line.erase(position.at);
    if (waiter.also_without_key && --queue.also_without_key == 0) --queues_also_without_key_;
    if (queue.line.empty()) queues_.erase(position.queue->first);
  }
  waiter.positions.clear();
}

std::unique_ptr<Blocking::Waiter> Blocking::take(const Client& client) {
  const auto it = waiters_.find(client.id);
  if (it == waiters_.end()) return nullptr;
  std::unique_ptr<Waiter> waiter = std::move(it->second);
  remove_from_queues(*waiter);
  waiters_.erase(it);
  if (waiters_.empty()) server_.events().remove(*this);
  return waiter;
}

void Blocking::mark_ready(Queues::value_type& queue) {
  if (std::exchange(queue.second.ready, true)) return;
  ready_.push_back(queue.first);
}

void Blocking::mark_all_ready(int database) {
  for (auto& queue : queues_) {
    if (queue.first.database == database) mark_ready(queue);
  }
}

void Blocking::key_changed(store::Keyspace& keyspace, std::string_view key, EventClass,
                           std::string_view) {
  const auto it = queues_.find(KeyPlaceView{keyspace.index(), key});
  if (it != queues_.end()) mark_ready(*it);
}

void Blocking::keyspace_clearing(store::Keyspace& keyspace) {
  if (queues_also_without_key_ != 0) mark_all_ready(keyspace.index());
}

void Blocking::keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) {
  mark_all_ready(first.index());
  mark_all_ready(second.index());
}

void Blocking::serve() {
  if (std::exchange(serving_, true)) return;
  // Keys are looked at as of the request that changed them, since Redis 7.2.
  if (!server_.edition().has({7, 2})) server_.refresh_clock();
  server_.dispatcher().begin_batch();
  while (any_ready()) {
    if (may_resume()) {
      for (const uint64_t id : std::exchange(due_, {})) resume_after_pause(id);
    }
    for (const KeyPlace& place : std::exchange(ready_, {})) serve_key(place);
  }
  serving_ = false;
}

bool Blocking::may_serve(const Waiter& waiter, const store::KeyRef& ref) {
  return waiter.also_without_key || (ref && ref->type() == waiter.type);
}

void Blocking::serve_key(const KeyPlace& place) {
  const auto found = queues_.find(place);
  if (found == queues_.end()) return;
  store::Keyspace& database = server_.database(place.database);
  Queue& queue = found->second;
  queue.ready = false;
  for (auto it = queue.line.begin(); it != queue.line.end();) {
    Waiter& waiter = **it;
    ++it;
    const bool last = it == queue.line.end();
    const store::KeyRef ref =
        database.find(place.key, store::Keyspace::kPeek | store::Keyspace::kEvenExpired);
    // What is past its deadline serves nobody, and goes when somebody asks for it. Before Redis 7.2
    // this was to ask.
    if (ref && database.is_expired(*ref)) {
      if (!server_.edition().has({7, 2})) database.find(place.key, store::Keyspace::kPeek);
      return;
    }
    if (may_serve(waiter, ref)) is_paused_for(waiter) ? hold(waiter) : run_again(waiter);
    // The queue goes with the last who waited in it.
    if (last || (!ref && queue.also_without_key == 0)) return;
  }
}

void Blocking::run_again(Waiter& waiter) {
  Client& client = waiter.client;
  again_ = &client;
  keeps_waiting_ = false;
  // The handler runs as that of any client, and its figures are counted if this one is served.
  client.set(kClientBlocked, false);
  server_.refresh_clock();
  server_.dispatcher().retry(client, waiter.request.command(), waiter.request.words());
  client.set(kClientBlocked);
  again_ = nullptr;
  if (keeps_waiting_) return;
  const auto ended = take(client);
  client.unblock(BlockEnd::kServed);
}

// --- Pauses --------------------------------------------------------------------------------------

bool Blocking::is_paused_for(const Waiter& waiter) const {
  return server_.pauses().holds(waiter.request.command().flags);
}

void Blocking::hold(Waiter& waiter) {
  remove_from_queues(waiter);
  Client& client = waiter.client;
  client.unblock(BlockEnd::kServed);
  client.wait({.deadline_ms = 0,
               .may_unblock = false,
               .outlives_role = true,
               .ended = [this, &client](BlockEnd) { take(client); }});
  held_.push_back(client.id);
}

void Blocking::keep_until_served(std::unique_ptr<Waiter> waiter) {
  Client& client = waiter->client;
  if (waiters_.empty()) server_.events().add(*this);
  waiters_[client.id] = std::move(waiter);
  client.wait({.deadline_ms = 0, .may_unblock = false, .ended = [this, &client](BlockEnd) {
                 take(client);
               }});
  due_.push_back(client.id);
}

void Blocking::pause_ended() {
  due_.insert(due_.end(), held_.begin(), held_.end());
  held_.clear();
}

bool Blocking::may_resume() const {
  return !server_.tasks().any() && (server_.state() & kStateLoading) == 0;
}

void Blocking::clock_went_back(int64_t by_ms) {
  for (auto& [id, waiter] : waiters_) {
    if (waiter->deadline_ms > 0)
      waiter->deadline_ms = base::moved_deadline(waiter->deadline_ms, by_ms);
  }
}

void Blocking::resume_after_pause(uint64_t client_id) {
  const auto found = waiters_.find(client_id);
  if (found == waiters_.end()) return;
  // What ended the pause may have begun another.
  if (is_paused_for(*found->second)) return held_.push_back(client_id);
  Client& client = found->second->client;
  // From here on it is a request like any, that may wait anew.
  const auto waiter = take(client);
  client.unblock(BlockEnd::kServed);
  kept_deadline_ms_ = waiter->deadline_ms;
  server_.refresh_clock();
  server_.dispatcher().retry(client, waiter->request.command(), waiter->request.words());
  kept_deadline_ms_ = -1;
}

// --- Clusters ------------------------------------------------------------------------------------

std::string Blocking::refusal_by_slot(SlotGate& gate, Waiter& waiter) {
  const SlotGate::Request request{waiter.request.command(), waiter.request.words()};
  SlotGate::Caller caller = caller_of(waiter.client);
  caller.waits = true;
  return refusal_of(gate.check({&request, 1}, caller));
}

void Blocking::refuse_unserved(SlotGate& gate) {
  Refusals refusals;
  for (const auto& [id, waiter] : waiters_) {
    std::string error = refusal_by_slot(gate, *waiter);
    if (!error.empty()) refusals.emplace_back(id, std::move(error));
  }
  refuse(refusals);
}

void Blocking::send_to_master() {
  const ConfigValues& settings = server_.settings();
  const std::string redirection =
      "REDIRECT " + settings.replicaof_host + ":" + std::to_string(settings.replicaof_port);
  Refusals refusals;
  for (const auto& [id, waiter] : waiters_) {
    Client& client = waiter->client;
    const bool writes = (waiter->request.command().flags & kWrite) != 0;
    const bool is_served = client.has(kClientReadsAnywhere) && !writes;
    std::string error;
    if (server_.in_cluster()) {
      error = refusal_by_slot(*server_.slot_gate(), *waiter);
    } else if (!is_served && client.has(kClientRedirects)) {
      error = redirection;
    }
    if (!error.empty()) {
      refusals.emplace_back(id, std::move(error));
    } else if (is_served) {
      client.block->outlives_role = true;
    }
  }
  refuse(refusals);
}

void Blocking::refuse(const Refusals& refusals) {
  for (const auto& [id, error] : refusals) {
    Client& client = waiters_.at(id)->client;
    const auto over = take(client);
    client.unblock(BlockEnd::kServed);
    const size_t mark = client.out().mark();
    server_.dispatcher().reject(client, &over->request.command(), error);
    server_.dispatcher().note_late_reply(client, mark);
    client.flush_soon();
  }
}

bool read_wait_timeout(CommandContext& ctx, std::string_view text, int64_t* deadline_ms) {
  long double seconds = 0;
  if (!base::parse_long_double(text, &seconds))
    return ctx.refuse("ERR timeout is not a float or out of range");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const long double milliseconds = std::ceil(seconds * base::kMsPerSecond);
  if (milliseconds >= static_cast<long double>(kMax))
    return ctx.refuse("ERR timeout is out of range");
  if (milliseconds < 0) return ctx.refuse("ERR timeout is negative");
  const auto timeout_ms = static_cast<int64_t>(milliseconds);
  if (timeout_ms > kMax - ctx.now_ms()) return ctx.refuse("ERR timeout is out of range");
  *deadline_ms = timeout_ms == 0 ? 0 : ctx.now_ms() + timeout_ms;
  return true;
}

}  // namespace latchkey::server
