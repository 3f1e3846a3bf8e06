#include "server/command/dispatcher.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "server/acl/access_control.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/master_link.h"
#include "server/client/monitors.h"
#include "server/client/pause.h"
#include "server/client/replica_link.h"
#include "server/client/tracking.h"
#include "server/command/redaction.h"
#include "server/command/slot_gate.h"
#include "server/command/transaction.h"
#include "server/memory_limit.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

// What the client of an unknown command is shown of its arguments.
constexpr size_t kMaxShownBytes = 128;

// Commands that act on the transaction itself and are not queued.
bool runs_at_once_in_multi(const Command& command) {
  static constexpr std::string_view kNames[] = {"exec",  "discard", "multi",
                                                "watch", "quit",    "reset"};
  return std::find(std::begin(kNames), std::end(kNames), command.full_name) != std::end(kNames);
}

// Of SHUTDOWN only the form that gives the dataset up.
bool may_run_while_busy(const Command& command, Arguments args) {
  if (command.full_name != "shutdown") return command.has(kAllowBusy);
  return args.size() == 2 && is_word(args[1], "NOSAVE");
}

// Flags that a request has and those that it lacks. EXEC has what any queued one has, and lacks
// what any of them lacks.
struct RequestFlags {
  uint32_t present;
  uint32_t missing;
};

RequestFlags flags_of(const Client& client, const Command& command, Arguments args) {
  uint32_t flags = command.flags;
  if (const FlagFinder find = command.row->extras.find_flags; find != nullptr)
    flags = find(client.server, args, flags);
  RequestFlags result{.present = flags, .missing = ~flags};
  if (client.transaction != nullptr && command.full_name == "exec") {
    result.present |= client.transaction->command_flags;
    result.missing |= client.transaction->missing_flags;
  }
  return result;
}

// A word as it is shown to a client: as the reference's, it ends at a NUL.
std::string quote(std::string_view text, size_t most) {
  return "'" + std::string(text.substr(0, std::min(most, text.find('\0')))) + "'";
}

// For the log.
std::string excerpt(std::string_view word) {
  return std::string(word.substr(0, kMaxShownBytes));
}

}  // namespace

const CommandTable& Dispatcher::server_commands() const {
  return server_.commands();
}

Dispatcher::Dispatcher(Server& server) : server_(server), calls_(server.buffer_pool()) {}

void Dispatcher::Calls::swap(Calls& other) noexcept {
  std::swap(last_ticks, other.last_ticks);
  std::swap(depth, other.depth);
  std::swap(serving, other.serving);
  std::swap(in_script, other.in_script);
  std::swap(has_pushes, other.has_pushes);
  pushes.swap(other.pushes);
  last_pushes.swap(other.last_pushes);
}

std::unique_ptr<Dispatcher::Calls> Dispatcher::put_aside() {
  auto calls = std::make_unique<Calls>(server_.buffer_pool());
  calls->swap(calls_);
  aside_.push_back(calls.get());
  return calls;
}

void Dispatcher::put_back(std::unique_ptr<Calls> calls) {
  LK_ASSERT(calls_.depth == 0);
  std::erase(aside_, calls.get());
  calls_.swap(*calls);
}

Dispatcher::Calls* Dispatcher::calls_for(const Client& client) {
  if (&client == calls_.serving) return &calls_;
  if (!client.has(kClientSuspended)) [[likely]]
    return nullptr;
  const auto it = std::find_if(aside_.begin(), aside_.end(),
                               [&](const Calls* calls) { return calls->serving == &client; });
  return it == aside_.end() ? nullptr : *it;
}

resp::OutputBuffer& Dispatcher::push_out(Client& client) {
  Calls* calls = calls_for(client);
  if (calls == nullptr) return client.out();
  calls->has_pushes = true;
  return calls->pushes;
}

resp::OutputBuffer& Dispatcher::last_push_out(Client& client) {
  Calls* calls = calls_for(client);
  if (calls == nullptr) return client.out();
  calls->has_pushes = true;
  return calls->last_pushes;
}

void Dispatcher::send_pushes(Client& client) {
  calls_.has_pushes = false;
  client.out().append(calls_.pushes);
  client.out().append(calls_.last_pushes);
  calls_.pushes.clear();
  calls_.last_pushes.clear();
}

void Dispatcher::begin_batch() {
  calls_.last_ticks = base::CycleClock::ticks();
}

