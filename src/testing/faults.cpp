#include "testing/faults.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "replication/replication.h"
#include "server/client/pause.h"
#include "server/command/command_table.h"
#include "server/memory_limit.h"
#include "server/server.h"
#include "store/keyspace.h"

namespace latchkey::testing {

using namespace server;

namespace {

bool is_for_nested(FaultKind kind) {
  return kind == FaultKind::kError || kind == FaultKind::kEvict || kind == FaultKind::kExpire;
}

bool is_on_reply(FaultKind kind) {
  using enum FaultKind;
  return kind == kLoseReply || kind == kDelayReply || kind == kHangReply || kind == kCut ||
         kind == kTrickle || kind == kGarbage;
}

constexpr std::array<std::string_view, 6> kExempt = {"FAULT", "CALLS", "CLOCK",
                                                     "PSYNC", "SYNC",  "REPLCONF"};

bool is_exempt_call(const Call& call) {
  // Commands that stop a busy script are exempt.
  const bool ends_script = (call.client.server.state() & kStateBusy) != 0 &&
                           call.command != nullptr && call.command->has(kAllowBusy);
  return ends_script || call.client.has(kClientMaster | kClientReplica | kClientInternal) ||
         call.client.replica != nullptr || std::ranges::any_of(kExempt, [&](std::string_view name) {
           return names_container(call, name);
         });
}

}  // namespace

bool is_exempt(std::string_view command) {
  const std::string_view container = command.substr(0, command.find('|'));
  return std::ranges::any_of(
      kExempt, [&](std::string_view name) { return base::equal_ignoring_case(name, container); });
}

bool is_about_requests(FaultKind kind) {
  return kind != FaultKind::kRefuse && kind != FaultKind::kDiskFull &&
         kind != FaultKind::kFsyncError && kind != FaultKind::kReplicaLag;
}

uint64_t Faults::add(Fault fault) {
  fault.id = next_id_++;
  faults_.push_back(std::move(fault));
  faults_changed();
  return faults_.back().id;
}

bool Faults::remove(uint64_t id) {
  const bool removed = std::erase_if(faults_, [id](const Fault& fault) { return fault.id == id; });
  faults_changed();
  return removed;
}

void Faults::clear() {
  faults_.clear();
  faults_changed();
}

void Faults::update_state() {
  // A request that has waited goes on being known, so that it does not wait again.
  if (faults_.empty())
    std::erase_if(pending_, [](const auto& pending) { return pending.second.on_reply; });
  server_.set_state(kStateFaults, !faults_.empty() || !pending_.empty());
}

void Faults::forget_pending(uint64_t client_id) {
  pending_.erase(client_id);
  if (faults_.empty()) update_state();
}

void Faults::faults_changed() {
  update_state();
  const size_t lags =
      static_cast<size_t>(std::count_if(faults_.begin(), faults_.end(), [](const Fault& fault) {
        return fault.action.kind == FaultKind::kReplicaLag;
      }));
  const size_t before = std::exchange(lags_, lags);
  if (lags == before) return;
  replication::Replication& replication = server_.layer<replication::Replication>();
  replication.set_lag(lags > 0 ? [this] { return replica_lag_ms(); } : std::function<int64_t()>());
  if (lags < before) replication.send_all_delayed();
}

void Faults::reset_counts() {
  for (Fault& fault : faults_) fault.matches = fault.hits = 0;
}

// --- Which fault takes place ---------------------------------------------------------------------

bool Faults::is_due(Fault& fault) {
  if (++fault.matches <= fault.after || (fault.times && fault.hits >= *fault.times)) return false;
  if (fault.probability < 1 && server_.environment().random.unit() >= fault.probability)
    return false;
  ++fault.hits;
  return true;
}

const FaultAction* Faults::due_for(const Call& call) {
  const bool nested = call.context != Call::Context::kPlain;
  for (Fault& fault : faults_) {
    const FaultKind kind = fault.action.kind;
    if (!is_about_requests(kind) || (nested && !is_for_nested(kind))) continue;
    if (fault.selector.matches(call) && is_due(fault)) return &fault.action;
  }
  return nullptr;
}

bool Faults::any_due(FaultKind kind) {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](Fault& fault) { return fault.action.kind == kind && is_due(fault); });
}

