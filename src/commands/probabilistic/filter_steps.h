// Steps that the commands of Bloom and cuckoo filters share.
#pragma once

#include <string_view>

#include "commands/keys/typed_key.h"
#include "commands/probabilistic/value_changed.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

// The filter at the command's key, to be read or changed. Null, with an error sent, when there is
// none.
template <typename Filter>
Filter* filter_at(server::CommandContext& ctx, const store::KeyRef& ref) {
  if (!ref) ctx.reply.error("ERR not found");
  return value_at<Filter>(ctx, ref);
}

// Replies to EXISTS and MEXISTS of a filter: whether it contains each of `items`. A key that has
// another type, or is not there, contains nothing.
template <typename Filter>
void reply_whether_contained(server::CommandContext& ctx, server::Arguments items, bool as_array) {
  const store::KeyRef ref = ctx.db.find(ctx.args[1]);
  const bool is_filter = ref && ref->type() == Filter::kType;
  if (as_array) ctx.reply.array(items.size());
  for (const std::string_view item : items)
    ctx.reply.boolean(is_filter && value_of<Filter>(ref).contains(item));
}

}  // namespace latchkey::commands
