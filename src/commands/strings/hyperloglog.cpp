// Estimates of the number of different elements: PFADD, PFCOUNT, PFMERGE, and the debugging
// commands PFDEBUG and PFSELFTEST.
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "server/client/tracking.h"
#include "server/command/command_context.h"
#include "server/command/watch.h"
#include "server/config/debug_settings.h"
#include "server/server.h"
#include "store/encoding/hyperloglog.h"

namespace latchkey::commands {

using namespace server;
using store::HyperLogLog;
using store::KeyRef;
using store::Keyspace;

namespace {

using Change = HyperLogLog::Change;
using Registers = HyperLogLog::Registers;

// --- Shared steps -------------------------------------------------------------------------------

// The bytes of the HyperLogLog at an existing key, or nothing with an error sent. Valid until the
// key's next change, and as long as `scratch`.
std::optional<std::string_view> bytes_at(CommandContext& ctx, const KeyRef& ref, char* scratch) {
  if (!ctx.is_string(ref)) return std::nullopt;
  const std::string_view bytes = ref->string(scratch);
  if (HyperLogLog::is_one(bytes)) return bytes;
  return ctx.refuse("WRONGTYPE Key is not a valid HyperLogLog string value.", std::nullopt);
}

void corrupt(CommandContext& ctx) {
  ctx.reply.error("INVALIDOBJ Corrupted HLL object detected");
}

// The bytes of the string at `ref`, for writing. Converts the string to the form of strings changed
// in place, which OBJECT ENCODING shows.
std::span<char> writable(CommandContext& ctx, KeyRef& ref) {
  return ctx.db.extend_string(ref, ref->string_size());
}

// Like bytes_at(), for writing.
std::optional<std::span<char>> writable_at(CommandContext& ctx, KeyRef& ref) {
  char scratch[base::kMaxInt64Text];
  return bytes_at(ctx, ref, scratch) ? std::optional(writable(ctx, ref)) : std::nullopt;
}

std::string_view view(std::span<char> bytes) {
  return {bytes.data(), bytes.size()};
}

// Sets the key to `bytes`; the deadline stays.
void put(CommandContext& ctx, KeyRef& ref, std::string_view bytes) {
  if (!ref || ref->string_size() != bytes.size())
    ctx.db.set_text(ref, bytes, Keyspace::kKeepDeadline);
  std::memcpy(writable(ctx, ref).data(), bytes.data(), bytes.size());
}

size_t sparse_limit(const CommandContext& ctx) {
  return ctx.server.settings().hll_sparse_max_bytes;
}

// --- Adding -------------------------------------------------------------------------------------

// Adds elements, and returns how many of them changed a register.
uint64_t add_to_dense(std::span<char> bytes, Arguments elements) {
  uint64_t changes = 0;
  for (const std::string_view element : elements)
    changes += HyperLogLog::add_to_dense(bytes, element) ? 1 : 0;
  if (changes > 0) HyperLogLog::forget_count(bytes);
  return changes;
}

// The same for a sparse HyperLogLog, or a new one when there is no key. Nothing, with an error sent
// and no change, when it is corrupt.
std::optional<uint64_t> add_to_sparse(CommandContext& ctx, KeyRef& ref, std::string_view bytes,
                                      Arguments elements) {
  HyperLogLog sketch = ref ? HyperLogLog(bytes) : HyperLogLog();
  uint64_t changes = ref ? 0 : 1;
  for (const std::string_view element : elements) {
    const Change change = sketch.add(element, sparse_limit(ctx));
    if (change == Change::kCorrupt) {
      corrupt(ctx);
      return std::nullopt;
    }
    changes += change == Change::kMade ? 1 : 0;
  }
  if (changes == 0) return changes;
  sketch.forget_count();
  put(ctx, ref, sketch.bytes());
  return changes;
}

void pfadd(CommandContext& ctx) {
  const Arguments elements = ctx.args.subspan(2);
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  std::optional<std::span<char>> bytes;
  if (ref && !(bytes = writable_at(ctx, ref))) return;
  const std::optional<uint64_t> changes =
      bytes && HyperLogLog::is_dense(view(*bytes))
          ? add_to_dense(*bytes, elements)
          : add_to_sparse(ctx, ref, bytes ? view(*bytes) : std::string_view(), elements);
  if (!changes) return;
  if (*changes > 0) {
    ctx.changed(ctx.args[1], EventClass::kString, "pfadd");
    ctx.events.count(*changes - 1);
  }
  ctx.reply.integer(*changes > 0 ? 1 : 0);
}

// --- Counting and merging -----------------------------------------------------------------------

// Merges the registers of all keys, taking the highest of each. False, with an error sent, when a
// key is no HyperLogLog. *any_dense: whether one was dense.
bool merge_keys(CommandContext& ctx, Arguments keys, Registers* registers, bool* any_dense) {
  const bool many_at_a_time = ctx.server.debug_settings().merge_eight_registers;
  char scratch[base::kMaxInt64Text];
  // A HyperLogLog is no integer, so its bytes stay in place until the key is changed.
  std::vector<std::string_view> dense;
  for (const std::string_view key : keys) {
    const KeyRef ref = ctx.db.find(key);
    if (!ref) continue;
    const auto bytes = bytes_at(ctx, ref, scratch);
    if (!bytes) return false;
    *any_dense |= HyperLogLog::is_dense(*bytes);
    if (many_at_a_time && HyperLogLog::is_dense(*bytes)) {
      dense.push_back(*bytes);
      continue;
    }
    if (HyperLogLog::merge(*bytes, registers, many_at_a_time)) continue;
    corrupt(ctx);
    return false;
  }
  HyperLogLog::merge_dense(dense, registers);
  return true;
}

void count_union(CommandContext& ctx, Arguments keys) {
  Registers registers{};
  bool any_dense = false;
  if (merge_keys(ctx, keys, &registers, &any_dense))
    ctx.reply.integer(static_cast<int64_t>(HyperLogLog::count(registers)));
}

// The count of a single key is cached in its value, so this reading command changes the value.
void pfcount(CommandContext& ctx) {
  if (ctx.args.size() > 2) return count_union(ctx, ctx.args.subspan(1));
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1], Keyspace::kTouch);
  if (!ref) return ctx.reply.integer(0);
  const auto bytes = writable_at(ctx, ref);
  if (!bytes) return;
  std::optional<uint64_t> count = HyperLogLog::cached_count(view(*bytes));
  if (!count) {
    count = HyperLogLog::count(view(*bytes));
    if (!count) return corrupt(ctx);
    HyperLogLog::cache_count(*bytes, *count);
    // No event is sent, but clients that watch or track the key must be notified.
    ctx.server.watches().key_changed(ctx.db, ctx.args[1], EventClass::kString, {});
    ctx.server.tracking().key_changed(ctx.db, ctx.args[1], EventClass::kString, {});
    ctx.events.count(1);
  }
  ctx.reply.integer(static_cast<int64_t>(*count));
}

