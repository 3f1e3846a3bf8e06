// Hash fields as counters: HINCRBY, HINCRBYFLOAT.
#include <cmath>
#include <string>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/hashes/hash_fields.h"
#include "server/client/client.h"
#include "server/command/lock_claims.h"
#include "server/server.h"
#include "store/value/hash.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

namespace {

void hincrby(CommandContext& ctx) {
  int64_t increment;
  if (!ctx.read_int64(ctx.args[3], &increment)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  bool has_expired = false;
  Hash* hash = hash_to_write(ctx, ref, ctx.args[2], &has_expired);
  if (hash == nullptr) return;
  char scratch[Hash::kScratch];
  int64_t value = 0;
  if (const auto old = hash->get(ctx.args[2], scratch);
      old && !ctx.read_int64(*old, &value, "ERR hash value is not an integer")) {
    return;
  }
  if (__builtin_add_overflow(value, increment, &value))
    return ctx.reply.error("ERR increment or decrement would overflow");
  const std::string_view sum{scratch, base::format_int64(value, scratch)};
  hash->set(ctx.args[2], sum, Hash::kKeepDeadline);
  share_names_of_written(ctx, *hash);
  if (has_expired) ctx.propagate({"HSET", ctx.args[1], ctx.args[2], sum});
  ctx.changed(ctx.args[1], EventClass::kHash, "hincrby");
  tell_fields_of_pairs(ctx, "hincrby", ctx.args.subspan(2));
  // Locks that count how often their holder has them are made by scripts.
  if (ctx.client.has(kClientScript) && ctx.server.lock_claims() != nullptr)
    ctx.server.lock_claims()->counted(ctx, ref, ctx.args[2], increment, value);
  ctx.reply.integer(value);
}

void hincrbyfloat(CommandContext& ctx) {
  long double increment;
  if (!base::parse_long_double(ctx.args[3], &increment))
    return ctx.reply.error("ERR value is not a valid float");
  if (!std::isfinite(increment)) return ctx.reply.error("ERR value is NaN or Infinity");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  bool has_expired = false;
  Hash* hash = hash_to_write(ctx, ref, ctx.args[2], &has_expired);
  if (hash == nullptr) return;
  char scratch[Hash::kScratch];
  long double value = 0;
  if (const auto old = hash->get(ctx.args[2], scratch);
      old && !base::parse_long_double(*old, &value)) {
    return ctx.reply.error("ERR hash value is not a float");
  }
  value += increment;
  if (!std::isfinite(value)) return ctx.reply.error("ERR increment would produce NaN or Infinity");
  const std::string text = base::format_long_double(value);
  hash->set(ctx.args[2], text, Hash::kKeepDeadline);
  share_names_of_written(ctx, *hash);
  ctx.changed(ctx.args[1], EventClass::kHash, "hincrbyfloat");
  tell_fields_of_pairs(ctx, "hincrbyfloat", ctx.args.subspan(2));
  // Floating-point sums may differ on other machines, so the result is propagated, in a form that
  // keeps the field's deadline where fields have any.
  if (!has_expired && ctx.server.edition().has({8, 0}, {9, 0})) {
    ctx.propagate({"HSETEX", ctx.args[1], "KEEPTTL", "FIELDS", "1", ctx.args[2], text});
  } else {
    ctx.propagate({"HSET", ctx.args[1], ctx.args[2], text});
  }
  ctx.reply.bulk(std::string_view(text));
}

constexpr CommandRow kHashCounterRows[] = {
    {"HINCRBY",
     hincrby,
     "key field increment",
     kWrite | kDenyOom | kFast,
     keys(1).rw().access().update(),
     kAclHash,
     Group::kHash,
     "2.0.0",
     "O(1)",
     "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if "
     "the field doesn't exist.",
     {.element = 2}},
    {"HINCRBYFLOAT",
     hincrbyfloat,
     "key field increment:double",
     kWrite | kDenyOom | kFast,
     keys(1).rw().access().update(),
     kAclHash,
     Group::kHash,
     "2.6.0",
     "O(1)",
     "Increments the floating point value of a field by a number. Uses 0 as initial value if the "
     "field doesn't exist.",
     {.element = 2}},
};

}  // namespace

std::span<const CommandRow> hash_counter_rows() {
  return kHashCounterRows;
}

}  // namespace latchkey::commands
