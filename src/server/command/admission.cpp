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

// A request while the rules are applied to it.
struct Decision {
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

  // Set the result. Both return true: the rule that calls them has decided.
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
struct Protection {
  ProtectedAction allowed;
  std::string_view directive;
};

Protection protection_of(std::string_view command, const ConfigValues& settings) {
  if (command == "debug") return {settings.enable_debug_command, "enable-debug-command"};
  if (command == "module") return {settings.enable_module_command, "enable-module-command"};
  return {settings.enable_test_commands, "enable-test-commands"};
}

bool protected_command(Decision& decision) {
  // Since Valkey 9.1 a client that has not authenticated gets NOAUTH first.
  if (decision.client().has(kClientNeedsAuth) && decision.server.edition().is_valkey_since({9, 1}))
    return false;
  const Command& command = decision.command();
  const Command& named = command.parent != nullptr ? *command.parent : command;
  const auto [allowed, directive] = protection_of(named.name, decision.server.settings());
  const bool local =
      decision.client().connection() == nullptr || decision.client().connection()->peer_is_local();
  if (allowed == ProtectedAction::kYes || (allowed == ProtectedAction::kLocal && local))
    return false;
  return decision.refuse("ERR " + std::string(named.row->name) + " command not allowed. If the " +
                         std::string(directive) +
                         " option is set to \"local\", you can run it from a local "
                         "connection, otherwise you need to set this option in the configuration "
                         "file, and then restart the server.");
}

bool another_server(Decision& decision) {
  SpaceGate* gate = decision.server.space_gate();
  if (gate == nullptr) return false;
  const SpaceGate::Answer answer =
      gate->ask(decision.client(), decision.command(), decision.request.args);
  if (answer.verdict == SpaceGate::Verdict::kRefused) return decision.refuse(answer.error);
  return answer.verdict == SpaceGate::Verdict::kMoves && decision.end_with(Verdict::kMove);
}

bool not_in_space(Decision& decision) {
  return decision.refuse("ERR " + std::string(decision.command().row->name) +
                         " is not available in a space, which has no persistence, no replication "
                         "and no cluster");
}

bool authentication(Decision& decision) {
  return decision.refuse("NOAUTH Authentication required.");
}

bool not_in_multi(Decision& decision) {
  if (decision.server.edition().is_valkey_since({9, 0}))
    return decision.refuse("ERR Command '" + decision.command().full_name +
                           "' not allowed inside a transaction");
  return decision.refuse("ERR Command not allowed inside a transaction");
}

// DEBUG SET-DISABLE-DENY-SCRIPTS allows only the commands that tests use. Commands that wait, run
// scripts or change the client itself would end the server, as they may end the reference.
bool not_from_scripts(Decision& decision) {
  const std::string& name = decision.command().full_name;
  const bool is_harmless = name == "debug" || name == "client|list" || name == "client|info";
  if (is_harmless && decision.server.debug_settings().scripts_may_debug) return false;
  return decision.refuse(decision.server.edition().is_valkey_since({9, 0})
                             ? "ERR This Valkey command is not allowed from script"
                             : "ERR This Redis command is not allowed from script");
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
  return "no permission to access one of the channels used as arguments";
}

bool permission(Decision& decision) {
  using Context = acl::Denial::Context;
  const AdmissionRequest& request = decision.request;
  Client& client = decision.client();
  Context context = client.has(kClientInMulti) ? Context::kMulti : Context::kToplevel;
  if (request.origin == Origin::kExec) context = Context::kMulti;
  if (request.origin == Origin::kScript) context = Context::kScript;
  const auto refusal =
      decision.server.access().check(client, request.command, request.args, context);
  if (!refusal) return false;
  if (request.origin == Origin::kExec) {
    return decision.refuse(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the "
        "EXEC call. This command is no longer allowed for the following reason: " +
        std::string(text_of(refusal->what)));
  }
  const std::string text = acl::refusal_text(decision.server.edition(), *client.user,
                                             request.command, request.args, *refusal);
  return decision.refuse((decision.is_from_script() ? "ERR ACL failure in script: " : "NOPERM ") +
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
bool waits_for_exec(const Decision& decision, const SlotGate::Answer& answer) {
  using enum SlotGate::Verdict;
  const bool by_keys = answer.verdict == kTryAgain || answer.verdict == kAskElsewhere;
  return by_keys && decision.client().has(kClientInMulti) && decision.server.database_count() > 1 &&
         !decision.command().has(kRunsQueued);
}

bool slot(Decision& decision) {
  Client& client = decision.client();
  // ASKING is said of the next request, or of a whole transaction.
  if (!client.has(kClientInMulti)) {
    client.set(kClientAsking, client.has(kClientAskingNext));
    client.set(kClientAskingNext, false);
  }
  if (client.has(kClientInternal)) return false;
  const SlotGate::Answer answer =
      with_requests_for_slots(decision.request, [&](std::span<const SlotGate::Request> requests) {
        return decision.server.slot_gate()->check(requests, caller_of(client));
      });
  if (waits_for_exec(decision, answer)) return false;
  const std::string error = refusal_of(answer);
  if (error.empty()) return false;
  decision.result.plain_error = decision.command().has(kRunsQueued);
  return decision.refuse(error);
}

// A replica without a cluster sends clients that can go elsewhere to its master.
bool redirect(Decision& decision) {
  Server& server = decision.server;
  const bool reads_here = !decision.writes() && decision.client().has(kClientReadsAnywhere);
  if (!server.is_replica() || server.in_cluster() || reads_here) return false;
  // While a failover is under way the master would send the client back.
  if ((decision.state & kStatePaused) != 0) return decision.end_with(Verdict::kPostpone);
  decision.result.plain_error = decision.command().has(kRunsQueued);
  const ConfigValues& settings = server.settings();
  return decision.refuse("REDIRECT " + settings.replicaof_host + ":" +
                         std::to_string(settings.replicaof_port));
}

// Whether the slot is not the one that the script keeps to, if it keeps to one.
bool leaves_its_slot(ScriptCall& script, int slot) {
  if (slot == kNoSlot || script.any_slot) return false;
  if (script.slot == kNoSlot) script.slot = slot;
  return script.slot != slot;
}

// Redis 7.0 and Valkey 9 say of each key that is not here that it is not local.
std::string script_error(const Edition& edition, SlotGate::Verdict verdict,
                         const std::string& command) {
  using enum SlotGate::Verdict;
  if (edition.is_valkey_since({9, 0}))
    return "ERR Attempted to access a non local key in a cluster node";
  if (edition.has({7, 2})) {
    if (verdict == kCrossSlot)
      return "ERR Command '" + command +
             "' in script attempted to access keys that don't hash to the same slot";
    if (verdict == kNotServed) return "ERR Script attempted to access a slot not served";
    if (verdict == kTryAgain)
      return "ERR Unable to execute command '" + command +
             "' in script because undeclared keys were accessed during rehashing of the slot";
  }
  return "ERR Script attempted to access a non local key in a cluster node";
}

bool slot_of_script(Decision& decision) {
  using enum SlotGate::Verdict;
  const SlotGate::Request request{decision.command(), decision.request.args};
  const SlotGate::Answer answer =
      decision.server.slot_gate()->check({&request, 1}, caller_of(decision.client()));
  switch (answer.verdict) {
    case kDown:
      return decision.refuse("ERR Script attempted to execute a command while the cluster is down");
    case kDownForWrites:
      return decision.refuse(
          "ERR Script attempted to execute a write command while the cluster is down and readonly");
    case kCrossSlot:
    case kNotServed:
    case kTryAgain:
    case kElsewhere:
    case kAskElsewhere:
      return decision.refuse(
          script_error(decision.server.edition(), answer.verdict, decision.command().full_name));
    case kServed:
      break;
  }
  return leaves_its_slot(*decision.request.script, answer.slot) &&
         decision.refuse("ERR Script attempted to access keys that do not hash to the same slot");
}

// Makes room before any request, as the reference does: reads evict, too. Before keys go clients
// that take too much.
bool memory(Decision& decision) {
  if (decision.request.origin == Origin::kClient && decision.server.memory_limit().is_exceeded() &&
      decision.server.client_eviction().enforce(&decision.client()))
    return decision.refuse(kOutOfMemory);
  const bool enough = decision.server.memory_limit().make_room();
  // Keys of slots that are being imported cannot be evicted yet, but will be. Valkey ends the
  // import.
  if (decision.client().has(kClientInternal) &&
      decision.server.settings().maxmemory_policy != MaxmemoryPolicy::kNoeviction &&
      !decision.server.edition().is_valkey())
    return false;
  return !enough && (decision.present & kDenyOom) != 0 && decision.refuse(kOutOfMemory);
}

// A script's commands find what there was when it began.
bool memory_of_script(Decision& decision) {
  const ScriptCall& script = *decision.request.script;
  return script.out_of_memory && !script.allow_oom && !script.has_written &&
         decision.refuse(kOutOfMemory);
}

bool tracking_room(Decision& decision) {
  decision.server.tracking().drop_some();
  return false;
}

bool disk_error(Decision& decision) {
  if (!decision.writes() && decision.command().full_name != "ping") return false;
  return decision.refuse(decision.server.disk_error());
}

bool disk_error_of_master(Decision& decision) {
  decision.server.dispatcher().apply_despite_disk_error();
  return false;
}

bool few_replicas(Decision& decision) {
  return decision.refuse(kFewReplicas);
}

bool read_only_replica(Decision& decision) {
  return decision.refuse(kReadOnlyReplica);
}

bool read_only_script(Decision& decision) {
  return decision.request.script->read_only &&
         decision.refuse("ERR Write commands are not allowed from read-only scripts.");
}

bool read_only_call(Decision& decision) {
  return decision.request.script->read_only &&
         decision.refuse("ERR Can not execute a script with write flag using *_ro command.");
}

bool subscriber(Decision& decision) {
  if (decision.client().reply.is_resp3() || decision.command().has(kWhileSubscribed)) return false;
  return decision.refuse("ERR Can't execute '" + decision.command().full_name +
                         "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                         "allowed in this context");
}

bool stale(Decision& decision) {
  return decision.refuse(decision.is_from_script()
                             ? "ERR Can not execute the command on a stale replica"
                             : kStaleReplica);
}

bool loading(Decision& decision) {
  return decision.refuse(
      in_words_of(decision.server, "LOADING Redis is loading the dataset in memory"));
}

bool busy(Decision& decision) {
  return !decision.command().has(kAllowBusy) &&
         decision.refuse(in_words_of(decision.server, decision.server.busy_error()));
}

bool replica_or_monitor(Decision& decision) {
  return decision.refuse("ERR Replica can't interact with the keyspace");
}

// Options that the release has not are what any unknown word is to it.
bool later_option(Decision& decision) {
  const LaterOptions* const later = decision.command().later_options;
  if (later == nullptr) return false;
  const size_t own_words = decision.command().parent == nullptr ? 1 : 2;
  return later->used_by(decision.request.args.subspan(own_words)) &&
         decision.refuse(later->error());
}

// Replicas go on: what they acknowledge is what shutdowns and failovers pause clients for.
bool paused(Decision& decision) {
  return !decision.client().has(kClientReplica) &&
         decision.server.pauses().holds(decision.present) && decision.end_with(Verdict::kPostpone);
}

bool queued(Decision& decision) {
  return !decision.command().has(kNotQueued) && decision.end_with(Verdict::kQueue);
}

bool cluster_audit(Decision& decision) {
  ClusterAudit& audit = decision.server.cluster_audit();
  if (decision.request.origin == Origin::kMaster) {
    audit.end();
  } else {
    with_requests_for_slots(decision.request, [&](std::span<const SlotGate::Request> requests) {
      audit.begin(requests);
    });
  }
  return false;
}

bool cluster_audit_of_script(Decision& decision) {
  ClusterAudit& audit = decision.server.cluster_audit();
  if (!audit.is_sampling()) return false;
  const SlotGate::Request request{decision.command(), decision.request.args};
  const int slot = common_slot({&request, 1});
  if (slot == kSeveralSlots || leaves_its_slot(*decision.request.script, slot))
    audit.count_incompatible();
  return false;
}

// --- Which rules there are for whom, and when they are asked -------------------------------------

struct Rule {
  bool (*decides)(Decision&);
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

Decision decision_on(Server& server, const AdmissionRequest& request) {
  Decision decision{server, request, states_for(server, request), request.command.flags, 0};
  if (request.origin == Origin::kScriptStart) {
    decision.present = request.script->flags;
  } else if (const FlagFinder find = request.command.row->extras.find_flags;
             find != nullptr &&
             (request.origin == Origin::kClient || request.origin == Origin::kMaster)) {
    decision.present = find(server, request.args, request.command.flags);
  }
  decision.missing = ~decision.present;
  const Transaction* transaction = request.client.transaction.get();
  if (transaction != nullptr && request.command.has(kRunsQueued)) {
    decision.present |= transaction->command_flags;
    decision.missing |= transaction->missing_flags;
  }
  return decision;
}

}  // namespace

Admission admit(Server& server, const AdmissionRequest& request) {
  Decision decision = decision_on(server, request);
  for (const Rule& rule : rules_for(request.origin)) {
    const uint32_t applies = (decision.state & rule.states) |
                             (request.client.flags & rule.client_flags) |
                             (decision.present & rule.command_flags);
    if (applies != 0 && rule.concerns(decision.present, decision.missing) && rule.decides(decision))
      break;
  }
  return std::move(decision.result);
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