bool Faults::refuses_connection() {
  return any_due(FaultKind::kRefuse);
}

bool Faults::disk_fails(DiskFault what) {
  return any_due(what == DiskFault::kFull ? FaultKind::kDiskFull : FaultKind::kFsyncError);
}

int64_t Faults::replica_lag_ms() {
  for (Fault& fault : faults_) {
    if (fault.action.kind == FaultKind::kReplicaLag && is_due(fault)) return delay_of(fault.action);
  }
  return 0;
}

// --- Before a request runs -----------------------------------------------------------------------

FaultInjector::Answer Faults::before(const Call& call) {
  Client& client = call.client;
  if (is_exempt_call(call)) return {};
  if (call.context == Call::Context::kPlain) {
    // A request that has waited is not asked about again.
    const auto it = pending_.find(client.id);
    const bool has_waited = it != pending_.end() && !it->second.on_reply;
    forget_pending(client.id);
    if (has_waited) return {};
  }
  const FaultAction* action = due_for(call);
  if (action == nullptr) return {};
  if (action->kind == FaultKind::kEvict || action->kind == FaultKind::kExpire) {
    remove_keys(call, action->kind == FaultKind::kEvict);
    return {};
  }
  return begin(client, *action);
}

FaultInjector::Answer Faults::begin(Client& client, const FaultAction& action) {
  if (is_on_reply(action.kind)) {
    pending_[client.id].on_reply = action;
    return {};
  }
  switch (action.kind) {
    case FaultKind::kError:
      return {Verdict::kRefuse, action.error};
    case FaultKind::kDelay:
      pending_[client.id] = {};
      wait(client, server_.now_ms() + delay_of(action), nullptr);
      return {Verdict::kPostpone, {}};
    case FaultKind::kPause:
      pending_[client.id] = {};
      server_.pauses().pause(PauseControl::Reason::kClient, PauseControl::Kind::kAll,
                             server_.now_ms() + delay_of(action));
      server_.pauses().postpone(client);
      return {Verdict::kPostpone, {}};
    case FaultKind::kHang:
      hang(client);
      break;
    case FaultKind::kReset:
      if (client.connection() != nullptr) client.connection()->reset_on_close();
      client.close();
      break;
    default:
      close_soon(client);
      break;
  }
  return {Verdict::kDrop, {}};
}

void Faults::remove_keys(const Call& call, bool evict) {
  store::Environment& environment = server_.environment();
  // A replica's keys go when its master says so.
  if (environment.expired != store::Environment::Expired::kRemove) return;
  store::Keyspace& keyspace = server_.database(call.database);
  for (const uint32_t position : key_positions(call.command, call.args)) {
    const std::string_view key = call.args[position];
    store::KeyRef ref = keyspace.find(key, store::Keyspace::kPeek);
    if (!ref) continue;
    if (evict) {
      server_.memory_limit().evict_key(keyspace, key);
    } else {
      // A lookup removes a key whose deadline has passed.
      keyspace.set_deadline(ref, environment.now_ms);
      keyspace.exists(key);
    }
  }
}

// --- What happens to a reply ---------------------------------------------------------------------

void Faults::replied(Client& client, size_t mark) {
  const auto it = pending_.find(client.id);
  if (it == pending_.end() || !it->second.on_reply || client.has(kClientBlocked)) return;
  const FaultAction action = *std::move(it->second.on_reply);
  pending_.erase(it);
  act_on_reply(client, action, mark);
}

