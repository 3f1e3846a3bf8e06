// Strings.
#include "commands/groups.h"
#include "server/command_context.h"

namespace latchkey::commands {

using namespace server;

namespace {

void get(CommandContext& ctx) {
  const store::KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null();
  if (!ctx.is_string(ref)) return;
  reply_string(ctx.reply, *ref);
}

void set(CommandContext& ctx) {
  store::KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  ctx.db.set_string(ref, ctx.args[2]);
  ctx.changed(ctx.args[1], EventClass::kString, "set");
  ctx.reply.ok();
}

constexpr CommandRow kStringRows[] = {
    {"GET", get, "key", kReadOnly | kFast, keys(1).ro().access(), kAclString, Group::kString,
     "1.0.0", "O(1)", "Returns the string value of a key."},
    {"SET", set, "key value [GET]", kWrite | kDenyOom, keys(1).ow().update(), kAclString, Group::kString,
     "1.0.0", "O(1)", "Sets the string value of a key."},
};

}  // namespace

std::span<const CommandRow> string_rows() { return kStringRows; }

}  // namespace latchkey::commands
