#include "server/command/admission.h"

#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "server/acl/access_control.h"
#include "server/client/client.h"
#include "server/client/client_eviction.h"
#include "server/client/pause.h"
#include "server/client/tracking.h"
#include "server/command/cluster_audit.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/space_gate.h"
#include "server/command/transaction.h"
#include "server/emulation/later_options.h"
#include "server/emulation/valkey_words.h"
#include "server/memory_limit.h"
#include "server/server.h"

namespace latchkey::server {

namespace {

using Verdict = Admission::Verdict;

// A request while it is judged.
struct Judged {
  Server& server;
  const AdmissionRequest& request;
  uint32_t state;  // ServerState bits that count for it
  // CommandFlag bits that the request has, and those that it lacks. EXEC has what any queued
  // request has, and lacks what any of them lacks.
  uint32_t present;
  uint32_t missing;
  Admission result{};

  Client& client() const { return request.client; }
  const Command& command() const { return request.command; }
  bool is_from_script() const { return request.origin == Origin::kScript; }
  bool writes() const { return (present & kWrite) != 0; }

  // Each decides, and says so.
  bool refuse(std::string_view error) {
    result.verdict = Verdict::kRefuse;
    result.error = error;
    return true;
  }
  bool end_with(Verdict verdict) {
    result.verdict = verdict;
    return true;
  }
};

// --- Rules: true when the rule decides -----------------------------------------------------------

// The directive that enables a command with kProtected.
struct Enabling {
  ProtectedAction allowed;
  std::string_view directive;
};

Enabling enabling_of(std::string_view command, const ConfigValues& settings) {
  if (command == "debug") return {settings.enable_debug_command, "enable-debug-command"};
  if (command == "module") return {settings.enable_module_command, "enable-module-command"};
  return {settings.enable_test_commands, "enable-test-commands"};
}

bool protected_command(Judged& judged) {
  // A stranger learns first that it is one, since Valkey 9.1.
  if (judged.client().has(kClientNeedsAuth) && judged.server.edition().is_valkey_since({9, 1}))
    return false;
  const Command& command = judged.command();
  const Command& named = command.parent != nullptr ? *command.parent : command;
  const auto [allowed, directive] = enabling_of(named.name, judged.server.settings());
  const bool local =
      judged.client().connection() == nullptr || judged.client().connection()->peer_is_local();
  if (allowed == ProtectedAction::kYes || (allowed == ProtectedAction::kLocal && local))
    return false;
  return judged.refuse("ERR " + std::string(named.row->name) + " command not allowed. If the " +
                       std::string(directive) +
                       " option is set to \"local\", you can run it from a local "
                       "connection, otherwise you need to set this option in the configuration "
                       "file, and then restart the server.");
}

bool another_server(Judged& judged) {
  SpaceGate* gate = judged.server.space_gate();
  if (gate == nullptr) return false;
  const SpaceGate::Answer answer =
      gate->ask(judged.client(), judged.command(), judged.request.args);
  if (answer.verdict == SpaceGate::Verdict::kRefused) return judged.refuse(answer.error);
  return answer.verdict == SpaceGate::Verdict::kGoes && judged.end_with(Verdict::kHandOver);
}

bool not_in_space(Judged& judged) {
  return judged.refuse("ERR " + std::string(judged.command().row->name) +
                       " is not available in a space, which has no persistence, no replication "
                       "and no cluster");
}

bool authentication(Judged& judged) {
  return judged.refuse("NOAUTH Authentication required.");
}

bool not_in_multi(Judged& judged) {
  if (judged.server.edition().is_valkey_since({9, 0}))
    return judged.refuse("ERR Command '" + judged.command().full_name +
                         "' not allowed inside a transaction");
  return judged.refuse("ERR Command not allowed inside a transaction");
}

// What DEBUG can allow to scripts is what tests use. Not such as waits, runs scripts, or is about
// the client itself: it would end the server, as it may end the reference.
bool not_from_scripts(Judged& judged) {
  const std::string& name = judged.command().full_name;
  const bool is_harmless = name == "debug" || name == "client|list" || name == "client|info";
  if (is_harmless && judged.server.debug_settings().scripts_may_debug) return false;
  return judged.refuse("ERR This Redis command is not allowed from script");
}

// Why EXEC does not run a queued request.
std::string_view text_of(acl::Forbidden what) {
  switch (what) {
    case acl::Forbidden::kDatabase:
      return "no permission to access the database";
    case acl::Forbidden::kCommand:
      return "no permission to execute the command or subcommand";
    case acl::Forbidden::kKey:
      return "no permission to touch the specified keys";
    case acl::Forbidden::kChannel:
      break;
  }
  return "no permission to access one of the channels used as arguments to the command";
}

bool permission(Judged& judged) {
  using Context = acl::Denial::Context;
  const AdmissionRequest& request = judged.request;
  Client& client = judged.client();
  Context context = client.has(kClientInMulti) ? Context::kMulti : Context::kToplevel;
  if (request.origin == Origin::kExec) context = Context::kMulti;
  if (request.origin == Origin::kScript) context = Context::kScript;
  const auto refusal = judged.server.access().check(client, request.command, request.args, context);
  if (!refusal) return false;
  if (request.origin == Origin::kExec) {
    return judged.refuse(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the "
        "EXEC call. This command is no longer allowed for the following reason: " +
        std::string(text_of(refusal->what)));
  }
  const std::string text = acl::refusal_text(judged.server.edition(), *client.user, request.command,
                                             request.args, *refusal);
  return judged.refuse((judged.is_from_script() ? "ERR ACL failure in script: " : "NOPERM ") +
                       text);
}

// Calls fn with what is judged by its slots: the request itself, or for EXEC all that is queued.
template <typename Fn>
auto with_requests_for_slots(const AdmissionRequest& request, Fn&& fn) {
  const Transaction* transaction = request.client.transaction.get();
  if (!request.command.has(kRunsQueued) || transaction == nullptr) {
    const SlotGate::Request one{request.command, request.args};
    return fn(std::span(&one, 1));
  }
  std::vector<SlotGate::Request> queued;
  queued.reserve(transaction->requests.size());
  for (const StoredRequest& each : transaction->requests)
    queued.push_back({each.command(), each.words()});
  return fn(std::span<const SlotGate::Request>(queued));
}

// Whether the answer hangs on where a queued request's keys are, while it may have a SELECT before
// it: EXEC is judged by the database of each.
bool waits_for_exec(const Judged& judged, const SlotGate::Answer& answer) {
  using enum SlotGate::Verdict;
  const bool by_keys = answer.verdict == kTryAgain || answer.verdict == kAskElsewhere;
  return by_keys && judged.client().has(kClientInMulti) && judged.server.database_count() > 1 &&
         !judged.command().has(kRunsQueued);
}

bool slot(Judged& judged) {
  Client& client = judged.client();
  // ASKING is said of the next request, or of a whole transaction.
  if (!client.has(kClientInMulti)) {
    client.set(kClientAsking, client.has(kClientAskingNext));
    client.set(kClientAskingNext, false);
  }
  if (client.has(kClientInternal)) return false;
  const SlotGate::Answer answer =
      with_requests_for_slots(judged.request, [&](std::span<const SlotGate::Request> requests) {
        return judged.server.slot_gate()->judge(requests, caller_of(client));
      });
  if (waits_for_exec(judged, answer)) return false;
  const std::string error = refusal_of(answer);
  if (error.empty()) return false;
  judged.result.plain_error = judged.command().has(kRunsQueued);
  return judged.refuse(error);
}

// A replica without a cluster sends clients that can go elsewhere to its master.
bool redirect(Judged& judged) {
  Server& server = judged.server;
  const bool reads_here = !judged.writes() && judged.client().has(kClientReadsAnywhere);
  if (!server.is_replica() || server.in_cluster() || reads_here) return false;
  // While a failover is under way the master would send the client back.
  if ((judged.state & kStatePaused) != 0) return judged.end_with(Verdict::kPostpone);
  judged.result.plain_error = judged.command().has(kRunsQueued);
  const ConfigValues& settings = server.settings();
  return judged.refuse("REDIRECT " + settings.replicaof_host + ":" +
                       std::to_string(settings.replicaof_port));
}

// Whether the slot is not the one that the script keeps to, if it keeps to one.
bool leaves_its_slot(ScriptCall& script, int slot) {
  if (slot == kNoSlot || script.any_slot) return false;
  if (script.slot == kNoSlot) script.slot = slot;
  return script.slot != slot;
}

bool slot_of_script(Judged& judged) {
  using enum SlotGate::Verdict;
  const SlotGate::Request request{judged.command(), judged.request.args};
  const SlotGate::Answer answer =
      judged.server.slot_gate()->judge({&request, 1}, caller_of(judged.client()));
  switch (answer.verdict) {
    case kCrossSlot:
      return judged.refuse("ERR Command '" + judged.command().full_name +
                           "' in script attempted to access keys that don't hash to the same slot");
    case kNotServed:
      return judged.refuse("ERR Script attempted to access a slot not served");
    case kDown:
      return judged.refuse("ERR Script attempted to execute a command while the cluster is down");
    case kDownForWrites:
      return judged.refuse(
          "ERR Script attempted to execute a write command while the cluster is down and readonly");
    case kTryAgain:
    case kElsewhere:
    case kAskElsewhere:
      return judged.refuse("ERR Script attempted to access a non local key in a cluster node");
    case kServed:
      break;
  }
  return leaves_its_slot(*judged.request.script, answer.slot) &&
         judged.refuse("ERR Script attempted to access keys that do not hash to the same slot");
}

// Makes room before any request, as the reference does: reads evict, too. Before keys go clients
// that take too much.
bool memory(Judged& judged) {
  if (judged.request.origin == Origin::kClient && judged.server.memory_limit().is_exceeded() &&
      judged.server.client_eviction().enforce(&judged.client()))
    return judged.refuse(kOutOfMemory);
  const bool enough = judged.server.memory_limit().make_room();
  // Keys of slots that are being imported cannot be evicted yet, but will be. Valkey ends the
  // import.
  if (judged.client().has(kClientInternal) &&
      judged.server.settings().maxmemory_policy != MaxmemoryPolicy::kNoeviction &&
      !judged.server.edition().is_valkey())
    return false;
  return !enough && (judged.present & kDenyOom) != 0 && judged.refuse(kOutOfMemory);
}

// A script's commands find what there was when it began.
bool memory_of_script(Judged& judged) {
  const ScriptCall& script = *judged.request.script;
  return script.out_of_memory && !script.allow_oom && !script.has_written &&
         judged.refuse(kOutOfMemory);
}

bool tracking_room(Judged& judged) {
  judged.server.tracking().give_up_some();
  return false;
}

bool disk_error(Judged& judged) {
  if (!judged.writes() && judged.command().full_name != "ping") return false;
  return judged.refuse(judged.server.disk_error());
}

bool disk_error_of_master(Judged& judged) {
  judged.server.dispatcher().apply_despite_disk_error();
  return false;
}

bool few_replicas(Judged& judged) {
  return judged.refuse(kFewReplicas);
}

bool read_only_replica(Judged& judged) {
  return judged.refuse(kReadOnlyReplica);
}

bool read_only_script(Judged& judged) {
  return judged.request.script->read_only &&
         judged.refuse("ERR Write commands are not allowed from read-only scripts.");
}

bool read_only_call(Judged& judged) {
  return judged.request.script->read_only &&
         judged.refuse("ERR Can not execute a script with write flag using *_ro command.");
}

bool subscriber(Judged& judged) {
  if (judged.client().reply.is_resp3() || judged.command().has(kWhileSubscribed)) return false;
  return judged.refuse("ERR Can't execute '" + judged.command().full_name +
                       "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                       "allowed in this context");
}

bool stale(Judged& judged) {
  return judged.refuse(judged.is_from_script()
                           ? "ERR Can not execute the command on a stale replica"
                           : kStaleReplica);
}

bool loading(Judged& judged) {
  return judged.refuse(
      in_words_of(judged.server, "LOADING Redis is loading the dataset in memory"));
}

bool busy(Judged& judged) {
  return !judged.command().has(kAllowBusy) &&
         judged.refuse(in_words_of(judged.server, judged.server.busy_error()));
}

bool replica_or_monitor(Judged& judged) {
  return judged.refuse("ERR Replica can't interact with the keyspace");
}

// Options that the release has not are what any unknown word is to it.
bool later_option(Judged& judged) {
  const LaterOptions* const later = judged.command().later_options;
  if (later == nullptr) return false;
  const size_t own_words = judged.command().parent == nullptr ? 1 : 2;
  return later->used_by(judged.request.args.subspan(own_words)) &&
         judged.refuse("ERR syntax error");
}

// Replicas go on: what they acknowledge is what shutdowns and failovers pause clients for.
bool paused(Judged& judged) {
  return !judged.client().has(kClientReplica) && judged.server.pauses().holds(judged.present) &&
         judged.end_with(Verdict::kPostpone);
}

bool queued(Judged& judged) {
  return !judged.command().has(kNotQueued) && judged.end_with(Verdict::kQueue);
}

bool cluster_audit(Judged& judged) {
  ClusterAudit& audit = judged.server.cluster_audit();
  if (judged.request.origin == Origin::kMaster) {
    audit.end();
  } else {
    with_requests_for_slots(judged.request, [&](std::span<const SlotGate::Request> requests) {
      audit.begin(requests);
    });
  }
  return false;
}

bool cluster_audit_of_script(Judged& judged) {
  ClusterAudit& audit = judged.server.cluster_audit();
  if (!audit.looking()) return false;
  const SlotGate::Request request{judged.command(), judged.request.args};
  const int slot = common_slot({&request, 1});
  if (slot == kSeveralSlots || leaves_its_slot(*judged.request.script, slot)) audit.unfit();
  return false;
}

// --- Which rules there are for whom, and when they are asked -------------------------------------

struct Rule {
  bool (*decides)(Judged&);
  // The rule is asked while one of these ServerState bits is set, of clients with one of these
  // ClientFlag bits, and for commands with one of these CommandFlag bits ...
  uint32_t states = 0;
  uint32_t client_flags = 0;
  uint32_t command_flags = 0;
  // ... and then only for requests that have one of these CommandFlag bits, or lack one of those;
  // for all requests when both are 0.
  uint32_t if_present = 0;
  uint32_t if_missing = 0;

  constexpr bool concerns(uint32_t present, uint32_t missing) const {
    return (if_present | if_missing) == 0 || (present & if_present) != 0 ||
           (missing & if_missing) != 0;
  }
};

constexpr uint32_t kUsesKeys = kWrite | kReadOnly | kMayReplicate;

// clang-format off
constexpr Rule kForClients[] = {
    {protected_command,  0, 0, kProtected},
    {authentication,     0, kClientNeedsAuth, 0, 0, kNoAuth},
    {not_in_multi,       0, kClientInMulti, 0, kNoMulti},
    {permission,         0, kClientRestricted},
    {another_server,     0, 0, kMayChangeServer},
    {not_in_space,       kStateSpace, 0, 0, kNotInSpace},
    {slot,               kStateCluster},
    {redirect,           0, kClientRedirects, 0, kWrite | kReadOnly},
    {memory,             kStateMemoryLimit},
    {tracking_room,      kStateTrackingFull},
    {disk_error,         kStateDiskError},
    {few_replicas,       kStateFewReplicas, 0, 0, kWrite},
    {read_only_replica,  kStateReadOnly, 0, 0, kWrite},
    {subscriber,         0, kClientSubscribed},
    {stale,              kStateStale, 0, 0, 0, kStale},
    {loading,            kStateLoading, 0, 0, 0, kLoading},
    {loading,            kStateAsyncLoading, 0, 0, kNoAsyncLoading},
    {busy,               kStateBusy},
    {replica_or_monitor, 0, kClientReplica | kClientMonitor, 0, kUsesKeys},
    {paused,             kStatePaused},
    {queued,             0, kClientInMulti},
    {cluster_audit,      kStateClusterAudit},
    {later_option,       kStateEmulating},
};
constexpr Rule kForExec[] = {
    {permission,         0, kClientRestricted},
    {later_option,       kStateEmulating},
};
constexpr Rule kForScriptStart[] = {
    {stale,              kStateStale, 0, 0, 0, kStale},
    {read_only_call,     0, 0, kWrite},
    {read_only_replica,  kStateReadOnly, 0, 0, kWrite},
    {disk_error,         kStateDiskError, 0, 0, kWrite},
    {few_replicas,       kStateFewReplicas, 0, 0, kWrite},
    {memory_of_script,   0, 0, kDenyOom},
};
constexpr Rule kForScripts[] = {
    {not_from_scripts,   0, 0, kNoScript},
    {stale,              kStateStale, 0, 0, 0, kStale},
    {permission,         0, kClientRestricted},
    {read_only_script,   0, 0, kWrite | kMayReplicate},
    {read_only_replica,  kStateReadOnly, 0, 0, kWrite},
    {disk_error,         kStateDiskError, 0, 0, kWrite},
    {few_replicas,       kStateFewReplicas, 0, 0, kWrite},
    {memory_of_script,   0, 0, kDenyOom},
    {slot_of_script,     kStateCluster},
    {cluster_audit_of_script, kStateClusterAudit},
    {later_option,       kStateEmulating},
};
constexpr Rule kForMaster[] = {
    {protected_command,  0, 0, kProtected},
    {not_in_multi,       0, kClientInMulti, 0, kNoMulti},
    {memory,             kStateMemoryLimit},
    {tracking_room,      kStateTrackingFull},
    {disk_error_of_master, kStateDiskError, 0, 0, kWrite},
    {loading,            kStateLoading, 0, 0, 0, kLoading},
    {busy,               kStateBusy},
    {paused,             kStatePaused},
    {queued,             0, kClientInMulti},
    {cluster_audit,      kStateClusterAudit},
};
// While it waited, or was held by a pause, the server may have become a replica.
constexpr Rule kForRetry[] = {
    {permission,         0, kClientRestricted},
    {memory,             kStateMemoryLimit, 0, 0, kDenyOom},
    {disk_error,         kStateDiskError, 0, 0, kWrite},
    {few_replicas,       kStateFewReplicas, 0, 0, kWrite},
    {read_only_replica,  kStateReadOnly, 0, 0, kWrite},
};
// clang-format on

std::span<const Rule> rules_for(Origin origin) {
  switch (origin) {
    case Origin::kClient:
      return kForClients;
    case Origin::kExec:
      return kForExec;
    case Origin::kScriptStart:
      return kForScriptStart;
    case Origin::kScript:
      return kForScripts;
    case Origin::kMaster:
      return kForMaster;
    case Origin::kRetry:
      return kForRetry;
    case Origin::kFile:
      break;
  }
  return {};
}

// Of what the master and the append-only file tell nothing is questioned, nor of a script that has
// begun to write.
uint32_t states_for(Server& server, const AdmissionRequest& request) {
  const uint32_t state = server.state();
  const ScriptCall* script = request.script;
  if (script == nullptr) return state;
  if (script->caller->has(kClientMaster | kClientInternal)) return state & kStateClusterAudit;
  constexpr uint32_t kOfWrites = kStateReadOnly | kStateDiskError | kStateFewReplicas;
  return script->has_written ? state & ~kOfWrites : state;
}

Judged judged_of(Server& server, const AdmissionRequest& request) {
  Judged judged{server, request, states_for(server, request), request.command.flags, 0};
  if (request.origin == Origin::kScriptStart) {
    judged.present = request.script->flags;
  } else if (const FlagFinder find = request.command.row->extras.find_flags;
             find != nullptr &&
             (request.origin == Origin::kClient || request.origin == Origin::kMaster)) {
    judged.present = find(server, request.args, request.command.flags);
  }
  judged.missing = ~judged.present;
  const Transaction* transaction = request.client.transaction.get();
  if (transaction != nullptr && request.command.has(kRunsQueued)) {
    judged.present |= transaction->command_flags;
    judged.missing |= transaction->missing_flags;
  }
  return judged;
}

}  // namespace

Admission admit(Server& server, const AdmissionRequest& request) {
  Judged judged = judged_of(server, request);
  for (const Rule& rule : rules_for(request.origin)) {
    const uint32_t applies = (judged.state & rule.states) |
                             (request.client.flags & rule.client_flags) |
                             (judged.present & rule.command_flags);
    if (applies != 0 && rule.concerns(judged.present, judged.missing) && rule.decides(judged))
      break;
  }
  return std::move(judged.result);
}

uint32_t gating_states(uint32_t flags, bool flags_vary) {
  // MONITOR and CALLS see all requests, and FAULT may concern any.
  uint32_t states = kStateMonitored | kStateRecorded | kStateFaults | kStateMetered;
  for (const Rule& rule : kForClients) {
    if (flags_vary || rule.concerns(flags, ~flags)) states |= rule.states;
  }
  return states;
}

bool is_free_for_exec(const Client& client, const Command& command) {
  // What kForExec asks about. A rule that is added there is added here.
  static_assert(std::size(kForExec) == 2);
  return !client.has(kClientRestricted) && command.later_options == nullptr;
}

bool is_free_for_scripts(const Command& command, uint32_t state, const ScriptCall& script) {
  // What kForScripts asks about. A rule that is added there is added here, unless it is one of a
  // state.
  static_assert(std::size(kForScripts) == 11);
  constexpr uint32_t kStates = [] {
    uint32_t states = 0;
    for (const Rule& rule : kForScripts) states |= rule.states;
    return states;
  }();
  return (state & kStates) == 0 && !command.has(kNoScript) && !script.read_only &&
         !script.out_of_memory && !script.caller->has(kClientRestricted);
}

}  // namespace latchkey::server