void pfmerge(CommandContext& ctx) {
  Registers registers{};
  bool any_dense = false;
  if (!merge_keys(ctx, ctx.args.subspan(1), &registers, &any_dense)) return;
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  char scratch[base::kMaxInt64Text];
  if (ref && HyperLogLog::is_dense(ref->string(scratch))) {
    // The registers of the destination were merged with the others.
    const std::span<char> bytes = writable(ctx, ref);
    HyperLogLog::set_registers(bytes, registers);
    HyperLogLog::forget_count(bytes);
  } else {
    HyperLogLog sketch = ref ? HyperLogLog(ref->string(scratch)) : HyperLogLog();
    if ((any_dense && !sketch.make_dense()) || !sketch.raise(registers, sparse_limit(ctx)))
      return corrupt(ctx);
    sketch.forget_count();
    put(ctx, ref, sketch.bytes());
  }
  ctx.changed(ctx.args[1], EventClass::kString, "pfadd");
  ctx.reply.ok();
}

// --- Debugging ----------------------------------------------------------------------------------

// Converts the key to dense; false, with an error sent, when it is corrupt. *converted: whether it
// was sparse before.
bool make_dense(CommandContext& ctx, KeyRef& ref, std::string_view bytes, bool* converted) {
  *converted = !HyperLogLog::is_dense(bytes);
  if (!*converted) return true;
  HyperLogLog sketch(bytes);
  if (!sketch.make_dense()) {
    corrupt(ctx);
    return false;
  }
  put(ctx, ref, sketch.bytes());
  ctx.events.count(1);
  return true;
}

void reply_registers(CommandContext& ctx, KeyRef& ref, std::string_view bytes) {
  bool converted;
  if (!make_dense(ctx, ref, bytes, &converted)) return;
  Registers registers{};
  char scratch[base::kMaxInt64Text];
  HyperLogLog::merge(ref->string(scratch), &registers);
  ctx.reply.array(registers.size());
  for (const uint8_t rank : registers) ctx.reply.integer(rank);
}

void reply_runs(CommandContext& ctx, std::string_view bytes) {
  if (HyperLogLog::is_dense(bytes)) return ctx.reply.error("ERR HLL encoding is not sparse");
  const auto text = HyperLogLog::describe(bytes);
  text ? ctx.reply.bulk(*text) : corrupt(ctx);
}

