#include "commands/keys/collection_scan.h"

#include <string>

#include "server/server.h"

namespace latchkey::commands {

bool CollectionScanOptions::read(server::CommandContext& ctx, store::Type type) {
  constexpr size_t kFirstOption = 3;
  for (server::ArgReader reader(ctx.args, kFirstOption); reader.more();) {
    std::string_view text;
    if (reader.word("MATCH", &pattern)) continue;
    if (reader.word("COUNT", &text)) {
      if (!ctx.read_int64(text, &count)) return false;
      if (count >= 1) continue;
    } else if (ctx.server.edition().has({7, 4}, {8, 0}) && reader.word("NOVALUES")) {
      if (type == store::Type::kHash) {
        no_values = true;
        continue;
      }
      return ctx.refuse("ERR NOVALUES option can only be used in HSCAN");
    } else if (ctx.server.edition().has(server::kNever, {8, 0}) && reader.word("NOSCORES")) {
      if (type == store::Type::kSortedSet) {
        no_scores = true;
        continue;
      }
      return ctx.refuse("ERR NOSCORES option can only be used in ZSCAN");
    }
    ctx.syntax_error();
    return false;
  }
  return true;
}

ScannedElements::ScannedElements(server::CommandContext& ctx)
    : bytes_(ctx.server.buffer_pool()), bulks_(bytes_) {}

void ScannedElements::send(server::CommandContext& ctx, uint64_t cursor) const {
  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(cursor));
  ctx.reply.array(count_);
  ctx.reply.raw(bytes_.since(0));
}

}  // namespace latchkey::commands
