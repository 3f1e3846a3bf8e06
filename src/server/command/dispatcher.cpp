#include "server/command/dispatcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/similar_word.h"
#include "base/text/up_to_nul.h"
#include "server/client/blocking.h"
#include "server/client/client.h"
#include "server/client/client_info.h"
#include "server/client/master_link.h"
#include "server/client/monitors.h"
#include "server/client/pause.h"
#include "server/client/replica_link.h"
#include "server/client/tracking.h"
#include "server/command/fault_injector.h"
#include "server/command/lock_claims.h"
#include "server/command/transaction.h"
#include "server/memory_limit.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kNeedsAuthentication = "NOAUTH Authentication required.";

// Valkey 9.1 and later does not reveal anything about commands to clients that have not
// authenticated.
bool must_authenticate(const Client& client) {
  return client.has(kClientNeedsAuth) && client.server.edition().is_valkey_since({9, 1});
}

// What the client of an unknown command is shown of its arguments.
constexpr size_t kMaxShownBytes = 128;

// Any of these flags keeps a command off the fast path, as kGatedClientFlags do with a client.
constexpr uint32_t kGatedCommandFlags = kProtected | kMayChangeServer;

// A word as it is shown to a client: as the reference's, it ends at a NUL.
std::string quote(std::string_view text, size_t most) {
  return "'" + std::string(base::up_to_nul(text.substr(0, most))) + "'";
}

// For the log.
std::string excerpt(std::string_view word) {
  return std::string(word.substr(0, kMaxShownBytes));
}

}  // namespace

const CommandTable& Dispatcher::server_commands() const {
  return server_.commands();
}

Dispatcher::Dispatcher(Server& server)
    : server_(server), meters_(server), calls_(server.buffer_pool()) {}

Dispatcher::~Dispatcher() = default;

void Dispatcher::Calls::swap(Calls& other) noexcept {
  std::swap(last_ticks, other.last_ticks);
  std::swap(depth, other.depth);
  std::swap(serving, other.serving);
  std::swap(in_script, other.in_script);
  std::swap(metered, other.metered);
  std::swap(has_pushes, other.has_pushes);
  std::swap(drops_pushes, other.drops_pushes);
  pushes.swap(other.pushes);
  last_pushes.swap(other.last_pushes);
}

std::unique_ptr<Dispatcher::Calls> Dispatcher::suspend_calls() {
  auto calls = std::make_unique<Calls>(server_.buffer_pool());
  calls->swap(calls_);
  inactive_.push_back(calls.get());
  return calls;
}

void Dispatcher::resume_calls(std::unique_ptr<Calls> calls) {
  LK_ASSERT(calls_.depth == 0);
  std::erase(inactive_, calls.get());
  calls_.swap(*calls);
}

std::shared_ptr<Dispatcher::Calls> Dispatcher::hold_pushes(Client& client, bool drop) {
  auto calls = std::make_shared<Calls>(server_.buffer_pool());
  calls->serving = &client;
  calls->drops_pushes = drop;
  inactive_.push_back(calls.get());
  return calls;
}

void Dispatcher::release_pushes(Calls& calls) {
  std::erase(inactive_, &calls);
  if (!calls.drops_pushes && !calls.serving->has(kClientClosing))
    send_pushes(*calls.serving, calls);
}

Dispatcher::Calls* Dispatcher::calls_for(const Client& client) {
  if (&client == calls_.serving) return &calls_;
  if (!client.has(kClientSuspended | kClientBlocked)) [[likely]]
    return nullptr;
  const auto it = std::find_if(inactive_.begin(), inactive_.end(),
                               [&](const Calls* calls) { return calls->serving == &client; });
  return it == inactive_.end() ? nullptr : *it;
}

size_t Dispatcher::held_push_bytes(const Client& client) {
  const Calls* calls = calls_for(client);
  return calls == nullptr ? 0 : calls->pushes.size() + calls->last_pushes.size();
}

resp::OutputBuffer& Dispatcher::push_out(Client& client) {
  Calls* calls = calls_for(client);
  if (calls == nullptr) return client.out();
  return calls->room_for_push(calls->pushes);
}

resp::OutputBuffer& Dispatcher::last_push_out(Client& client) {
  Calls* calls = calls_for(client);
  if (calls == nullptr) return client.out();
  return calls->room_for_push(calls->last_pushes);
}

resp::OutputBuffer& Dispatcher::Calls::room_for_push(resp::OutputBuffer& buffer) {
  has_pushes = true;
  if (drops_pushes) buffer.clear();
  return buffer;
}

