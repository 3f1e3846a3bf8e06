// The one gate that all requests pass: whether a request may run, by its origin.
//
// Each origin has a list of rules (admission.cpp), in the reference's order of precedence: the
// first rule that objects decides. A rule names the conditions under which it is asked, so that a
// server in an unusual state (maxmemory, replica, cluster) asks of each command only what may
// concern it.
//
//     origin         who sends the request
//     kClient        a connection; EXEC counts with the flags of all that is queued
//     kExec          EXEC, which runs what was queued
//     kScriptStart   EVAL or FCALL, once the flags that the script declares are known
//     kScript        a script, by redis.call and redis.pcall
//     kMaster        the link to the master
//     kFile          the append-only file: no rules, what was written has been admitted once
//     kRetry         Blocking, for a client whose wait is over
//
// Costs: a test of three masks when no rule applies, else one test for each rule of the list.
#pragma once

#include <cstdint>
#include <string>

#include "server/command/arguments.h"
#include "server/command/slot_gate.h"

namespace latchkey::server {

class Client;
class Server;
struct Command;

enum class Origin : uint8_t { kClient, kExec, kScriptStart, kScript, kMaster, kFile, kRetry };

// The script that sends a request, or that is to start.
struct ScriptCall {
  // The client that sent EVAL or FCALL.
  Client* caller = nullptr;
  // CommandFlag bits of the script itself (kScriptStart).
  uint32_t flags = 0;
  bool read_only = false;      // it was called by a command that ends in _RO, or declares it
  bool allow_oom = false;      // it declares it
  bool out_of_memory = false;  // as it was when the script began
  bool has_written = false;    // then it goes on, so that it does not end half done
  bool any_slot = true;        // it may use keys of several slots of a cluster
  int slot = kNoSlot;          // otherwise: the slot that it keeps to, once a key has named one
};

struct AdmissionRequest {
  Origin origin;
  Client& client;  // whose user and transaction count
  const Command& command;
  Arguments args;
  ScriptCall* script = nullptr;  // kScriptStart and kScript
};

struct Admission {
  enum class Verdict : uint8_t {
    kRun,
    kQueue,     // MULTI is open
    kRefuse,    // with `error`
    kPostpone,  // the client waits for the end of a pause, then sends the request again
    kMove,      // the client moves to another server, and the request runs again there
  };
  Verdict verdict = Verdict::kRun;
  std::string error;
  // EXEC ends its transaction with the error as it is, not as the reason of an abort.
  bool plain_error = false;
};

// Evicts keys when the rule of memory is asked; changes nothing else but the script's slot.
Admission admit(Server& server, const AdmissionRequest& request);

// The ServerState bits that a rule for clients asks about a command of these flags (CommandFlag).
// All of them when `flags_vary` with the request.
uint32_t gating_states(uint32_t flags, bool flags_vary);

// True when no rule for what EXEC runs applies, so that admit() need not be asked.
bool is_free_for_exec(const Client& client, const Command& command);
// True when no rule for scripts applies to the command, so that admit() need not be asked.
bool is_free_for_scripts(const Command& command, uint32_t state, const ScriptCall& script);

// Refusals of several origins.
inline constexpr std::string_view kFewReplicas = "NOREPLICAS Not enough good replicas to write.";
inline constexpr std::string_view kReadOnlyReplica =
    "READONLY You can't write against a read only replica.";
inline constexpr std::string_view kStaleReplica =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";

}  // namespace latchkey::server
