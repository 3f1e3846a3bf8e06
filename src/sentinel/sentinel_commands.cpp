// SENTINEL: what is known of masters, their replicas and Sentinels, votes, and failovers on
// request.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text/glob.h"
#include "base/text/text.h"
#include "sentinel/hello.h"
#include "sentinel/instance_report.h"
#include "sentinel/rows.h"
#include "sentinel/sentinel_server.h"
#include "sentinel/set_commands.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/emulation/valkey_words.h"
#include "server/server.h"

namespace latchkey::sentinel {

using namespace server;
using base::LogLevel;

namespace {

Sentinel& sentinel_of(CommandContext& ctx) {
  return ctx.server.layer<SentinelServer>().sentinel();
}

// ---- What is known

void masters(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  ctx.reply.array(sentinel.masters().size());
  for (const auto& [name, master] : sentinel.masters())
    reply_instance(sentinel, *master, &ctx.reply);
}

void master(CommandContext& ctx) {
  if (Master* const found = find_named_master(ctx))
    reply_instance(sentinel_of(ctx), *found, &ctx.reply);
}

void replicas(CommandContext& ctx) {
  const Master* const found = find_named_master(ctx);
  if (found == nullptr) return;
  const auto size = ctx.reply.later();
  size_t count = 0;
  for (const auto& [name, replica] : found->replicas) {
    if (!replica->announced) continue;
    reply_instance(sentinel_of(ctx), *replica, &ctx.reply);
    ++count;
  }
  ctx.reply.array_later(size, count);
}

void sentinels(CommandContext& ctx) {
  const Master* const found = find_named_master(ctx);
  if (found == nullptr) return;
  ctx.reply.array(found->sentinels.size());
  for (const auto& [id, other] : found->sentinels)
    reply_instance(sentinel_of(ctx), *other, &ctx.reply);
}

void get_master_addr_by_name(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  const Master* const found = sentinel.find_master(ctx.args[2]);
  if (found == nullptr) return ctx.reply.null_array();
  const Address& address = Sentinel::current_address(*found);
  ctx.reply.array(2);
  ctx.reply.bulk(sentinel.announced_host(address));
  ctx.reply.bulk(address.port);
}

void myid(CommandContext& ctx) {
  ctx.reply.bulk(sentinel_of(ctx).id());
}

void reply_cached_info(CommandContext& ctx, const Instance& instance) {
  const int64_t received_ms = instance.info_received_ms;
  ctx.reply.array(2);
  ctx.reply.integer(received_ms != 0 ? sentinel_of(ctx).now_ms() - received_ms : 0);
  if (instance.info.empty()) {
    ctx.reply.null();
  } else {
    ctx.reply.bulk(instance.info);
  }
}

void info_cache(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  std::vector<const Master*> found;
  for (const std::string_view name : ctx.args.subspan(2)) {
    const Master* const one = sentinel.find_master(name);
    if (one != nullptr && std::find(found.begin(), found.end(), one) == found.end())
      found.push_back(one);
  }
  ctx.reply.map(found.size());
  for (const Master* const one : found) {
    ctx.reply.bulk(one->name);
    ctx.reply.array(one->replicas.size() + 1);
    reply_cached_info(ctx, *one);
    for (const auto& [name, replica] : one->replicas) reply_cached_info(ctx, *replica);
  }
}

void pending_scripts(CommandContext& ctx) {
  const auto& jobs = ctx.server.layer<SentinelServer>().scripts().jobs();
  const int64_t now = sentinel_of(ctx).now_ms();
  ctx.reply.array(jobs.size());
  for (const ScriptQueue::Job& job : jobs) {
    const bool runs = job.pid != 0;
    const int64_t delay_ms = job.at_ms > now ? job.at_ms - now : 0;
    ctx.reply.map(5);
    ctx.reply.bulk("argv");
    ctx.reply.array(job.words.size());
    for (const std::string& word : job.words) ctx.reply.bulk(word);
    ctx.reply.bulk("flags");
    ctx.reply.bulk(runs ? "running" : "scheduled");
    ctx.reply.bulk("pid");
    ctx.reply.bulk(job.pid);
    ctx.reply.bulk(runs ? "run-time" : "run-delay");
    ctx.reply.bulk(runs ? now - job.at_ms : delay_ms);
    ctx.reply.bulk("retry-num");
    ctx.reply.bulk(job.attempts);
  }
}

void ckquorum(CommandContext& ctx) {
  const Master* const found = find_named_master(ctx);
  if (found == nullptr) return;
  const auto others =
      std::count_if(found->sentinels.begin(), found->sentinels.end(), [](const auto& entry) {
        return !entry.second->has(kSdown | kOdown) && entry.second->link->is_connected();
      });
  const size_t usable = static_cast<size_t>(others) + 1;
  const size_t majority = (found->sentinels.size() + 1) / 2 + 1;
  std::string text = std::to_string(usable) + " usable Sentinels. ";
  if (usable >= found->quorum && usable >= majority)
    return ctx.reply.status("OK " + text + "Quorum and failover authorization can be reached");
  if (usable < found->quorum)
    text += "Not enough available Sentinels to reach the specified quorum for this master";
  if (usable < majority) {
    text += usable < found->quorum ? ". " : "";
    text += "Not enough available Sentinels to reach the majority and authorize a failover";
  }
  ctx.reply.error("NOQUORUM " + text);
}

// ---- Votes

void is_master_down_by_addr(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  int64_t port = 0;
  int64_t epoch = 0;
  constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";
  if (!ctx.read_int64_in(ctx.args[3], INT32_MIN, INT32_MAX, &port, kNoInteger)) return;
  if (!ctx.read_int64_in(ctx.args[4], 0, kMaxReceivedEpoch, &epoch, kNoInteger)) return;
  const std::string candidate(ctx.args[5]);
  Master* const found = sentinel.find_master_at(ctx.args[2], static_cast<int>(port));
  const bool down = found != nullptr && found->has(kSdown) && !sentinel.in_tilt();
  std::string leader;
  uint64_t leader_epoch = 0;
  if (found != nullptr && is_id(candidate)) {
    sentinel.election().vote(*found, static_cast<uint64_t>(epoch), candidate);
    leader = found->leader;
    leader_epoch = found->leader_epoch;
  }
  ctx.reply.array(3);
  ctx.reply.integer(down ? 1 : 0);
  ctx.reply.bulk(leader.empty() ? "*" : leader);
  ctx.reply.integer(static_cast<int64_t>(leader_epoch));
}

// ---- What changes masters

void failover(CommandContext& ctx) {
  constexpr size_t kFailoverOption = 3;
  const Edition& edition = ctx.server.edition();
  const bool may_be_coordinated = !edition.emulates() || edition.is_valkey_since({9, 0});
  if (ctx.args.size() > kFailoverOption + (may_be_coordinated ? 1 : 0)) return ctx.wrong_arity();
  Master* const found = find_named_master(ctx);
  if (found == nullptr) return;
  Sentinel& sentinel = sentinel_of(ctx);
  const bool coordinated = ctx.args.size() > kFailoverOption;
  if (coordinated && !is_word(ctx.args[kFailoverOption], "COORDINATED"))
    return ctx.reply.error("ERR Unknown failover option specified");
  if (found->has(kFailover)) return ctx.reply.error("INPROG Failover already in progress");
  if (sentinel.failover().choose_replica(*found) == nullptr)
    return ctx.reply.error("NOGOODSLAVE No suitable replica to promote");
  if (coordinated && !found->knows_failover)
    return ctx.reply.error("NOGOODPRIMARY Primary does not support FAILOVER command");
  ctx.server.log().notice("Executing user requested FAILOVER of '" + found->name + "'");
  coordinated ? sentinel.failover().coordinate(*found) : sentinel.failover().force(*found);
  ctx.reply.ok();
}

void flushconfig(CommandContext& ctx) {
  reply_saved(ctx);
}

void remove(CommandContext& ctx) {
  Master* const found = find_named_master(ctx);
  if (found == nullptr) return;
  Sentinel& sentinel = sentinel_of(ctx);
  sentinel.event(LogLevel::kWarning, "-monitor", *found);
  sentinel.remove_master(found->name);
  reply_saved(ctx);
}

void reset(CommandContext& ctx) {
  Sentinel& sentinel = sentinel_of(ctx);
  const base::GlobPattern pattern(ctx.args[2]);
  int64_t count = 0;
  for (const auto& [name, found] : sentinel.masters()) {
    if (!pattern.matches(name)) continue;
    sentinel.reset(*found, /*keep_sentinels=*/false);
    sentinel.event(LogLevel::kWarning, "+reset-master", *found);
    ++count;
  }
  if (count > 0) sentinel.save();
  ctx.reply.integer(count);
}

void simulate_failure(CommandContext& ctx) {
  unsigned failures = 0;
  for (ArgReader words(ctx.args, 2); words.more();) {
    if (words.word("CRASH-AFTER-ELECTION")) {
      failures |= kCrashAfterElection;
    } else if (words.word("CRASH-AFTER-PROMOTION")) {
      failures |= kCrashAfterPromotion;
    } else if (words.word("HELP")) {
      ctx.reply.array(2);
      ctx.reply.bulk("crash-after-election");
      return ctx.reply.bulk("crash-after-promotion");
    } else {
      return ctx.reply.error("ERR Unknown failure simulation specified");
    }
  }
  sentinel_of(ctx).simulate_failures(failures);
  ctx.reply.ok();
}

constexpr std::string_view kHelp[] = {
    "CKQUORUM <master-name>",
    "    Tell whether the Sentinels that can be reached are enough to find the master down,",
    "    and to elect the one that fails it over.",
    "CONFIG GET <param> [<param> ...]",
    "    Show settings of this Sentinel, those that match the patterns.",
    "CONFIG SET <param> <value> [<param> <value> ...]",
    "    Change settings of this Sentinel.",
    "DEBUG [<param> <value> ...]",
    "    Show the periods by which this Sentinel works, in milliseconds, or change them.",
    "FAILOVER <master-name>",
    "    Promote a replica of the master without asking other Sentinels.",
    "FLUSHCONFIG",
    "    Write the configuration file, the state of this Sentinel included.",
    "GET-MASTER-ADDR-BY-NAME <master-name>",
    "    Return the IP address and the port of the master.",
    "INFO-CACHE <master-name> [<master-name> ...]",
    "    Return the last INFO of the masters and of their replicas.",
    "IS-MASTER-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
    "    Tell whether this Sentinel finds the master down, and vote for <runid>.",
    "MASTER <master-name>",
    "    Show what is known of the master.",
    "MASTERS",
    "    Show what is known of all masters.",
    "MONITOR <name> <ip> <port> <quorum>",
    "    Watch one more master.",
    "MYID",
    "    Return the id of this Sentinel.",
    "PENDING-SCRIPTS",
    "    Show the scripts that run or wait.",
    "REMOVE <master-name>",
    "    Watch the master no longer.",
    "REPLICAS <master-name>",
    "    Show what is known of the master's replicas.",
    "RESET <pattern>",
    "    Forget the replicas and Sentinels of the masters whose names match, and find them",
    "    anew.",
    "SENTINELS <master-name>",
    "    Show what is known of the other Sentinels that watch the master.",
    "SET <master-name> <option> <value> [<option> <value> ...]",
    "    Change settings of the master.",
    "SIMULATE-FAILURE [CRASH-AFTER-ELECTION] [CRASH-AFTER-PROMOTION] [HELP]",
    "    Have this Sentinel crash during its next failover.",
};

// Latchkey itself has the names of both.
constexpr std::string_view kHelpOfValkeysNames[] = {
    "FAILOVER <master-name> COORDINATED",
    "    Have the master hand over to a replica that has all of its writes.",
    "GET-PRIMARY-ADDR-BY-NAME <master-name>",
    "    GET-MASTER-ADDR-BY-NAME, as Valkey calls it.",
    "IS-PRIMARY-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
    "    IS-MASTER-DOWN-BY-ADDR, as Valkey calls it.",
    "PRIMARIES",
    "    MASTERS, as Valkey calls it.",
    "PRIMARY <master-name>",
    "    MASTER, as Valkey calls it.",
};

constexpr std::pair<std::string_view, std::string_view> kPlurals[] = {{"masters", "primaries"},
                                                                      {"MASTERS", "PRIMARIES"}};

void reply_help_in_words_of_valkey(CommandContext& ctx) {
  std::vector<std::string> worded;
  for (const std::string_view line : kHelp) {
    std::array<char, 256> room;
    std::string& text = worded.emplace_back(in_words_of_valkey(line, room));
    // Elsewhere Valkey keeps the plural.
    for (const auto& [from, to] : kPlurals) {
      if (const size_t at = text.find(from); at != std::string::npos)
        text.replace(at, from.size(), to);
    }
    if (line == "FAILOVER <master-name>" && ctx.server.edition().is_valkey_since({9, 0}))
      text += " [COORDINATED]";
  }
  const std::vector<std::string_view> lines(worded.begin(), worded.end());
  reply_help(ctx, lines);
}

void help(CommandContext& ctx) {
  const Edition& edition = ctx.server.edition();
  if (edition.is_valkey_since({8, 0})) return reply_help_in_words_of_valkey(ctx);
  std::vector<std::string_view> lines(std::begin(kHelp), std::end(kHelp));
  if (!edition.emulates()) {
    lines.insert(lines.end(), std::begin(kHelpOfValkeysNames), std::end(kHelpOfValkeysNames));
  }
  reply_help(ctx, lines);
}

// The row of a subcommand.
constexpr CommandRow row(const char* name, Handler handler, SyntaxLine syntax, const char* since,
                         const char* complexity, const char* summary, CommandExtras extras = {}) {
  return {.name = name,
          .handler = handler,
          .syntax = syntax,
          .flags = kAdmin,
          .keys = {},
          .acl = 0,
          .group = Group::kSentinel,
          .since = since,
          .complexity = complexity,
          .summary = summary,
          .extras = extras};
}

void find_set_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  for (size_t i = 3; i + 1 < words.size(); ++i) {
    if (base::equal_ignoring_case(words[i], "auth-pass")) positions->push_back(i + 1);
  }
}

void find_config_secrets(const Config&, Arguments words, std::vector<size_t>* positions) {
  for (size_t i = 3; i + 1 < words.size(); ++i) {
    if (base::equal_ignoring_case(words[i], "sentinel-pass")) positions->push_back(i + 1);
  }
}

constexpr CommandRow kSubcommands[] = {
    row("CKQUORUM", ckquorum, "master-name", "2.8.4", nullptr,
        "Checks for a Redis Sentinel quorum."),
    row("CONFIG", sentinel_config, "{action={SET set={data=parameter value}...}|GET parameter...}",
        "6.2.0", "O(N) when N is the number of configuration parameters provided",
        "Configures Redis Sentinel.",
        {.history = "7.2.0 Added the ability to set and get multiple parameters in one call.",
         .find_secrets = find_config_secrets}),
    row("DEBUG", sentinel_debug, "[data=parameter value]...", "7.0.0",
        "O(N) where N is the number of configurable parameters",
        "Lists or updates the current configurable parameters of Redis Sentinel."),
    row("FAILOVER", failover, "master-name [COORDINATED]", "2.8.4", nullptr,
        "Forces a Redis Sentinel failover."),
    row("FLUSHCONFIG", flushconfig, "", "2.8.4", "O(1)",
        "Rewrites the Redis Sentinel configuration file."),
    row("GET-MASTER-ADDR-BY-NAME", get_master_addr_by_name, "master-name", "2.8.4", "O(1)",
        "Returns the port and address of a master Redis instance."),
    row("GET-PRIMARY-ADDR-BY-NAME", get_master_addr_by_name, "primary-name", "8.0.0", "O(1)",
        "Returns the port and address of a primary."),
    help_row(help, 0, Group::kSentinel, "6.2.0"),
    row("INFO-CACHE", info_cache, "nodename...", "3.2.0", "O(N) where N is the number of instances",
        "Returns the cached `INFO` replies from the deployment's instances."),
    row("IS-MASTER-DOWN-BY-ADDR", is_master_down_by_addr,
        "ip port:integer current-epoch:integer runid", "2.8.4", "O(1)",
        "Determines whether a master Redis instance is down."),
    row("IS-PRIMARY-DOWN-BY-ADDR", is_master_down_by_addr,
        "ip port:integer current-epoch:integer runid", "8.0.0", "O(1)",
        "Determines whether a primary is down."),
    row("MASTER", master, "master-name", "2.8.4", "O(1)",
        "Returns the state of a master Redis instance."),
    row("MASTERS", masters, "", "2.8.4", "O(N) where N is the number of masters",
        "Returns a list of monitored Redis masters."),
    row("MONITOR", sentinel_monitor, "name ip port:integer quorum:integer", "2.8.4", "O(1)",
        "Starts monitoring."),
    row("MYID", myid, "", "6.2.0", "O(1)", "Returns the Redis Sentinel instance ID."),
    row("PENDING-SCRIPTS", pending_scripts, "", "2.8.4", nullptr,
        "Returns information about pending scripts for Redis Sentinel."),
    row("PRIMARIES", masters, "", "8.0.0", "O(N) where N is the number of primaries",
        "Returns a list of the primaries that are watched."),
    row("PRIMARY", master, "primary-name", "8.0.0", "O(1)", "Returns the state of a primary."),
    row("REMOVE", remove, "master-name", "2.8.4", "O(1)", "Stops monitoring."),
    row("REPLICAS", replicas, "master-name", "5.0.0", "O(N) where N is the number of replicas",
        "Returns a list of the monitored Redis replicas."),
    row("RESET", reset, "pattern", "2.8.4", "O(N) where N is the number of monitored masters",
        "Resets Redis masters by name matching a pattern."),
    row("SENTINELS", sentinels, "master-name", "2.8.4", "O(N) where N is the number of Sentinels",
        "Returns a list of Sentinel instances."),
    row("SET", sentinel_set, "master-name {data=option value}...", "2.8.4", "O(1)",
        "Changes the configuration of a monitored Redis master.",
        {.find_secrets = find_set_secrets}),
    row("SIMULATE-FAILURE", simulate_failure,
        // The reference documents these words as tokens without a text.
        "_ "
        "[mode=crash-after-election:pure-token|crash-after-promotion:pure-token|help:pure-token].."
        ".",
        "3.2.0", nullptr, "Simulates failover scenarios."),
    row("SLAVES", replicas, "master-name", "2.8.0", "O(N) where N is the number of replicas.",
        "Returns a list of the monitored replicas.",
        {.deprecated_since = "5.0.0", .replaced_by = "`SENTINEL REPLICAS`"}),
};

constexpr CommandRow kSentinelRows[] = {
    {"SENTINEL",
     nullptr,
     "",
     kAdmin,
     {},
     0,
     Group::kSentinel,
     "2.8.4",
     "Depends on subcommand.",
     "A container for Redis Sentinel commands.",
     {.subcommands = kSubcommands}},
};

}  // namespace

std::span<const CommandRow> sentinel_rows() {
  return kSentinelRows;
}

}  // namespace latchkey::sentinel