void Dispatcher::send_pushes_first(Client& client) {
  if (&client != calls_.serving || calls_.depth != 1 || !calls_.has_pushes) return;
  // Where the client wants no reply, its output is cut to what it was before the request.
  const bool loses_output = client.has(kClientReplyOff | kClientReplySkip);
  if (loses_output || (server_.state() & (kStateRecorded | kStateFaults)) != 0) return;
  send_pushes(client, calls_);
}

void Dispatcher::send_pushes(Client& client, Calls& calls) {
  calls.has_pushes = false;
  client.out().append(calls.pushes);
  client.out().append(calls.last_pushes);
  calls.pushes.clear();
  calls.last_pushes.clear();
}

void Dispatcher::begin_batch() {
  calls_.last_ticks = base::CycleClock::ticks();
}

// Every request comes through here: left to itself the compiler inlines it at times, and a call
// more costs 27 instructions of a thousand.
[[gnu::always_inline]] inline Dispatcher::Outcome Dispatcher::dispatch(Client& client,
                                                                       Arguments args,
                                                                       Command* command) {
  if (command == nullptr && (command = lookup(args)) == nullptr) [[unlikely]]
    return refuse_unknown(client, args);
  client.last_command = command;
  if (!command->accepts_word_count(args.size())) [[unlikely]]
    return refuse_word_count(client, *command, args);
  if (((client.flags & kGatedClientFlags) | (server_.state() & command->gating_states) |
       (command->flags & kGatedCommandFlags)) != 0) [[unlikely]]
    return dispatch_gated(client, *command, args);
  perform(client, *command, args);
  return Outcome::kDone;
}

Dispatcher::Outcome Dispatcher::execute(Client& client, Arguments args, Command* command) {
  if (client.has(kClientReplySkip | kClientReplySkipNext | kClientReplica | kClientMaster |
                 kClientCaching)) [[unlikely]] {
    if (client.has(kClientMaster)) return dispatch_for_master(client, args, command);
    if (client.has(kClientReplica)) return dispatch_for_replica(client, args, command);
    client.set(kClientReplySkip, client.has(kClientReplySkipNext));
    client.set(kClientReplySkipNext, false);
    if (client.has(kClientCaching)) return dispatch_with_caching_flag(client, args, command);
  }
  return dispatch(client, args, command);
}

Dispatcher::Outcome Dispatcher::dispatch_with_caching_flag(Client& client, Arguments args,
                                                           Command* command) {
  if (command == nullptr) command = lookup(args);
  const Outcome outcome = dispatch(client, args, command);
  const bool is_of_client =
      command != nullptr && command->parent != nullptr && command->parent->full_name == "client";
  if (outcome == Outcome::kDone && !is_of_client && !client.has(kClientInMulti | kClientBlocked))
    client.set(kClientCaching, false);
  return outcome;
}

Dispatcher::Outcome Dispatcher::dispatch_for_replica(Client& client, Arguments args,
                                                     Command* command) {
  const size_t before = client.out().size();
  client.last_command = nullptr;
  const Outcome outcome = dispatch(client, args, command);
  if (client.out().size() <= before || client.has(kClientClosing)) return outcome;
  // A reply would stand in the middle of the stream.
  const std::string name =
      client.last_command != nullptr ? client.last_command->full_name : excerpt(args[0]);
  server_.log().warning("Replica generated a reply to command '" + name +
                        "', disconnecting it: " + describe_for_log(client));
  client.close();
  return outcome;
}

Dispatcher::Outcome Dispatcher::dispatch_for_master(Client& client, Arguments args,
                                                    Command* command) {
  const size_t mark = client.out().mark();
  client.last_command = nullptr;
  server_.set_state(kStateApplyingMaster, true);
  const Outcome outcome = dispatch(client, args, command);
  server_.set_state(kStateApplyingMaster, false);
  client.out().truncate(mark);
  return outcome;
}

void Dispatcher::apply_despite_disk_error() {
  if (!server_.settings().replica_ignore_disk_write_errors)
    server_.panic("Replica was unable to write command to disk.", __FILE__, __LINE__);
  constexpr int64_t kIntervalMs = 10'000;
  if (server_.machine_ms() - disk_warned_ms_ <= kIntervalMs) return;
  disk_warned_ms_ = server_.machine_ms();
  server_.log().warning("Replica is applying a command even though it is unable to write to disk.");
}

