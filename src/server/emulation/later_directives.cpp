#include "server/emulation/later_directives.h"

#include <algorithm>

namespace latchkey::server {

namespace {

// Those that came after the oldest release that can be emulated, or went since. Whatever is gone
// from Redis Latchkey itself does not know either.
struct DirectiveArrival {
  std::string_view name;
  Version redis;
  Version valkey;
  Version gone_from_valkey = kNever;
  Version gone_from_redis = kNever;
};

constexpr DirectiveArrival kDirectives[] = {
    {"aof-timestamp-enabled", {7, 0}, {}},
    {"appenddirname", {7, 0}, {}},
    {"bind-source-addr", {7, 0}, {}},
    {"busy-reply-threshold", {7, 0}, {}},
    {"cluster-allow-pubsubshard-when-down", {7, 0}, {}},
    {"cluster-announce-hostname", {7, 0}, {}},
    {"cluster-link-sendbuf-limit", {7, 0}, {}},
    {"cluster-port", {7, 0}, {}},
    {"cluster-preferred-endpoint-type", {7, 0}, {}},
    {"enable-debug-command", {7, 0}, {}},
    {"enable-module-command", {7, 0}, {}},
    {"enable-protected-configs", {7, 0}, {}},
    {"hash-max-listpack-entries", {7, 0}, {}},
    {"hash-max-listpack-value", {7, 0}, {}},
    {"latency-tracking", {7, 0}, {}},
    {"latency-tracking-info-percentiles", {7, 0}, {}},
    {"list-max-listpack-size", {7, 0}, {}},
    {"maxmemory-clients", {7, 0}, {}},
    {"propagation-error-behavior", {7, 0}, {}},
    {"repl-diskless-sync-max-replicas", {7, 0}, {}},
    {"replica-ignore-disk-write-errors", {7, 0}, {}},
    {"shutdown-on-sigint", {7, 0}, {}},
    {"shutdown-on-sigterm", {7, 0}, {}},
    {"shutdown-timeout", {7, 0}, {}},
    {"socket-mark-id", {7, 0}, {}},
    {"zset-max-listpack-entries", {7, 0}, {}},
    {"zset-max-listpack-value", {7, 0}, {}},

    {"cluster-announce-human-nodename", {7, 2}, {}},
    {"locale-collate", {7, 2}, {}},
    {"set-max-listpack-entries", {7, 2}, {}},
    {"set-max-listpack-value", {7, 2}, {}},

    {"aof-rewrite-cpulist", {7, 4}, {8, 0}},
    {"bgsave-cpulist", {7, 4}, {8, 0}},
    {"bio-cpulist", {7, 4}, {8, 0}},
    {"hide-user-data-from-log", {7, 4}, {8, 0}},
    {"max-new-connections-per-cycle", {7, 4}, {8, 0}},
    {"max-new-tls-connections-per-cycle", {7, 4}, {8, 0}},
    {"server-cpulist", {7, 4}, {8, 0}},

    {"bf-error-rate", {8, 0}, kNever},
    {"bf-expansion-factor", {8, 0}, kNever},
    {"bf-initial-size", {8, 0}, kNever},
    {"cf-bucket-size", {8, 0}, kNever},
    {"cf-expansion-factor", {8, 0}, kNever},
    {"cf-initial-size", {8, 0}, kNever},
    {"cf-max-expansions", {8, 0}, kNever},
    {"cf-max-iterations", {8, 0}, kNever},
    {"cluster-compatibility-sample-ratio", {8, 0}, kNever},
    {"replica-full-sync-buffer-limit", {8, 0}, kNever},
    {"ts-chunk-size-bytes", {8, 0}, kNever},
    {"ts-compaction-policy", {8, 0}, kNever},
    {"ts-duplicate-policy", {8, 0}, kNever},
    {"ts-encoding", {8, 0}, kNever},
    {"ts-ignore-max-time-diff", {8, 0}, kNever},
    {"ts-ignore-max-val-diff", {8, 0}, kNever},
    {"ts-num-threads", {8, 0}, kNever},
    {"ts-retention-policy", {8, 0}, kNever},

    {"aof-load-corrupt-tail-max-size", {8, 2}, kNever},
    {"cluster-slot-migration-handoff-max-lag-bytes", {8, 4}, kNever},
    {"cluster-slot-migration-max-archived-tasks", {8, 4}, kNever},
    {"cluster-slot-migration-sync-buffer-drain-timeout", {8, 4}, kNever},
    {"cluster-slot-migration-write-pause-timeout", {8, 4}, kNever},
    {"cluster-slot-stats-enabled", {8, 2}, {8, 0}},
    {"key-memory-histograms", {8, 6}, kNever},
    {"vset-force-single-threaded-execution", {8, 6}, kNever},
    {"tls-auth-clients-user", {8, 6}, {9, 0}},
    {"lookahead", {8, 2}, kNever},
    {"stream-idmp-duration", {8, 6}, kNever},
    {"stream-idmp-maxsize", {8, 6}, kNever},
    {"backup-sealed-ttl", {8, 10}, kNever},
    {"backupdirname", {8, 10}, kNever},
    {"hash-max-template-entries", {8, 10}, kNever},
    {"hash-min-template-entries", {8, 10}, kNever},
    {"hash-rdb-load-max-template-entries", {8, 10}, kNever},
    {"hash-rdb-load-min-template-entries", {8, 10}, kNever},
    {"preload-file", {8, 10}, kNever},
    {"array-slice-size", {8, 8}, kNever},
    {"array-sparse-kmax", {8, 8}, kNever},
    {"array-sparse-kmin", {8, 8}, kNever},
    {"cluster-bus-port-protected-mode", {8, 8}, kNever},
    {"slowlog-entry-max-argc", {8, 8}, kNever},
    {"slowlog-entry-max-string-len", {8, 8}, kNever},

    {"dynamic-hz", {}, {}, {8, 1}},
    {"io-threads-do-reads", {}, {}, {8, 0}, {8, 0}},
    {"sanitize-dump-payload", {}, {}, {9, 0}},

    {"availability-zone", kNever, {8, 0}},
    {"cluster-announce-client-ipv4", kNever, {8, 1}},
    {"cluster-announce-client-ipv6", kNever, {8, 1}},
    {"cluster-databases", kNever, {9, 0}},
    {"cluster-slot-migration-log-max-len", kNever, {9, 0}},
    {"active-defrag-cycle-us", kNever, {8, 1}},
    {"cluster-announce-client-port", kNever, {9, 1}},
    {"cluster-announce-client-tls-port", kNever, {9, 1}},
    {"cluster-config-save-behavior", kNever, {9, 1}},
    {"cluster-message-gossip-perc", kNever, {9, 1}},
    {"io-threads-always-active", kNever, {9, 1}},
    {"lua-enable-insecure-api", kNever, {9, 0}},
    {"min-io-threads-avoid-copy-reply", kNever, {8, 1}},
    {"min-string-size-avoid-copy-reply", kNever, {8, 1}},
    {"min-string-size-avoid-copy-reply-threaded", kNever, {8, 1}},
    {"mptcp", kNever, {9, 0}},
    {"prefetch-batch-max-size", {8, 2}, {8, 0}},
    {"repl-mptcp", kNever, {9, 0}},
    {"hash-seed", kNever, {9, 1}},
    {"slot-migration-max-failover-repl-bytes", kNever, {9, 0}},
    {"cluster-blacklist-ttl", kNever, {8, 0}},
    {"cluster-manual-failover-timeout", kNever, {8, 1}},
    {"dual-channel-replication-enabled", kNever, {8, 0}},

    {"commandlog-execution-slower-than", kNever, {8, 1}},
    {"commandlog-large-reply-max-len", kNever, {8, 1}},
    {"commandlog-large-request-max-len", kNever, {8, 1}},
    {"commandlog-reply-larger-than", kNever, {8, 1}},
    {"commandlog-request-larger-than", kNever, {8, 1}},
    {"commandlog-slow-execution-max-len", kNever, {8, 1}},
    {"events-per-io-thread", kNever, {8, 0}, {9, 1}},
    {"extended-redis-compatibility", kNever, {8, 0}},
    {"import-mode", kNever, {8, 1}},
    {"log-format", kNever, {8, 1}},
    {"log-timestamp-format", kNever, {8, 1}},
    {"primaryauth", kNever, {8, 0}},
    {"primaryuser", kNever, {8, 0}},
    {"rdb-version-check", kNever, {8, 1}},
    {"rdma-bind", kNever, {8, 1}},
    {"rdma-completion-vector", kNever, {8, 1}},
    {"rdma-port", kNever, {8, 1}},
    {"rdma-rx-size", kNever, {8, 1}},
    {"tls-auto-reload-interval", kNever, {9, 1}},
    {"unixsocketgroup", kNever, {8, 0}},
};

// Of releases older than any that can be emulated.
constexpr std::string_view kOldest[] = {
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
};

struct WordArrival {
  std::string_view directive;
  std::string_view word;
  Version redis;
  Version valkey;
};

constexpr WordArrival kWords[] = {
    {"log-format", "json", kNever, {9, 1}},
    {"loglevel", "nothing", {7, 2}, {}},
    {"maxmemory-policy", "allkeys-lrm", {8, 6}, kNever},
    {"maxmemory-policy", "volatile-lrm", {8, 6}, kNever},
    {"repl-diskless-load", "flush-before-load", kNever, {8, 1}},
    {"repl-diskless-load", "flushdb", {8, 6}, kNever},
};

struct LetterArrival {
  char letter;
  Version redis;
  Version valkey;
};

constexpr LetterArrival kEventClasses[] = {
    {'n', {7, 0}, {}},     {'c', {8, 2}, kNever}, {'o', {8, 2}, kNever}, {'I', {8, 8}, kNever},
    {'S', {8, 8}, kNever}, {'T', {8, 8}, kNever}, {'V', {8, 8}, kNever}, {'a', {8, 8}, kNever},
};

const DirectiveArrival* find_arrival(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kDirectives), std::end(kDirectives),
                   [name](const DirectiveArrival& each) { return each.name == name; });
  return found == std::end(kDirectives) ? nullptr : found;
}

