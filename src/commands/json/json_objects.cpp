// Objects in JSON documents: JSON.OBJKEYS, JSON.OBJLEN.
#include "commands/groups.h"
#include "commands/json/json_reply.h"
#include "commands/json/json_steps.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::json::Member;
using store::json::Node;
namespace json = store::json;

namespace {

constexpr std::string_view kNoObject = "ERR Path does not exist or not an object";

void json_objkeys(CommandContext& ctx) {
  const std::string_view path = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  const JsonDocument* document = document_to_read(ctx, ctx.args[1], path);
  if (document == nullptr) return;
  if (is_malformed_legacy(path)) return ctx.reply.null();
  const auto look = [](const Node& node, json::WalkBudget& budget) {
    size_t cost = node.size();
    for (const Member& member : node.members())
      cost += json::cost_of_bytes(member.key.text().size());
    budget.take(cost);
    return &node;
  };
  const auto write = [&](const Node* node) {
    ctx.reply.array(node->size());
    for (const Member& member : node->members()) ctx.reply.bulk(member.key.text());
  };
  reply_of_kind(ctx, *document, path, &Node::is_object, {{}, kNoObject}, look, write);
}

void json_objlen(CommandContext& ctx) {
  const std::string_view path = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  const JsonDocument* document = document_to_read(ctx, ctx.args[1], path, kNoObject);
  if (document == nullptr) return;
  if (is_malformed_legacy(path)) return ctx.reply.null();
  reply_of_kind(ctx, *document, path, &Node::is_object,
                {{}, "WRONGTYPE wrong type of path value - expected object"},
                [&](const Node& node) { ctx.reply.integer(static_cast<int64_t>(node.size())); });
}

constexpr CommandRow kJsonObjectRows[] = {
    {"JSON.OBJKEYS",
     json_objkeys,
     "key [path] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the number of keys and what the path visits",
     "Returns the keys of objects of a document.",
     {.module = "ReJSON"}},
    {"JSON.OBJLEN",
     json_objlen,
     "key [path] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Returns the number of keys of objects of a document.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_object_rows() {
  return kJsonObjectRows;
}

}  // namespace latchkey::commands