Dispatcher::Outcome Dispatcher::refuse_unknown(Client& client, Arguments args) {
  log_unknown_command(client, args);
  if (must_authenticate(client)) {
    reject_request(client, nullptr, args, kNeedsAuthentication);
    return Outcome::kDone;
  }
  reject_request(client, nullptr, args, unknown_command_error(args));
  return Outcome::kDone;
}

Dispatcher::Outcome Dispatcher::refuse_word_count(Client& client, Command& command,
                                                  Arguments args) {
  if ((command.flags & kNoAuth) == 0 && must_authenticate(client)) {
    reject_request(client, &command, args, kNeedsAuthentication);
    return Outcome::kDone;
  }
  reject_request(client, &command, args,
                 "ERR wrong number of arguments for '" + command.full_name + "' command");
  return Outcome::kDone;
}

Dispatcher::Outcome Dispatcher::dispatch_gated(Client& client, Command& command, Arguments args) {
  const bool only_memory = (server_.state() & command.gating_states) == kStateMemoryLimit &&
                           (client.flags & kGatedClientFlags) == 0 &&
                           (command.flags & kGatedCommandFlags) == 0;
  // A limit that is not reached asks nothing of the gate.
  if (only_memory && server_.memory_limit().has_room()) {
    perform(client, command, args);
    return Outcome::kDone;
  }
  const Origin origin = client.has(kClientMaster) ? Origin::kMaster : Origin::kClient;
  const Admission answer = admit(server_, {origin, client, command, args});
  switch (answer.verdict) {
    case Admission::Verdict::kRun:
      if ((server_.state() & kStateFaults) != 0) return call_with_faults(client, command, args);
      call(client, command, args);
      break;
    case Admission::Verdict::kQueue:
      enqueue(client, command, args);
      break;
    case Admission::Verdict::kRefuse:
      refuse(client, command, args, answer);
      break;
    case Admission::Verdict::kPostpone:
      server_.pauses().postpone(client);
      return postponed(client);
    case Admission::Verdict::kMove:
      client.set(kClientReplySkipNext, client.has(kClientReplySkip));
      return Outcome::kPostponed;
  }
  return Outcome::kDone;
}

// What holds for a request alone holds for it when it comes again.
Dispatcher::Outcome Dispatcher::postponed(Client& client) {
  client.set(kClientReplySkipNext, client.has(kClientReplySkip));
  // ASKING before MULTI is said of all up to EXEC.
  if (!client.has(kClientInMulti)) client.set(kClientAskingNext, client.has(kClientAsking));
  return Outcome::kPostponed;
}

void Dispatcher::refuse(Client& client, Command& command, Arguments args, const Admission& answer) {
  if (!answer.plain_error) return reject_request(client, &command, args, answer.error);
  const Recording recording = begin_recording(client, &command, args);
  refuse_plainly(client, command, answer.error);
  end_recording(client, recording);
}

void Dispatcher::refuse_plainly(Client& client, Command& command, std::string_view error) {
  ++command.stats.rejected_calls;
  if (command.has(kRunsQueued)) end_transaction(server_, client);
  reject(client, nullptr, error);
}

void Dispatcher::reject_request(Client& client, Command* command, Arguments args,
                                std::string_view error) {
  const Recording recording = begin_recording(client, command, args);
  reject(client, command, error);
  end_recording(client, recording);
}

void Dispatcher::enqueue(Client& client, Command& command, Arguments args) {
  Transaction& transaction = *client.transaction;
  // What will not run anyway takes no memory, and is no reason to refuse EXEC.
  if (!transaction.aborted && !client.watched_key_changed) {
    StoredRequest& request = transaction.requests.emplace_back(command, args);
    const FlagFinder find = command.row->extras.find_flags;
    const uint32_t flags = find != nullptr ? find(server_, args, command.flags) : command.flags;
    transaction.command_flags |= flags;
    transaction.missing_flags |= ~flags;
    transaction.memory_usage += request.memory_usage();
    if (int64_t database = 0; command.full_name == "select" &&
                              base::parse_int64(args[1], &database) && database >= 0 &&
                              database < server_.database_count())
      transaction.database = static_cast<int>(database);
  }
  if (!client.has(kClientReplyOff | kClientReplySkip)) client.reply.status("QUEUED");
}