void Faults::late_reply(Client& client, size_t mark) {
  const auto it = pending_.find(client.id);
  if (it == pending_.end()) return;
  if (client.block == nullptr) return replied(client, mark);
  // unblock() follows.
  it->second.mark = mark;
}

void Faults::wait_ended(Client& client, std::optional<size_t> mark) {
  const auto it = pending_.find(client.id);
  if (it == pending_.end()) return;
  if (!mark) mark = it->second.mark;
  if (mark) replied(client, *mark);
}

void Faults::client_closed(const Client& client) {
  forget_pending(client.id);
}

void Faults::act_on_reply(Client& client, const FaultAction& action, size_t mark) {
  // What a replica is sent is no reply.
  if (client.has(kClientClosing | kClientReplica)) return;
  resp::OutputBuffer& out = client.out();
  const auto text = std::make_shared<const std::string>(out.copy_since(mark));
  if (out.mark() > mark) out.truncate(mark);
  LateReply late{.text = text, .closes = client.has(kClientCloseAfterReply), .pushes = nullptr};
  switch (action.kind) {
    case FaultKind::kDelayReply:
    case FaultKind::kTrickle: {
      const bool trickles = action.kind == FaultKind::kTrickle;
      late.piece = trickles ? action.bytes : text->size();
      late.wait_ms = trickles ? action.shortest_ms : delay_of(action);
      // What is pushed meanwhile follows the reply, as it does on a slow network: a message that a
      // key has changed, behind the value that it had.
      if (!text->empty()) late.pushes = server_.dispatcher().hold_pushes(client, /*drop=*/false);
      send_later(client, late, 0);
      return;
    }
    case FaultKind::kHangReply:
      hang(client);
      return;
    case FaultKind::kGarbage:
      out.append(garbage());
      client.flush_soon();
      return;
    case FaultKind::kCut:
      out.append(std::string_view(*text).substr(0, action.bytes));
      break;
    default:
      break;
  }
  close_soon(client);
}

std::string Faults::garbage() {
  constexpr size_t kBytes = 32;
  std::string bytes;
  // None of them begins a reply.
  while (bytes.size() < kBytes)
    bytes += static_cast<char>(0x80 | server_.environment().random.below(0x80));
  return bytes + "\r\n";
}

int64_t Faults::delay_of(const FaultAction& action) {
  const auto range = static_cast<uint64_t>(action.longest_ms - action.shortest_ms);
  if (range == 0) return action.shortest_ms;
  return action.shortest_ms + static_cast<int64_t>(server_.environment().random.below(range + 1));
}

void Faults::close_soon(Client& client) {
  client.close_after_reply();
  client.flush_soon();
}

void Faults::wait(Client& client, int64_t deadline_ms, std::function<void(BlockEnd)> ended) {
  // After QUIT the connection is closed behind the reply, which is still to come.
  client.set(kClientCloseAfterReply, false);
  client.wait({.deadline_ms = deadline_ms,
               .may_unblock = false,
               .outlives_role = true,
               .ended = std::move(ended)});
}

void Faults::hang(Client& client) {
  Dispatcher& dispatcher = server_.dispatcher();
  wait(client, 0, [&dispatcher, pushes = dispatcher.hold_pushes(client, /*drop=*/true)](BlockEnd) {
    dispatcher.release_pushes(*pushes);
  });
}

void Faults::send_later(Client& client, const LateReply& reply, size_t from) {
  const auto ended = [this, &client, reply, from](BlockEnd end) {
    const std::string_view rest = std::string_view(*reply.text).substr(from);
    if (end != BlockEnd::kClosed) {
      client.out().append(rest.substr(0, reply.piece));
      if (rest.size() > reply.piece) return send_later(client, reply, from + reply.piece);
    }
    if (reply.pushes != nullptr) server_.dispatcher().release_pushes(*reply.pushes);
    if (reply.closes) close_soon(client);
  };
  wait(client, server_.now_ms() + reply.wait_ms, ended);
}

}  // namespace latchkey::testing