Dispatcher::Outcome Dispatcher::execute(Client& client, Arguments args, Command* command) {
  if (client.has(kClientReplySkip | kClientReplySkipNext | kClientReplica | kClientMaster |
                 kClientCaching)) [[unlikely]] {
    if (client.has(kClientMaster)) return execute_for_master(client, args, command);
    if (client.has(kClientReplica)) return execute_for_replica(client, args, command);
    client.set(kClientReplySkip, client.has(kClientReplySkipNext));
    client.set(kClientReplySkipNext, false);
    if (client.has(kClientCaching)) return execute_said_of_caching(client, args, command);
  }
  return execute_anyhow(client, args, command);
}

Dispatcher::Outcome Dispatcher::execute_said_of_caching(Client& client, Arguments args,
                                                        Command* command) {
  if (command == nullptr) command = lookup(args);
  const Outcome outcome = execute_anyhow(client, args, command);
  const bool is_of_client =
      command != nullptr && command->parent != nullptr && command->parent->full_name == "client";
  if (outcome == Outcome::kDone && !is_of_client && !client.has(kClientInMulti | kClientBlocked))
    client.set(kClientCaching, false);
  return outcome;
}

Dispatcher::Outcome Dispatcher::execute_for_replica(Client& client, Arguments args,
                                                    Command* command) {
  const size_t before = client.out().size();
  client.last_command = nullptr;
  const Outcome outcome = execute_anyhow(client, args, command);
  if (client.out().size() <= before || client.has(kClientClosing)) return outcome;
  // A reply would stand in the middle of the stream.
  const std::string name =
      client.last_command != nullptr ? client.last_command->full_name : excerpt(args[0]);
  server_.log().warning("Replica generated a reply to command '" + name +
                        "', disconnecting it: " + describe(client));
  client.close();
  return outcome;
}

Dispatcher::Outcome Dispatcher::execute_for_master(Client& client, Arguments args,
                                                   Command* command) {
  const size_t mark = client.out().mark();
  client.last_command = nullptr;
  server_.set_state(kStateApplyingMaster, true);
  const Outcome outcome = execute_anyhow(client, args, command);
  server_.set_state(kStateApplyingMaster, false);
  client.out().truncate(mark);
  return outcome;
}

void Dispatcher::go_on_without_disk() {
  if (!server_.settings().replica_ignore_disk_write_errors)
    server_.panic("Replica was unable to write command to disk.", __FILE__, __LINE__);
  constexpr int64_t kIntervalMs = 10'000;
  if (server_.now_ms() - disk_warned_ms_ <= kIntervalMs) return;
  disk_warned_ms_ = server_.now_ms();
  server_.log().warning("Replica is applying a command even though it is unable to write to disk.");
}

Dispatcher::Outcome Dispatcher::execute_anyhow(Client& client, Arguments args, Command* command) {
  if (command == nullptr && (command = lookup(args)) == nullptr) {
    reject(client, nullptr, unknown_command_error(args));
    return Outcome::kDone;
  }
  client.last_command = command;
  if (!command->accepts_word_count(args.size())) [[unlikely]] {
    reject(client, command,
           "ERR wrong number of arguments for '" + command->full_name + "' command");
    return Outcome::kDone;
  }
  if (((client.flags & kGatedClientFlags) | server_.state() | (command->flags & kProtected)) != 0)
      [[unlikely]] {
    bool call_it = false;
    const Outcome outcome = gate(client, *command, args, &call_it);
    if (call_it) call(client, *command, args);
    return outcome;
  }
  perform(client, *command, args);
  return Outcome::kDone;
}

void Dispatcher::call(Client& client, Command& command, Arguments args) {
  const bool monitored = (server_.state() & kStateMonitored) != 0;
  // What calls other commands is shown before them.
  const bool show_first = command.has(kSkipMonitor);
  if (monitored && show_first) server_.monitors().show(client, command, args);
  const bool outer_in_script = std::exchange(calls_.in_script, client.has(kClientScript));
  perform(client, command, args);
  calls_.in_script = outer_in_script;
  remember_reads(client, command, args);
  if (monitored && !show_first) server_.monitors().show(client, command, args);
}