bool Dispatcher::run_queued(Client& client, Command& command, Arguments args) {
  if (!is_free_for_exec(client, command)) {
    const Admission answer = admit(server_, {Origin::kExec, client, command, args});
    if (answer.verdict == Admission::Verdict::kRefuse) {
      client.reply.error(answer.error);
      count_error(client, client.reply.last_error_mark());
      return false;
    }
  }
  if ((server_.state() & kStateFaults) != 0) [[unlikely]] {
    const std::string_view error = fault_of_nested(client, command, args);
    if (!error.empty()) {
      const Recording recording = begin_recording(client, &command, args);
      client.reply.error(error);
      count_error(client, client.reply.last_error_mark());
      end_recording(client, recording);
      return false;
    }
  }
  call_nested(client, command, args);
  return true;
}

void Dispatcher::run_for_script(Client& client, Command& command, Arguments args,
                                ScriptCall& script) {
  if (!is_free_for_scripts(command, server_.state(), script)) {
    const Admission answer =
        admit(server_, {Origin::kScript, *script.caller, command, args, &script});
    if (answer.verdict == Admission::Verdict::kRefuse)
      return reject_request(client, &command, args, answer.error);
  }
  if ((server_.state() & kStateFaults) != 0) [[unlikely]] {
    const std::string_view error = fault_of_nested(client, command, args);
    if (!error.empty()) return reject_request(client, &command, args, error);
  }
  script.has_written |= command.has(kWrite);
  call_nested(client, command, args);
}

void Dispatcher::call_nested(Client& client, Command& command, Arguments args) {
  LockClaims* const claims = server_.lock_claims();
  if (claims != nullptr) claims->begin_nested(command, args, client.has(kClientScript));
  call(client, command, args);
  if (claims != nullptr) claims->end_nested();
  // A script may change any number of collections. It holds none of them between two commands.
  server_.pack_collections();
}

void Dispatcher::retry(Client& client, Command& command, Arguments args) {
  const size_t mark = client.out().mark();
  const Admission answer = admit(server_, {Origin::kRetry, client, command, args});
  if (answer.verdict == Admission::Verdict::kRefuse) {
    reject(client, &command, answer.error);
    return note_late_reply(client, mark);
  }
  const MeterMark outer_mark = mark_meter(client);
  perform(client, command, args);
  calls_.metered = outer_mark;
  remember_reads(client, command, args);
  if (client.has(kClientBlocked)) return;
  client.set(kClientCaching, false);
  note_late_reply(client, mark);
}

std::string_view Dispatcher::replay(Client& client, Command& command, Arguments args) {
  CommandContext ctx = context_of(client, command, args);
  client.last_command = &command;
  const uint64_t errors = client.reply.error_count();
  command.handler(ctx);
  if (client.reply.error_count() == errors) return {};
  return count_error(client, client.reply.last_error_mark());
}

void Dispatcher::call(Client& client, Command& command, Arguments args) {
  const bool monitored = (server_.state() & kStateMonitored) != 0;
  // What calls other commands is shown before them.
  const bool show_first = command.has(kSkipMonitor);
  if (monitored && show_first) server_.monitors().show(client, command, args);
  const Recording recording = begin_recording(client, &command, args);
  const bool outer_in_script = std::exchange(calls_.in_script, client.has(kClientScript));
  const MeterMark outer_mark = mark_meter(client);
  const Client& sender = calls_.serving != nullptr ? *calls_.serving : client;
  const bool from_import_source = sender.has(kClientImportSource);
  const bool outer_source = from_import_source && server_.set_serves_import_source(true);
  perform(client, command, args);
  if (from_import_source) server_.set_serves_import_source(outer_source);
  calls_.metered = outer_mark;
  calls_.in_script = outer_in_script;
  end_recording(client, recording);
  remember_reads(client, command, args);
  if (monitored && !show_first) server_.monitors().show(client, command, args);
}

// --- What is there for tests --------------------------------------------------------------------

Call Dispatcher::describe_call(Client& client, const Command* command, Arguments args) const {
  using enum Call::Context;
  const bool in_script = client.has(kClientScript);
  Client& sender = calls_.serving != nullptr ? *calls_.serving : client;
  const Call::Context context = in_script ? kScript : calls_.depth > 0 ? kMulti : kPlain;
  return {sender, command, args, client.database, context};
}

