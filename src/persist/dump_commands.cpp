// DUMP and RESTORE: values as bytes, for storing elsewhere or transferring to another server.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "persist/rdb/dump_payload.h"
#include "persist/rows.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::persist {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

void dump(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  BlobSink sink;
  write_dump(sink, *ref, ctx.server.settings().rdbcompression, ctx.server.edition().rdb_version(),
             /*with_links=*/false);
  ctx.reply.bulk(sink.blobs());
}

struct RestoreOptions {
  bool replace = false;
  bool absolute_ttl = false;
  std::optional<int64_t> idle_seconds;
  std::optional<int64_t> frequency;
};

// False with an error sent.
bool read_options(CommandContext& ctx, RestoreOptions* options) {
  std::string_view text;
  int64_t number;
  for (ArgReader args(ctx.args, 4); args.more();) {
    if (args.word("REPLACE")) {
      options->replace = true;
    } else if (args.word("ABSTTL")) {
      options->absolute_ttl = true;
    } else if (!options->frequency && args.word("IDLETIME", &text)) {
      if (!ctx.read_int64(text, &number)) return false;
      if (number < 0) return ctx.refuse("ERR Invalid IDLETIME value, must be >= 0");
      options->idle_seconds = number;
    } else if (!options->idle_seconds && args.word("FREQ", &text)) {
      if (!ctx.read_int64(text, &number)) return false;
      if (number < 0 || number > std::numeric_limits<uint8_t>::max())
        return ctx.refuse("ERR Invalid FREQ value, must be >= 0 and <= 255");
      options->frequency = number;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

// Converts the argument to a deadline, or Keyspace::kNoDeadline. False with an error sent.
bool read_deadline(CommandContext& ctx, bool is_absolute, int64_t* deadline_ms) {
  int64_t ttl_ms;
  if (!ctx.read_int64(ctx.args[2], &ttl_ms)) return false;
  if (ttl_ms < 0) return ctx.refuse("ERR Invalid TTL value, must be >= 0");
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  if (ttl_ms == 0) {
    *deadline_ms = Keyspace::kNoDeadline;
  } else if (is_absolute) {
    *deadline_ms = ttl_ms;
  } else {
    *deadline_ms = ttl_ms > kLatest - ctx.now_ms() ? kLatest : ttl_ms + ctx.now_ms();
  }
  return true;
}

// The deadline has passed: the new key counts as one that has expired, and the old one is removed.
void restore_nothing(CommandContext& ctx, KeyRef& ref) {
  ++ctx.db.environment().figures.expired_keys;
  if (ref) {
    const bool lazily = ctx.server.settings().lazyfree_lazy_server_del;
    ctx.db.erase(ref, lazily);
    ctx.removed(ctx.args[1]);
    ctx.propagate({lazily ? "UNLINK" : "DEL", ctx.args[1]});
  }
  ctx.reply.ok();
}

void set_access(CommandContext& ctx, KeyRef& ref, const RestoreOptions& options) {
  const store::Environment& environment = ctx.db.environment();
  if (environment.use_lfu && options.frequency) {
    const auto counter = static_cast<uint8_t>(*options.frequency);
    ctx.db.set_access(ref, frequency_access(environment, counter));
  } else if (!environment.use_lfu && options.idle_seconds) {
    const auto seconds = static_cast<uint64_t>(*options.idle_seconds);
    ctx.db.set_access(ref, idle_access(environment, seconds));
  } else {
    ctx.db.set_access(ref, store::initial_access(environment));
  }
}

// Propagates the request with the time to live as an absolute time.
void propagate_at(CommandContext& ctx, int64_t deadline_ms) {
  const std::string deadline = std::to_string(deadline_ms);
  std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
  words[2] = deadline;
  words.push_back("ABSTTL");
  ctx.propagate({}, words);
}

void restore(CommandContext& ctx) {
  RestoreOptions options;
  if (!read_options(ctx, &options)) return;
  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_to_replace(key);
  if (ref && !options.replace) return ctx.reply.error("BUSYKEY Target key name already exists.");
  int64_t deadline_ms;
  if (!read_deadline(ctx, options.absolute_ttl, &deadline_ms)) return;
  if (!is_intact_dump(ctx.args[3], ctx.server.debug_settings().skip_checksums,
                      newest_dump_version(ctx.server)))
    return ctx.reply.error("ERR DUMP payload version or checksum are wrong");

  LoadedValue loaded;
  std::string room;
  if (const base::Result<> read = read_dump(ctx.args[3], ctx.db.environment(), room, &loaded);
      !read) {
    ctx.server.log().verbose("RESTORE refused a value: " + read.error());
    return ctx.reply.error("ERR Bad data format");
  }
  const bool expires_keys = ctx.db.environment().expired != store::Environment::Expired::kShow &&
                            (ctx.server.state() & server::kStateImporting) == 0;
  if (deadline_ms != Keyspace::kNoDeadline && deadline_ms <= ctx.now_ms() && expires_keys)
    return restore_nothing(ctx, ref);
  // A key that is replaced is deleted and made anew.
  if (ref) ctx.events.happened(ctx.db, key, EventClass::kNewKey, "new");
  put_value(ctx.db, ref, loaded, deadline_ms);
  set_access(ctx, ref, options);
  ctx.changed(key, EventClass::kGeneric, "restore");
  if (deadline_ms != Keyspace::kNoDeadline && !options.absolute_ttl) propagate_at(ctx, deadline_ms);
  ctx.reply.ok();
}

void debug_set_skip_checksum_validation(CommandContext& ctx) {
  int64_t skip;
  if (!ctx.read_int64(ctx.args[2], &skip)) return;
  ctx.server.debug_settings().skip_checksums = skip != 0;
  ctx.reply.ok();
}

constexpr DebugSubcommand kDebugSubcommands[] = {
    {"SET-SKIP-CHECKSUM-VALIDATION", 1, 1, debug_set_skip_checksum_validation,
     "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
     "Turns off the checks of checksums of files and of RESTORE's payloads, or on again."},
};

constexpr CommandRow kDumpRows[] = {
    {"DUMP",
     dump,
     "key",
     kReadOnly,
     keys(1).ro().access(),
     kAclKeyspace,
     Group::kGeneric,
     "2.6.0",
     "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis "
     "objects composing the value and M their average size. For small string values the time "
     "complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
     "Returns a serialized representation of the value stored at a key.",
     {.tips = "nondeterministic_output"}},
    {"RESTORE",
     restore,
     "key ttl serialized-value [REPLACE]@3.0.0 [ABSTTL]@5.0.0 [IDLETIME seconds]@5.0.0 [FREQ "
     "frequency:integer]@5.0.0",
     kWrite | kDenyOom,
     keys(1).ow().update(),
     kAclKeyspace | kAclDangerous,
     Group::kGeneric,
     "2.6.0",
     "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where "
     "N is the number of Redis objects composing the value and M their average size. For small "
     "string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). "
     "However for sorted set values the complexity is O(N*M*log(N)) because inserting values into "
     "sorted sets is O(log(N)).",
     "Creates a key from the serialized representation of a value.",
     {.history = "3.0.0 Added the `REPLACE` modifier.\n5.0.0 Added the `ABSTTL` modifier.\n5.0.0 "
                 "Added the `IDLETIME` and `FREQ` options."}},
    {"RESTORE-ASKING",
     restore,
     "key ttl serialized-value [REPLACE]@3.0.0 [ABSTTL]@5.0.0 [IDLETIME seconds]@5.0.0 [FREQ "
     "frequency:integer]@5.0.0",
     kWrite | kDenyOom | kAsking,
     keys(1).ow().update(),
     kAclKeyspace | kAclDangerous,
     Group::kServer,
     "3.0.0",
     "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where "
     "N is the number of Redis objects composing the value and M their average size. For small "
     "string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). "
     "However for sorted set values the complexity is O(N*M*log(N)) because inserting values into "
     "sorted sets is O(log(N)).",
     "An internal command for migrating keys in a cluster.",
     {.history = "3.0.0 Added the `REPLACE` modifier.\n5.0.0 Added the `ABSTTL` modifier.\n5.0.0 "
                 "Added the `IDLETIME` and `FREQ` options.",
      .system = true}},
};

}  // namespace

std::span<const CommandRow> dump_rows() {
  return kDumpRows;
}

std::span<const DebugSubcommand> dump_debug_subcommands() {
  return kDebugSubcommands;
}

}  // namespace latchkey::persist