void Dispatcher::perform(Client& client, Command& command, Arguments args) {
  CommandContext ctx{server_,
                     client,
                     command,
                     args,
                     server_.database(client.database),
                     client.reply,
                     server_.events(),
                     server_.propagation()};
  // Commands of a batch follow one another: the end of one is the start of the next. Nested ones
  // are timed by themselves.
  const bool nested = calls_.depth++ > 0;
  const uint64_t started = nested ? base::CycleClock::ticks() : calls_.last_ticks;
  const uint64_t errors = client.reply.error_count();
  const size_t mark = client.out().mark();
  const uint32_t flags = client.flags;
  Propagation& propagation = server_.propagation();
  const uint64_t changes = server_.events().total();
  if (!nested) calls_.serving = &client;
  if ((flags & kClientNoTouch) != 0) [[unlikely]] {
    server_.environment().freeze_access = command.full_name != "touch";
  }

  propagation.begin_unit();
  const bool outer_replaced = propagation.set_replaced(false);
  command.handler(ctx);
  if (propagation.wanted() && server_.events().total() != changes && !propagation.replaced())
    propagation.add(ctx.db.index(), args);
  propagation.set_replaced(outer_replaced);
  propagation.end_unit();

  --calls_.depth;
  const uint64_t ended = base::CycleClock::ticks();
  if (!nested) {
    calls_.last_ticks = ended;
    server_.stats().command_ticks += ended - started;
  }
  // A request that waits for a key counts when the wait ends.
  if (!client.has(kClientBlocked) || !server_.blocking().waits(client)) [[likely]] {
    count_call(client, command, args, ended - started);
  } else {
    server_.blocking().began_after(client, ended - started);
  }
  if (client.reply.error_count() != errors) [[unlikely]] {
    ++command.stats.failed_calls;
    if (!client.has(kClientErrorCounted)) count_error(client, client.reply.last_error_mark());
    client.set(kClientErrorCounted, false);
    // An error within EXEC is not one of EXEC.
    client.reply.forget_errors_since(errors);
  }
  if ((flags & (kClientReplyOff | kClientReplySkip | kClientNoTouch)) != 0) [[unlikely]] {
    server_.environment().freeze_access = false;
    if ((client.flags & (kClientReplyOff | kClientReplySkip)) != 0) client.out().truncate(mark);
  }
  if (nested) return;
  calls_.serving = nullptr;
  if (calls_.has_pushes) [[unlikely]]
    send_pushes(client);
  if (server_.blocking().any_ready()) [[unlikely]]
    server_.blocking().serve();
}

void Dispatcher::call_again(Client& client, Command& command, Arguments args) {
  if (client.has(kClientRestricted) && forbids(client, command, args)) return;
  const bool short_of_memory = (server_.state() & kStateMemoryLimit) != 0;
  if (short_of_memory && refuse_out_of_memory(client, command, command.flags)) return;
  perform(client, command, args);
  remember_reads(client, command, args);
  if (!client.has(kClientBlocked)) client.set(kClientCaching, false);
}

void Dispatcher::remember_reads(Client& client, const Command& command, Arguments args) {
  // Within another command it is whoever runs that one who reads.
  Client& reader = calls_.serving != nullptr ? *calls_.serving : client;
  // What calls other commands reads by them.
  if (reader.has(kClientTracking) && command.has(kReadOnly) && !command.has(kSkipMonitor))
    server_.tracking().remember(reader, command, args);
}

void Dispatcher::choose_noted_calls() {
  constexpr int64_t kUsPerMs = 1000;
  int64_t shortest_us = INT64_MAX;
  if (server_.slow_log().is_on()) shortest_us = server_.slow_log().slower_than_us();
  if (server_.latency_monitor().is_on() &&
      server_.latency_monitor().threshold_ms() < shortest_us / kUsPerMs)
    shortest_us = server_.latency_monitor().threshold_ms() * kUsPerMs;
  noted_ticks_ = server_.cycle_clock().to_ticks(shortest_us);
}

void Dispatcher::note_call(Client& client, const Command& command, Arguments args, uint64_t ticks) {
  const int64_t duration_us = server_.cycle_clock().to_us(ticks);
  SlowLog& slow_log = server_.slow_log();
  if (slow_log.is_on() && duration_us >= slow_log.slower_than_us() && !command.has(kSkipSlowlog)) {
    const bool from_script = client.has(kClientScript);
    slow_log.add({.time_s = server_.now_ms() / 1000,
                  .duration_us = duration_us,
                  .client_address = from_script ? std::string() : client.peer_address(),
                  .client_name = client.name},
                 shown_words(server_.config(), command, args));
  }
  server_.latency_monitor().add(command.has(kFast) ? "fast-command" : "command", duration_us / 1000,
                                server_.now_ms() / 1000);
}