Dispatcher::Outcome Dispatcher::call_with_faults(Client& client, Command& command, Arguments args) {
  FaultInjector& injector = server_.fault_injector();
  const FaultInjector::Answer answer = injector.before(describe_call(client, &command, args));
  if (answer.verdict == FaultInjector::Verdict::kPostpone) return postponed(client);
  if (answer.verdict == FaultInjector::Verdict::kRun) {
    const size_t mark = client.out().mark();
    call(client, command, args);
    injector.replied(client, mark);
    return Outcome::kDone;
  }
  const Recording recording = begin_recording(client, &command, args);
  if (answer.verdict == FaultInjector::Verdict::kRefuse)
    refuse_plainly(client, command, answer.error);
  end_recording(client, recording);
  return Outcome::kDone;
}

std::string_view Dispatcher::fault_of_nested(Client& client, Command& command, Arguments args) {
  return server_.fault_injector().before(describe_call(client, &command, args)).error;
}

Dispatcher::Recording Dispatcher::begin_recording(Client& client, const Command* command,
                                                  Arguments args) {
  if ((server_.state() & kStateRecorded) == 0) [[likely]]
    return {};
  return {server_.call_listener().begin(describe_call(client, command, args)),
          base::CycleClock::ticks(), client.out().mark()};
}

void Dispatcher::end_recording(Client& client, const Recording& recording) {
  if (recording.id == 0) [[likely]]
    return;
  CallListener& listener = server_.call_listener();
  const int64_t duration_us =
      server_.cycle_clock().to_us(base::CycleClock::ticks() - recording.started);
  if (client.has(kClientBlocked) && client.block != nullptr) {
    listener.waits(recording.id, duration_us);
  } else {
    listener.end(recording.id, duration_us,
                 client.out().copy_since(recording.mark, CallListener::kReplyBytes));
  }
}

void Dispatcher::note_late_reply(Client& client, size_t mark) {
  if ((server_.state() & (kStateRecorded | kStateFaults)) == 0) [[likely]]
    return;
  if ((server_.state() & kStateRecorded) != 0) {
    server_.call_listener().wait_ended(client,
                                       client.out().copy_since(mark, CallListener::kReplyBytes));
  }
  if ((server_.state() & kStateFaults) != 0) server_.fault_injector().late_reply(client, mark);
}

void Dispatcher::wait_ended(Client& client, BlockEnd end, size_t mark) {
  const bool served = end == BlockEnd::kServed;
  if ((server_.state() & kStateRecorded) != 0 && !served) {
    server_.call_listener().wait_ended(client,
                                       client.out().copy_since(mark, CallListener::kReplyBytes));
  }
  if ((server_.state() & kStateFaults) != 0 && end != BlockEnd::kClosed) {
    server_.fault_injector().wait_ended(client,
                                        served ? std::nullopt : std::optional<size_t>(mark));
  }
}

void Dispatcher::answer_waiting(uint64_t client_id, const std::function<void(Client&)>& reply) {
  Client* const client = server_.clients().find(client_id);
  if (client == nullptr || !client->has(kClientBlocked)) return;
  const size_t mark = client->out().mark();
  const uint64_t errors = client->reply.error_count();
  reply(*client);
  if (client->reply.error_count() != errors) count_error(*client, client->reply.last_error_mark());
  if (client->has(kClientReplyOff | kClientReplySkip)) client->out().truncate(mark);
  note_late_reply(*client, mark);
  client->unblock(BlockEnd::kServed);
}

// --- Calls --------------------------------------------------------------------------------------

CommandContext Dispatcher::context_of(Client& client, const Command& command, Arguments args) {
  return {server_,
          client,
          command,
          args,
          server_.database(client.database),
          client.reply,
          server_.events(),
          server_.propagation()};
}

void Dispatcher::perform(Client& client, Command& command, Arguments args) {
  CommandContext ctx = context_of(client, command, args);
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
  if (client.reply.error_count() != errors) [[unlikely]]
    count_failure(client, command, errors);
  if ((flags & (kClientReplyOff | kClientReplySkip | kClientNoTouch)) != 0) [[unlikely]] {
    server_.environment().freeze_access = false;
    if ((client.flags & (kClientReplyOff | kClientReplySkip)) != 0) client.out().truncate(mark);
  }
  if (nested) return;
  calls_.serving = nullptr;
  if (calls_.has_pushes) [[unlikely]]
    send_pushes(client, calls_);
  if (server_.blocking().any_ready()) [[unlikely]]
    server_.blocking().serve();
}

void Dispatcher::count_failure(Client& client, Command& command, uint64_t errors) {
  ++command.stats.failed_calls;
  // Those of a script's commands are counted already.
  if (!client.has(kClientErrorCounted)) {
    const bool runs_script = command.has(kMayTakeLong) && command.row->group == Group::kScripting;
    count_error(client, client.reply.last_error_mark(), runs_script);
  }
  client.set(kClientErrorCounted, false);
  // An error within EXEC is not one of EXEC.
  client.reply.forget_errors_since(errors);
}

