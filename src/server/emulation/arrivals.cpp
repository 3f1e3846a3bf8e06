#include "server/emulation/arrivals.h"

#include <algorithm>

#include "base/text/text.h"
#include "server/command/command.h"

namespace latchkey::server {

namespace {

struct Arrival {
  std::string_view command;
  std::string_view token;  // empty: the command itself
  Version redis;
  Version valkey;
};

constexpr Arrival kArrivals[] = {
    // Documented as of 8.2.
    {"vismember", "", {8, 0}, kNever},

    // Arguments that the rows' documentation gives no version of.
    {"bitop", "ANDOR", {8, 2}, kNever},
    {"bitop", "DIFF", {8, 2}, kNever},
    {"bitop", "DIFF1", {8, 2}, kNever},
    {"bitop", "ONE", {8, 2}, kNever},
    {"hscan", "NOVALUES", {7, 4}, {8, 0}},
    {"xadd", "ACKED", {8, 2}, kNever},
    {"xadd", "DELREF", {8, 2}, kNever},
    {"xadd", "KEEPREF", {8, 2}, kNever},
    {"xadd", "IDMP", {8, 6}, kNever},
    {"xadd", "IDMPAUTO", {8, 6}, kNever},
    {"xreadgroup", "CLAIM", {8, 4}, kNever},
    {"xtrim", "ACKED", {8, 2}, kNever},
    {"xtrim", "DELREF", {8, 2}, kNever},
    {"xtrim", "KEEPREF", {8, 2}, kNever},
    {"zinter", "COUNT", {8, 8}, kNever},
    {"zinterstore", "COUNT", {8, 8}, kNever},
    {"zrank", "WITHSCORE", {7, 2}, {}},
    {"zrevrank", "WITHSCORE", {7, 2}, {}},
    {"zunion", "COUNT", {8, 8}, kNever},
    {"zunionstore", "COUNT", {8, 8}, kNever},

    // Added by Valkey on its own, or in a later version than by Redis.
    {"cluster|slot-stats", "", {8, 2}, {8, 0}},
    {"cluster|cancelslotmigrations", "", kNever, {9, 0}},
    {"cluster|replicate", "ONE", kNever, {9, 0}},
    {"cluster|flushslot", "", kNever, {9, 0}},
    {"cluster|getslotmigrations", "", kNever, {9, 0}},
    {"cluster|migrateslots", "", kNever, {9, 0}},
    {"cluster|syncslots", "", {8, 4}, {9, 0}},
    {"clusterscan", "", kNever, {9, 1}},
    {"bgsave", "CANCEL", kNever, {8, 1}},
    {"client|kill", "MAXAGE", {7, 4}, {8, 0}},
    {"client|capa", "", kNever, {8, 0}},
    {"client|import-source", "", kNever, {8, 1}},
    {"commandlog", "", kNever, {8, 1}},
    {"commandlog|get", "", kNever, {8, 1}},
    {"commandlog|help", "", kNever, {8, 1}},
    {"commandlog|len", "", kNever, {8, 1}},
    {"commandlog|reset", "", kNever, {8, 1}},
    {"delifeq", "", kNever, {9, 0}},
    {"shutdown", "SAFE", kNever, {9, 0}},
    {"shutdown", "FAILOVER", kNever, {9, 0}},
    {"set", "IFEQ", {8, 4}, {8, 1}},
    {"hexpire", "", {7, 4}, {9, 0}},
    {"hexpireat", "", {7, 4}, {9, 0}},
    {"hexpiretime", "", {7, 4}, {9, 0}},
    {"hpersist", "", {7, 4}, {9, 0}},
    {"hpexpire", "", {7, 4}, {9, 0}},
    {"hpexpireat", "", {7, 4}, {9, 0}},
    {"hpexpiretime", "", {7, 4}, {9, 0}},
    {"hpttl", "", {7, 4}, {9, 0}},
    {"httl", "", {7, 4}, {9, 0}},
    {"hgetex", "", {8, 0}, {9, 0}},
    {"hsetex", "", {8, 0}, {9, 0}},
    {"hgetdel", "", {8, 0}, {9, 1}},
    {"msetex", "", {8, 4}, {9, 1}},
    {"script|show", "", kNever, {8, 0}},
    {"sentinel|get-primary-addr-by-name", "", kNever, {8, 0}},
    {"sentinel|is-primary-down-by-addr", "", kNever, {8, 0}},
    {"sentinel|primaries", "", kNever, {8, 0}},
    {"sentinel|primary", "", kNever, {8, 0}},
    {"zscan", "NOSCORES", kNever, {8, 1}},
};

// Flags that commands have had, or no longer have, since a release.
struct FlagChange {
  std::string_view command;
  uint32_t flag;
  bool gained;
  Version redis;
  Version valkey;
};

constexpr FlagChange kFlagChanges[] = {
    {"blmove", kNoScript, false, {7, 2}, {}},
    {"blpop", kNoScript, false, {7, 2}, {}},
    {"brpop", kNoScript, false, {7, 2}, {}},
    {"brpoplpush", kNoScript, false, {7, 2}, {}},
    {"bzpopmax", kNoScript, false, {7, 2}, {}},
    {"bzpopmin", kNoScript, false, {7, 2}, {}},
    {"wait", kNoScript, false, {7, 2}, {}},
    {"wait", kBlocking, true, {7, 2}, {}},
    {"cluster|shards", kLoading, true, {7, 2}, {}},
    {"cluster|slots", kLoading, true, {7, 2}, {}},
    {"psubscribe", kDenyOom, true, {8, 6}, kNever},
    {"ssubscribe", kDenyOom, true, {8, 6}, kNever},
    {"subscribe", kDenyOom, true, {8, 6}, kNever},

    // Valkey's own.
    {"client|caching", kAllowBusy, true, kNever, {9, 0}},
    {"client|capa", kAllowBusy, true, kNever, {9, 0}},
    {"client|getname", kAllowBusy, true, kNever, {9, 0}},
    {"client|getredir", kAllowBusy, true, kNever, {9, 0}},
    {"client|id", kAllowBusy, true, kNever, {9, 0}},
    {"client|no-evict", kAllowBusy, true, kNever, {9, 0}},
    {"client|no-touch", kAllowBusy, true, kNever, {9, 0}},
    {"client|reply", kAllowBusy, true, kNever, {9, 0}},
    {"client|setinfo", kAllowBusy, true, kNever, {9, 0}},
    {"client|setname", kAllowBusy, true, kNever, {9, 0}},
    {"select", kAllowBusy, true, kNever, {9, 0}},
    {"client|reply", kNoMulti, true, kNever, {9, 0}},
    {"multi", kNoMulti, true, kNever, {8, 0}},
    {"watch", kNoMulti, true, kNever, {8, 0}},
    {"cluster|info", kLoading, true, kNever, {8, 0}},
    {"cluster|myid", kLoading, true, kNever, {8, 0}},
    {"cluster|myshardid", kLoading, true, kNever, {8, 0}},
    {"cluster|nodes", kLoading, true, kNever, {8, 0}},
    {"memory|malloc-stats", kLoading, true, kNever, {8, 0}},
    {"memory|purge", kLoading, true, kNever, {8, 0}},
    {"script|exists", kStale, true, kNever, {9, 0}},
    {"script|flush", kStale, true, kNever, {9, 0}},
    {"script|show", kStale, true, kNever, {9, 0}},
};

// Commands that Valkey no longer calls deprecated.
struct Undeprecation {
  std::string_view command;
  Version valkey;
};

constexpr Undeprecation kUndeprecations[] = {
    {"cluster|slots", {8, 0}},
    {"brpoplpush", {9, 0}},
    {"georadius", {9, 0}},
    {"georadius_ro", {9, 0}},
    {"georadiusbymember", {9, 0}},
    {"georadiusbymember_ro", {9, 0}},
    {"getset", {9, 0}},
    {"hmset", {9, 0}},
    {"psetex", {9, 0}},
    {"quit", {9, 0}},
    {"rpoplpush", {9, 0}},
    {"setex", {9, 0}},
    {"setnx", {9, 0}},
    {"substr", {9, 0}},
    {"zrangebylex", {9, 0}},
    {"zrangebyscore", {9, 0}},
    {"zrevrange", {9, 0}},
    {"zrevrangebylex", {9, 0}},
    {"zrevrangebyscore", {9, 0}},
};

constexpr std::string_view kOwnCommands[] = {"calls", "checkpoint", "clock",
                                             "fault", "lock",       "space"};

const Arrival* arrival_of(std::string_view full_name, std::string_view token) {
  for (const Arrival& arrival : kArrivals) {
    if (base::equal_ignoring_case(arrival.command, full_name) &&
        base::equal_ignoring_case(arrival.token, token))
      return &arrival;
  }
  return nullptr;
}

bool has(const Edition& edition, const Arrival* arrival, std::string_view since) {
  if (arrival != nullptr) return edition.has(arrival->redis, arrival->valkey);
  const auto version = parse_version(since);
  return !version || edition.has(*version);
}

}  // namespace

bool has_command(const Edition& edition, std::string_view full_name, std::string_view since) {
  if (!edition.emulates() || is_own_command(full_name)) return true;
  return has(edition, arrival_of(full_name, ""), since);
}

bool has_argument(const Edition& edition, std::string_view full_name, std::string_view token,
                  std::string_view since) {
  const Arrival* const arrival = token.empty() ? nullptr : arrival_of(full_name, token);
  return has(edition, arrival, since);
}

uint32_t flags_in(const Edition& edition, std::string_view full_name, uint32_t flags) {
  if (!edition.emulates()) return flags;
  if (!edition.has({8, 8})) flags &= ~kScriptRunner;
  for (const FlagChange& change : kFlagChanges) {
    if (!base::equal_ignoring_case(change.command, full_name)) continue;
    const bool has_flag = edition.has(change.redis, change.valkey) == change.gained;
    flags = has_flag ? flags | change.flag : flags & ~change.flag;
  }
  return flags;
}

int arity_in(const Edition& edition, std::string_view full_name, int arity) {
  constexpr int kFourWordsOrMore = -4;
  if (base::equal_ignoring_case(full_name, "cluster|migrateslots")) return kFourWordsOrMore;
  const bool finds_keys = base::equal_ignoring_case(full_name, "command|getkeys") ||
                          base::equal_ignoring_case(full_name, "command|getkeysandflags");
  // Requests of one word, which have no keys, came to be taken later.
  return finds_keys && !edition.has({7, 2}) ? kFourWordsOrMore : arity;
}

bool is_deprecated(const Edition& edition, std::string_view full_name, const char* since) {
  if (since == nullptr) return false;
  const auto version = parse_version(since);
  if (version && !edition.has(*version)) return false;
  return std::none_of(std::begin(kUndeprecations), std::end(kUndeprecations),
                      [&](const Undeprecation& each) {
                        return edition.is_valkey_since(each.valkey) &&
                               base::equal_ignoring_case(each.command, full_name);
                      });
}

bool is_own_command(std::string_view full_name) {
  const std::string_view name = full_name.substr(0, full_name.find('|'));
  return std::any_of(std::begin(kOwnCommands), std::end(kOwnCommands),
                     [&](std::string_view own) { return base::equal_ignoring_case(own, name); });
}

}  // namespace latchkey::server