void Dispatcher::count_call(Client& client, Command& command, Arguments args, uint64_t ticks) {
  ++command.stats.calls;
  command.stats.total_ticks += ticks;
  if (server_.settings().latency_tracking) {
    if (command.stats.latency == nullptr) [[unlikely]] {
      command.stats.latency = std::make_unique<base::LatencyHistogram>();
    }
    command.stats.latency->record(static_cast<uint64_t>(server_.cycle_clock().to_ns(ticks)));
  }
  ++server_.stats().commands_processed;
  ++client.total_commands;
  if (ticks >= noted_ticks_) [[unlikely]]
    note_call(client, command, args, ticks);
}

Dispatcher::Outcome Dispatcher::gate(Client& client, Command& command, Arguments args,
                                     bool* call_it) {
  const ConfigValues& settings = server_.settings();
  const uint32_t state = server_.state();
  const bool from_script = client.has(kClientScript);
  const bool from_master = client.has(kClientMaster);
  const bool unquestioned = from_script || from_master;
  const RequestFlags flags = flags_of(client, command, args);
  const bool writes = (flags.present & kWrite) != 0;
  *call_it = false;
  const auto refuse = [&](std::string_view error) {
    reject(client, &command, error);
    return Outcome::kDone;
  };

  if (client.has(kClientNeedsAuth) && !command.has(kNoAuth))
    return refuse("NOAUTH Authentication required.");
  if (command.has(kProtected)) {
    const Command& named = command.parent != nullptr ? *command.parent : command;
    const ProtectedAction allowed =
        named.name == "module" ? settings.enable_module_command : settings.enable_debug_command;
    const bool local = client.connection() == nullptr || client.connection()->peer_is_local();
    if (allowed == ProtectedAction::kNo || (allowed == ProtectedAction::kLocal && !local)) {
      return refuse("ERR " + std::string(named.row->name) + " command not allowed. If the enable-" +
                    named.name +
                    "-command option is set to \"local\", you can run it from a local connection, "
                    "otherwise you need to set this option in the configuration file, and then "
                    "restart the server.");
    }
  }
  if (client.has(kClientInMulti) && command.has(kNoMulti)) {
    return refuse("ERR Command not allowed inside a transaction");
  }
  if (client.has(kClientRestricted) && !from_script && forbids(client, command, args))
    return Outcome::kDone;
  if ((state & kStateCluster) != 0 && !unquestioned && refuse_by_slot(client, command, args))
    return Outcome::kDone;
  if (client.has(kClientReplica | kClientMonitor) &&
      command.has(kWrite | kReadOnly | kMayReplicate))
    return refuse("ERR Replica can't interact with the keyspace");
  if ((state & kStateMemoryLimit) != 0 && refuse_out_of_memory(client, command, flags.present))
    return Outcome::kDone;
  if ((state & kStateTrackingFull) != 0) server_.tracking().give_up_some();
  if ((state & kStateDiskError) != 0 && !from_script && (writes || command.full_name == "ping")) {
    if (!from_master) return refuse(server_.disk_error());
    if (writes) go_on_without_disk();
  }
  if ((state & kStateFewReplicas) != 0 && !unquestioned && writes) return refuse(kFewReplicas);
  if ((state & kStateReadOnly) != 0 && !unquestioned && writes) return refuse(kReadOnlyReplica);
  if (client.has(kClientSubscribed) && !client.reply.is_resp3() &&
      !may_run_while_subscribed(command)) {
    return refuse("ERR Can't execute '" + command.full_name +
                  "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                  "this context");
  }
  if ((state & kStateStale) != 0 && !unquestioned && (flags.missing & kStale) != 0)
    return refuse(kStaleReplica);
  const bool needs_dataset = (state & kStateLoading) != 0 && !command.has(kLoading);
  if (needs_dataset || ((state & kStateAsyncLoading) != 0 && command.has(kNoAsyncLoading))) {
    return refuse("LOADING Redis is loading the dataset in memory");
  }
  if ((state & kStateBusy) != 0 && !from_script && !may_run_while_busy(command, args)) {
    return refuse(server_.busy_error());
  }
  if ((state & kStatePaused) != 0 && !from_script && server_.pauses().holds(flags.present)) {
    server_.pauses().postpone(client);
    return Outcome::kPostponed;
  }
  if (client.has(kClientInMulti) && !from_script && !runs_at_once_in_multi(command)) {
    Transaction& transaction = *client.transaction;
    StoredRequest& request = transaction.requests.emplace_back(command, args);
    transaction.command_flags |= flags.present;
    transaction.missing_flags |= flags.missing;
    transaction.memory_usage += request.memory_usage();
    if (!client.has(kClientReplyOff | kClientReplySkip)) client.reply.status("QUEUED");
    return Outcome::kDone;
  }
  if ((state & kStateClusterAudit) != 0) {
    ClusterAudit& audit = server_.cluster_audit();
    unquestioned ? audit.end() : audit.begin(judged_of(client, command, args));
  }
  *call_it = true;
  return Outcome::kDone;
}

bool Dispatcher::forbids(Client& client, Command& command, Arguments args) {
  using Context = acl::Denial::Context;
  const auto context = client.has(kClientInMulti) ? Context::kMulti : Context::kToplevel;
  const auto refusal = server_.access().check(client, command, args, context);
  if (!refusal) return false;
  reject(client, &command, "NOPERM " + acl::refusal_text(*client.user, command, args, *refusal));
  return true;
}

bool Dispatcher::may_run_while_subscribed(const Command& command) const {
  static constexpr std::string_view kNames[] = {"ping",         "subscribe",   "ssubscribe",
                                                "psubscribe",   "unsubscribe", "sunsubscribe",
                                                "punsubscribe", "quit",        "reset"};
  return std::find(std::begin(kNames), std::end(kNames), command.full_name) != std::end(kNames);
}

bool Dispatcher::refuse_out_of_memory(Client& client, Command& command, uint32_t flags) {
  // Room is made before any command; a script's commands find what there was when it began.
  const bool enough = client.has(kClientScript)
                          ? (flags & kDenyOom) == 0 || !server_.memory_limit().is_exceeded()
                          : server_.memory_limit().make_room();
  if (enough || (flags & kDenyOom) == 0) return false;
  reject(client, &command, "OOM command not allowed when used memory > 'maxmemory'.");
  return true;
}

std::vector<SlotGate::Request> Dispatcher::judged_of(Client& client, Command& command,
                                                     Arguments args) {
  if (command.full_name != "exec" || client.transaction == nullptr) return {{command, args}};
  std::vector<SlotGate::Request> requests;
  for (const StoredRequest& request : client.transaction->requests)
    requests.push_back({request.command(), request.words()});
  return requests;
}

bool Dispatcher::refuse_by_slot(Client& client, Command& command, Arguments args) {
  // ASKING is said of the next request, or of a whole transaction.
  if (!client.has(kClientInMulti)) {
    client.set(kClientAsking, client.has(kClientAskingNext));
    client.set(kClientAskingNext, false);
  }
  if (client.has(kClientInternal)) return false;
  const std::string error =
      refusal_of(server_.slot_gate()->judge(judged_of(client, command, args), caller_of(client)));
  if (error.empty()) return false;
  if (command.full_name == "exec") {
    // The error is told as it is, not as the reason of an aborted transaction.
    ++command.stats.rejected_calls;
    end_transaction(server_, client);
    reject(client, nullptr, error);
  } else {
    reject(client, &command, error);
  }
  return true;
}

void Dispatcher::reject(Client& client, Command* command, std::string_view error) {
  if (client.transaction != nullptr) client.transaction->aborted = true;
  if (command != nullptr) ++command->stats.rejected_calls;
  const size_t mark = client.out().mark();
  if (command != nullptr && command->full_name == "exec") {
    end_transaction(server_, client);
    if (error.starts_with("ERR ")) error.remove_prefix(4);
    client.reply.error("EXECABORT Transaction discarded because of: " + std::string(error));
  } else {
    client.reply.error(error);
  }
  count_error(client, client.reply.last_error_mark());
  if (client.has(kClientReplyOff | kClientReplySkip)) client.out().truncate(mark);
}

std::string Dispatcher::unknown_command_error(Arguments args) const {
  const Command* container = server_commands().find(args[0]);
  if (container != nullptr && container->is_container() && args.size() > 1) {
    std::string name(container->full_name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    return "ERR unknown subcommand " + quote(args[1], kMaxShownBytes) + ". Try " + name + " HELP.";
  }
  std::string shown;
  for (size_t i = 1; i < args.size() && shown.size() < kMaxShownBytes; ++i) {
    shown += quote(args[i], kMaxShownBytes - shown.size()) + " ";
  }
  return "ERR unknown command " + quote(args[0], kMaxShownBytes) +
         ", with args beginning with: " + shown;
}

void Dispatcher::count_error(Client& client, size_t mark) {
  const std::string_view text = client.out().since(mark);
  const std::string_view error = text.substr(std::min<size_t>(1, text.size()));
  server_.stats().count_error(error);
  const std::string_view line = error.substr(0, error.find('\r'));
  if (client.master != nullptr) client.master->failed(line);
  if (client.has(kClientReplica)) client.replica->failed(line);
}

}  // namespace latchkey::server
