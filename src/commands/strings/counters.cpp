// Strings as counters: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
#include <cmath>
#include <string>

#include "base/text/number.h"
#include "commands/groups.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

void add(CommandContext& ctx, int64_t increment) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  int64_t value = 0;
  if (ref) {
    if (!ctx.is_string(ref)) return;
    if (ref->is_integer()) {
      value = ref->integer();
    } else if (!ctx.read_int64(ref->text(), &value)) {
      return;
    }
  }
  if (__builtin_add_overflow(value, increment, &value)) {
    return ctx.reply.error("ERR increment or decrement would overflow");
  }
  ctx.db.set_integer(ref, value);
  ctx.changed(ctx.args[1], EventClass::kString, "incrby");
  ctx.reply.integer(value);
}

void incr(CommandContext& ctx) {
  add(ctx, 1);
}

void decr(CommandContext& ctx) {
  add(ctx, -1);
}

void incrby(CommandContext& ctx) {
  int64_t increment;
  if (ctx.read_int64(ctx.args[2], &increment)) add(ctx, increment);
}

void decrby(CommandContext& ctx) {
  int64_t decrement;
  if (!ctx.read_int64(ctx.args[2], &decrement)) return;
  // INT64_MIN has no negation.
  if (decrement == INT64_MIN) return ctx.reply.error("ERR decrement would overflow");
  add(ctx, -decrement);
}

bool read_float(CommandContext& ctx, std::string_view text, long double* value) {
  if (base::parse_long_double(text, value)) return true;
  return ctx.refuse("ERR value is not a valid float");
}

void incrbyfloat(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_to_replace(ctx.args[1]);
  if (!ctx.is_string(ref)) return;
  long double value = 0;
  if (ref) {
    if (ref->is_integer()) {
      value = static_cast<long double>(ref->integer());
    } else if (!read_float(ctx, ref->text(), &value)) {
      return;
    }
  }
  long double increment;
  if (!read_float(ctx, ctx.args[2], &increment)) return;
  value += increment;
  if (!std::isfinite(value)) return ctx.reply.error("ERR increment would produce NaN or Infinity");

  const std::string text = base::format_long_double(value);
  ctx.db.set_text(ref, text, Keyspace::kKeepDeadline);
  ctx.changed(ctx.args[1], EventClass::kString, "incrbyfloat");
  // Floating-point sums may differ on other machines, so the result is propagated.
  ctx.propagate({"SET", ctx.args[1], text, "KEEPTTL"});
  ctx.reply.bulk(text);
}

constexpr CommandRow kCounterRows[] = {
    {"DECR", decr, "key", kWrite | kDenyOom | kFast, keys(1).rw().access().update(), kAclString,
     Group::kString, "1.0.0", "O(1)",
     "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't "
     "exist."},
    {"DECRBY", decrby, "key decrement", kWrite | kDenyOom | kFast, keys(1).rw().access().update(),
     kAclString, Group::kString, "1.0.0", "O(1)",
     "Decrements a number from the integer value of a key. Uses 0 as initial value if the key "
     "doesn't exist."},
    {"INCR", incr, "key", kWrite | kDenyOom | kFast, keys(1).rw().access().update(), kAclString,
     Group::kString, "1.0.0", "O(1)",
     "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't "
     "exist."},
    {"INCRBY", incrby, "key increment", kWrite | kDenyOom | kFast, keys(1).rw().access().update(),
     kAclString, Group::kString, "1.0.0", "O(1)",
     "Increments the integer value of a key by a number. Uses 0 as initial value if the key "
     "doesn't exist."},
    {"INCRBYFLOAT", incrbyfloat, "key increment:double", kWrite | kDenyOom | kFast,
     keys(1).rw().access().update(), kAclString, Group::kString, "2.6.0", "O(1)",
     "Increment the floating point value of a key by a number. Uses 0 as initial value if the key "
     "doesn't exist."},
};

}  // namespace

std::span<const CommandRow> counter_rows() {
  return kCounterRows;
}

}  // namespace latchkey::commands
