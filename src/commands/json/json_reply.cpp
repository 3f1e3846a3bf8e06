#include "commands/json/json_reply.h"

#include <string>

#include "store/json/json_writer.h"

namespace latchkey::commands {

using namespace server;
using store::json::Kind;
using store::json::Member;
using store::json::Node;
namespace json = store::json;

bool read_reply_format(CommandContext& ctx, std::string_view word, std::string_view strings,
                       ReplyFormat* format) {
  if (!ctx.reply.is_resp3()) return ctx.refuse("ERR FORMAT argument is not supported on RESP2");
  if (word == strings) {
    *format = ReplyFormat::kStrings;
  } else if (word == "EXPAND1") {
    *format = ReplyFormat::kExpandScalars;
  } else if (word == "EXPAND") {
    *format = ReplyFormat::kExpand;
  } else {
    return ctx.refuse("ERR wrong reply format");
  }
  return true;
}

void reply_formatted(CommandContext& ctx, const Node& node, ReplyFormat format) {
  if (format == ReplyFormat::kStrings ||
      (format == ReplyFormat::kExpandScalars && (node.is_container() || node.is_string())))
    return ctx.reply.bulk(json::written(node));
  switch (node.kind()) {
    case Kind::kNull:
      return ctx.reply.null();
    case Kind::kBoolean:
      return ctx.reply.boolean(node.truth());
    case Kind::kInteger:
      return node.is_huge() ? ctx.reply.number(node.as_double())
                            : ctx.reply.integer(node.as_int64());
    case Kind::kNumber:
      return ctx.reply.number(node.as_double());
    case Kind::kString:
      return ctx.reply.bulk(node.text());
    case Kind::kArray:
      ctx.reply.array(node.size());
      for (const Node& element : node.elements()) reply_formatted(ctx, element, format);
      return;
    case Kind::kObject:
      ctx.reply.map(node.size());
      for (const Member& member : node.members()) {
        ctx.reply.bulk(member.key.text());
        reply_formatted(ctx, member.value, format);
      }
      return;
  }
}

}  // namespace latchkey::commands