void set_merging(CommandContext& ctx) {
  bool& many = ctx.server.debug_settings().merge_eight_registers;
  if (is_word(ctx.args[2], "ON")) {
    many = true;
  } else if (is_word(ctx.args[2], "OFF")) {
    many = false;
  } else {
    return ctx.reply.error("ERR Argument must be ON or OFF");
  }
  ctx.reply.status(many ? "enabled" : "disabled");
}

void pfdebug(CommandContext& ctx) {
  const std::string_view subcommand = ctx.args[1];
  if (is_word(subcommand, "SIMD")) return set_merging(ctx);
  KeyRef ref = ctx.db.find_to_replace(ctx.args[2]);
  if (!ref) return ctx.reply.error("ERR The specified key does not exist");
  const auto bytes = writable_at(ctx, ref);
  if (!bytes) return;
  if (is_word(subcommand, "GETREG")) {
    reply_registers(ctx, ref, view(*bytes));
  } else if (is_word(subcommand, "DECODE")) {
    reply_runs(ctx, view(*bytes));
  } else if (is_word(subcommand, "ENCODING")) {
    ctx.reply.status(HyperLogLog::is_dense(view(*bytes)) ? "dense" : "sparse");
  } else if (is_word(subcommand, "TODENSE")) {
    bool converted;
    if (make_dense(ctx, ref, view(*bytes), &converted)) ctx.reply.integer(converted ? 1 : 0);
  } else {
    ctx.reply.error("ERR Unknown PFDEBUG subcommand '" + std::string(subcommand) + "'");
  }
}

// Adds a hundred thousand elements to a HyperLogLog that begins sparse and to a dense one. At each
// power of ten, both must have the same count, and it must be within six standard errors.
void pfselftest(CommandContext& ctx) {
  constexpr uint64_t kElements = 100'000;
  constexpr double kStandardError = 1.04 / 128;
  HyperLogLog sparse;
  HyperLogLog dense;
  dense.make_dense();
  const uint64_t seed = ctx.db.environment().random.next();
  uint64_t checkpoint = 1;
  for (uint64_t i = 1; i <= kElements; ++i) {
    const uint64_t numbers[] = {seed, i};
    const std::string_view element(reinterpret_cast<const char*>(numbers), sizeof(numbers));
    sparse.add(element, sparse_limit(ctx));
    dense.add(element, 0);
    if (i != checkpoint) continue;
    checkpoint *= 10;
    const auto count = HyperLogLog::count(dense.bytes());
    if (HyperLogLog::count(sparse.bytes()) != count)
      return ctx.reply.error("TESTFAILED dense/sparse disagree");
    const double error = std::abs(static_cast<double>(*count) - static_cast<double>(i));
    if (error > std::ceil(kStandardError * 6 * static_cast<double>(i))) {
      return ctx.reply.error("TESTFAILED Too big error. card:" + std::to_string(i) +
                             " abserr:" + std::to_string(static_cast<uint64_t>(error)));
    }
  }
  ctx.reply.ok();
}

constexpr CommandRow kHyperLogLogRows[] = {
    {"PFADD", pfadd, "key [element...]", kWrite | kDenyOom | kFast, keys(1).rw().insert(),
     kAclHyperLogLog, Group::kHyperLogLog, "2.8.9", "O(1) to add every element.",
     "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist."},
    {"PFCOUNT", pfcount, "key...", kReadOnly | kMayReplicate,
     keys(1, -1).rw().access().note("RW because it may change the internal representation of the "
                                    "key, and propagate to replicas"),
     kAclHyperLogLog, Group::kHyperLogLog, "2.8.9",
     "O(1) with a very small average constant time when called with a single key. O(N) with N "
     "being the number of keys, and much bigger constant times, when called with multiple keys.",
     "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s)."},
    {"PFDEBUG",
     pfdebug,
     "subcommand key",
     kWrite | kDenyOom | kAdmin,
     keys(2).rw().access(),
     kAclHyperLogLog,
     Group::kHyperLogLog,
     "2.8.9",
     "N/A",
     "Internal commands for debugging HyperLogLog values.",
     {.system = true}},
    {"PFMERGE", pfmerge, "destkey [sourcekey...]", kWrite | kDenyOom,
     keys(1).rw().access().insert() + keys(2, -1).ro().access(), kAclHyperLogLog,
     Group::kHyperLogLog, "2.8.9", "O(N) to merge N HyperLogLogs, but with high constant times.",
     "Merges one or more HyperLogLog values into a single key."},
    {"PFSELFTEST",
     pfselftest,
     "",
     kAdmin,
     {},
     kAclHyperLogLog,
     Group::kHyperLogLog,
     "2.8.9",
     "N/A",
     "An internal command for testing HyperLogLog values.",
     {.system = true}},
};

}  // namespace

std::span<const CommandRow> hyperloglog_rows() {
  return kHyperLogLogRows;
}

}  // namespace latchkey::commands