bool is_gone(const Edition& edition, const DirectiveArrival& directive) {
  if (edition.is_valkey()) return edition.is_valkey_since(directive.gone_from_valkey);
  return directive.gone_from_redis != kNever && edition.has(directive.gone_from_redis);
}

}  // namespace

bool has_directive(const Edition& edition, std::string_view name) {
  const DirectiveArrival* const found = find_arrival(name);
  if (found == nullptr) return true;
  return !is_gone(edition, *found) && edition.has(found->redis, found->valkey);
}

bool ignores_directive(const Edition& edition, std::string_view name) {
  if (std::find(std::begin(kOldest), std::end(kOldest), name) != std::end(kOldest)) return true;
  const DirectiveArrival* const found = find_arrival(name);
  return found != nullptr && is_gone(edition, *found);
}

bool has_directive_word(const Edition& edition, std::string_view name, std::string_view word) {
  return std::all_of(std::begin(kWords), std::end(kWords), [&](const WordArrival& each) {
    return each.directive != name || each.word != word || edition.has(each.redis, each.valkey);
  });
}

bool has_event_class(const Edition& edition, char letter) {
  return std::all_of(std::begin(kEventClasses), std::end(kEventClasses),
                     [&](const LetterArrival& each) {
                       return each.letter != letter || edition.has(each.redis, each.valkey);
                     });
}

}  // namespace latchkey::server
