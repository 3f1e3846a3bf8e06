// A command is a row of data: name, handler, syntax, flags, keys, ACL categories, group, and the
// texts of its documentation. Arity, the replies of COMMAND INFO and DOCS and the keys of a request
// are derived from the row (server/command/command_table.h). Rows are constants that live as long
// as the program:
//
//     constexpr CommandRow kRows[] = {
//         {"SETNX", setnx, "key value", kWrite | kDenyOom | kFast, keys(1).ow().insert(),
//         kAclString, Group::kString,
//          "1.0.0", "O(1)", "Set the string value of a key only when the key doesn't exist."},
//     };
//
// The syntax line is described in server/command/command_syntax.h, keys in
// server/command/key_spec.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/command/arguments.h"
#include "server/command/key_spec.h"
#include "server/command/syntax_line.h"

namespace latchkey::server {

class Config;
class Server;
struct CommandContext;
struct CommandRow;
using Handler = void (*)(CommandContext&);

// In the order in which COMMAND INFO lists them; the last ones are not listed but
// for kScriptRunner.
enum CommandFlag : uint32_t {
  kWrite = 1 << 0,             // changes the dataset
  kReadOnly = 1 << 1,          // reads the dataset
  kDenyOom = 1 << 2,           // may need memory; refused when it is used up
  kModule = 1 << 3,            // of a type that the reference has as a module (Group::kModule)
  kAdmin = 1 << 4,             // for operators
  kPubSub = 1 << 5,            // of the publish/subscribe family
  kNoScript = 1 << 6,          // not in scripts
  kBlocking = 1 << 7,          // may make the client wait
  kLoading = 1 << 8,           // also while the dataset is being loaded
  kStale = 1 << 9,             // also on a replica with stale data
  kSkipMonitor = 1 << 10,      // not shown to MONITOR
  kSkipSlowlog = 1 << 11,      // not entered in the slow log
  kAsking = 1 << 12,           // acts as if ASKING came before it
  kFast = 1 << 13,             // constant or logarithmic time
  kNoAuth = 1 << 14,           // before authentication
  kNoMandatoryKeys = 1 << 15,  // may come without any key
  kNoAsyncLoading = 1 << 16,   // not while a replica loads a dataset beside the old one
  kNoMulti = 1 << 17,          // not in a transaction
  kMovableKeys = 1 << 18,      // keys not at fixed positions; the table finds out, rows do not say
  kAllowBusy = 1 << 19,        // also while a script runs too long
  kMayReplicate = 1 << 20,     // may be propagated though it is no write
  kProtected = 1 << 21,        // only when the configuration enables it
  kMayTakeLong = 1 << 22,      // runs in a task (server/tasks.h), so that others can be served
  kMayChangeServer = 1 << 23,  // may move its client to another server (command/space_gate.h)
  kNotInSpace = 1 << 24,       // for what a space does not have: persistence, replication, cluster
  kScriptRunner = 1 << 25,     // runs a script or a function; listed
  kDuringPause = 1 << 26,      // also while clients are paused
  kNotQueued = 1 << 27,        // runs at once also in a transaction
  kRunsQueued = 1 << 28,       // runs what a transaction has queued; admitted by those flags
  kWhileSubscribed = 1 << 29,  // also for clients of RESP2 that are subscribed
};

// In the order in which COMMAND INFO lists them. Read, write, admin, pubsub, fast, slow, blocking
// and, for admin commands, dangerous follow from the flags; rows do not repeat them.
enum AclCategory : uint32_t {
  kAclKeyspace = 1 << 0,
  kAclRead = 1 << 1,
  kAclWrite = 1 << 2,
  kAclSet = 1 << 3,
  kAclSortedSet = 1 << 4,
  kAclList = 1 << 5,
  kAclHash = 1 << 6,
  kAclString = 1 << 7,
  kAclBitmap = 1 << 8,
  kAclHyperLogLog = 1 << 9,
  kAclGeo = 1 << 10,
  kAclStream = 1 << 11,
  kAclPubSub = 1 << 12,
  kAclAdmin = 1 << 13,
  kAclFast = 1 << 14,
  kAclSlow = 1 << 15,
  kAclBlocking = 1 << 16,
  kAclDangerous = 1 << 17,
  kAclConnection = 1 << 18,
  kAclTransaction = 1 << 19,
  kAclScripting = 1 << 20,
  kAclArray = 1 << 21,
  kAclJson = 1 << 22,
  kAclTimeSeries = 1 << 23,
  kAclBloom = 1 << 24,
  kAclCuckoo = 1 << 25,
  kAclCountMin = 1 << 26,
  kAclTopK = 1 << 27,
  kAclTDigest = 1 << 28,
};

enum class Group : uint8_t {
  kGeneric,
  kString,
  kList,
  kSet,
  kSortedSet,
  kHash,
  kPubSub,
  kTransactions,
  kConnection,
  kServer,
  kScripting,
  kHyperLogLog,
  kCluster,
  kGeo,
  kStream,
  kBitmap,
  kArray,
  kSentinel,
  kModule,  // replies name such commands in upper case, and their module (CommandExtras::module)
};

// Appends the keys of a request and what happens to each, where the specifications do not describe
// them completely (see KeySpec::variable_flags and incomplete). False when the request is
// malformed.
using KeyFinder = bool (*)(Arguments words, std::vector<KeyReference>* out);

// Appends the positions of words that nobody but the server should see, such as passwords. Called
// for requests as they came, whether they make sense or not.
using SecretFinder = void (*)(const Config& config, Arguments words,
                              std::vector<size_t>* positions);

// The CommandFlag bits of a request that depend on its words, such as the name of a script that
// declares flags. `flags`: the row's.
using FlagFinder = uint32_t (*)(Server& server, Arguments words, uint32_t flags);

// Which words of a request name channels, for those who may use some only: all from one on, or that
// one alone.
struct ChannelWords {
  uint8_t first = 0;  // 0: none does
  bool only_one = false;
  bool patterns = false;  // they are patterns of channels
};

// Which databases a request uses, for those who may use some only, where that is not the client's
// own alone.
struct DatabaseWords {
  uint8_t first = 0;  // words that are numbers of databases; 0: none are
  uint8_t count = 0;
  bool option = false;   // the words behind each option DB are
  bool instead = false;  // the client's own database is not used
  bool every = false;    // all databases are used
};

// What only some commands have. Rows name the fields: {.tips = "nondeterministic_output"}.
struct CommandExtras {
  // Command tips, separated by spaces.
  const char* tips = "";
  // One line a change: "6.2.0 Added the `GET` option.", separated by newlines.
  const char* history = "";
  const char* deprecated_since = nullptr;
  const char* replaced_by = nullptr;
  // Meant for other servers, not for people.
  bool system = false;
  KeyFinder find_keys = nullptr;
  FlagFinder find_flags = nullptr;
  ChannelWords channels = {};
  DatabaseWords databases = {};
  // Which word of a request is an element of the first key's value (-1: the last), so that batches
  // can look several up together; 0: none.
  int8_t element = 0;
  // Null: MONITOR and the slow log show the request as it is.
  SecretFinder find_secrets = nullptr;
  // Of a row of Group::kModule: the module of the reference that has the command (a BuiltInModule).
  const char* module = "vectorset";
  // Makes the row a container, whose first argument names a subcommand. Of static storage.
  std::span<const CommandRow> subcommands = {};
};

struct CommandRow {
  // Upper case; a subcommand's own word.
  const char* name;
  // Of a container: what runs without a subcommand, or null if one must be given.
  Handler handler;
  SyntaxLine syntax;
  // CommandFlag bits.
  uint32_t flags;
  KeySpecs keys;
  // AclCategory bits.
  uint32_t acl;
  Group group;
  const char* since;
  // Null where documentation gives none.
  const char* complexity;
  const char* summary;
  CommandExtras extras = {};
};

}  // namespace latchkey::server
