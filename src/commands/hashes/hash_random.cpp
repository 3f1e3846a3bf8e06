// Random fields of a hash: HRANDFIELD.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "server/client/output_limits.h"
#include "store/value/hash.h"

namespace latchkey::commands {

using namespace server;
using store::Hash;
using store::KeyRef;

namespace {

class PairReply {
 public:
  PairReply(CommandContext& ctx, bool with_values) : ctx_(ctx), with_values_(with_values) {}

  void begin(size_t count) {
    const bool flat = with_values_ && !ctx_.reply.is_resp3();
    ctx_.reply.array(flat ? count * 2 : count);
  }
  void put(std::string_view field, std::string_view value) {
    if (with_values_ && ctx_.reply.is_resp3()) ctx_.reply.array(2);
    ctx_.reply.bulk(field);
    if (with_values_) ctx_.reply.bulk(value);
  }

 private:
  CommandContext& ctx_;
  bool with_values_;
};

// Random fields, possibly with repetitions.
void reply_any(CommandContext& ctx, const Hash& hash, uint64_t count, PairReply reply) {
  reply.begin(count);
  const auto put = [&](std::string_view field, std::string_view value) { reply.put(field, value); };
  for (; count > 0 && !reply_is_lost(ctx.client); --count)
    hash.random(ctx.db.environment().random, put);
}

// Different fields, or all if there are fewer.
void reply_distinct(CommandContext& ctx, const Hash& hash, uint64_t count, PairReply reply) {
  const size_t wanted = std::min<uint64_t>(count, hash.size());
  reply.begin(wanted);
  hash.random_distinct(
      ctx.db.environment().random, wanted,
      [&](std::string_view field, std::string_view value) { reply.put(field, value); });
}

// Removes every field past its deadline, so that none is drawn, and the key if no field is left.
void expire_all(CommandContext& ctx, KeyRef& ref) {
  if (ref->is_packed()) return;  // without deadlines
  Hash& hash = value_of<Hash>(ref);
  if (!hash.has_due()) return;
  ctx.db.will_change(ref);
  if (hash.expire_elements(SIZE_MAX) > 0) ctx.db.elements_expired(ref);
}

void hrandfield(CommandContext& ctx) {
  const bool counted = ctx.args.size() > 2;
  int64_t count = 1;
  bool with_values = false;
  if (counted) {
    if (!ctx.read_int64_in(ctx.args[2], -INT64_MAX, INT64_MAX, &count)) return;
    ArgReader options(ctx.args, 3);
    with_values = options.word("WITHVALUES");
    if (options.more()) return ctx.syntax_error();
    if (with_values && (count < -INT64_MAX / 2 || count > INT64_MAX / 2))
      return ctx.reply.error("ERR value is out of range");
  }
  KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, Hash::kType)) return;
  if (ref) expire_all(ctx, ref);
  if (!ref) return counted ? ctx.reply.empty_array() : ctx.reply.null();
  const auto hash = view_of<Hash>(ref);
  if (!counted) {
    return hash->random(ctx.db.environment().random,
                        [&](std::string_view field, std::string_view) { ctx.reply.bulk(field); });
  }
  const PairReply reply(ctx, with_values);
  if (count < 0) return reply_any(ctx, *hash, static_cast<uint64_t>(-count), reply);
  reply_distinct(ctx, *hash, static_cast<uint64_t>(count), reply);
}

constexpr CommandRow kHashRandomRows[] = {
    {"HRANDFIELD",
     hrandfield,
     "key [options=count [WITHVALUES]]",
     kReadOnly,
     keys(1).ro().access(),
     kAclHash,
     Group::kHash,
     "6.2.0",
     "O(N) where N is the number of fields returned",
     "Returns one or more random fields from a hash.",
     {.tips = "nondeterministic_output"}},
};

}  // namespace

std::span<const CommandRow> hash_random_rows() {
  return kHashRandomRows;
}

}  // namespace latchkey::commands