void Dispatcher::remember_reads(Client& client, const Command& command, Arguments args) {
  // The commands of a transaction or script count as reads of the client that runs it.
  Client& reader = calls_.serving != nullptr ? *calls_.serving : client;
  // What calls other commands reads by them.
  if (reader.has(kClientTracking) && command.has(kReadOnly) && !command.has(kSkipMonitor))
    server_.tracking().remember(reader, command, args);
}

Dispatcher::MeterMark Dispatcher::mark_meter(Client& client) {
  return std::exchange(calls_.metered,
                       {client.out().size(), server_.propagation().replica_bytes()});
}

void Dispatcher::note_call(Client& client, Command& command, Arguments args, uint64_t ticks) {
  if (!meters_.empty()) {
    Client& sender = calls_.serving != nullptr ? *calls_.serving : client;
    const size_t size = client.out().size();
    const uint64_t stream = server_.propagation().replica_bytes();
    meters_.notify({.sender = sender,
                    .command = command,
                    .args = args,
                    .database = client.database,
                    .ticks = ticks,
                    .reply_bytes = size - std::min(size, calls_.metered.output),
                    .stream_bytes = stream - std::min(stream, calls_.metered.stream),
                    .nested = calls_.depth > 0,
                    .in_script = client.has(kClientScript)});
  }
  meters_.record(client, command, args, ticks);
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
  if (meters_.wants(ticks)) [[unlikely]]
    note_call(client, command, args, ticks);
}

void Dispatcher::reject(Client& client, Command* command, std::string_view error) {
  if (client.transaction != nullptr) client.transaction->aborted = true;
  if (command != nullptr) ++command->stats.rejected_calls;
  const size_t mark = client.out().mark();
  if (command != nullptr && command->has(kRunsQueued) && !client.has(kClientScript)) {
    end_transaction(server_, client);
    if (error.starts_with("ERR ")) error.remove_prefix(4);
    client.reply.error("EXECABORT Transaction discarded because of: " + std::string(error));
  } else {
    client.reply.error(error);
  }
  count_error(client, client.reply.last_error_mark());
  if (client.has(kClientReplyOff | kClientReplySkip)) client.out().truncate(mark);
}

void Dispatcher::log_unknown_command(Client& client, Arguments args) const {
  base::Logger& log = server_.log();
  if (!log.enabled(base::LogLevel::kVerbose)) return;
  // Of what comes through replication a louder line tells (count_error).
  if (client.master != nullptr || client.has(kClientReplica)) return;
  const bool hidden = server_.settings().hide_user_data_from_log;
  std::string line = "Client id=" + std::to_string(client.id) + " sent an unknown command";
  if (!hidden) line.append(" ").append(quote(args[0], kMaxShownBytes));
  const std::string_view meant =
      hidden ? "" : base::most_similar(args[0], server_commands().names());
  if (!meant.empty()) line.append(". Did it mean ").append(meant).append("?");
  log.verbose(line);
}

std::string Dispatcher::unknown_command_error(Arguments args) const {
  const Command* container = server_commands().find(args[0]);
  if (container != nullptr && container->is_container() && args.size() > 1) {
    std::string name(container->full_name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    return "ERR unknown subcommand " + quote(args[1], kMaxShownBytes) + ". Try " + name + " HELP.";
  }
  const std::string error = "ERR unknown command " + quote(args[0], kMaxShownBytes);
  // Older releases tell of arguments also where there are none.
  if (args.size() == 1 && server_.edition().has({8, 6})) return error;
  std::string shown;
  for (size_t i = 1; i < args.size() && shown.size() < kMaxShownBytes; ++i) {
    shown += quote(args[i], kMaxShownBytes - shown.size()) + " ";
  }
  return error + ", with args beginning with: " + shown;
}

std::string_view Dispatcher::count_error(Client& client, size_t mark, bool by_script) {
  const std::string_view text = client.out().since(mark);
  const std::string_view error = text.substr(std::min<size_t>(1, text.size()));
  server_.stats().count_error(error, by_script);
  const std::string_view line = error.substr(0, error.find('\r'));
  if (client.master != nullptr) client.master->failed(line);
  if (client.has(kClientReplica)) client.replica->failed(line);
  return line;
}

}  // namespace latchkey::server
