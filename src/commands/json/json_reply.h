// Replies of commands for JSON documents.
#pragma once

#include <string_view>

#include "commands/json/json_steps.h"
#include "server/command/command_context.h"
#include "store/json/json_node.h"

namespace latchkey::commands {

// How values are sent: as JSON text; as types of RESP3; or as those, but strings, arrays and
// objects as JSON text.
enum class ReplyFormat : uint8_t { kStrings, kExpandScalars, kExpand };

// The word behind FORMAT. `strings`: the word that the command has for kStrings. False with an
// error sent.
bool read_reply_format(server::CommandContext& ctx, std::string_view word, std::string_view strings,
                       ReplyFormat* format);
void reply_formatted(server::CommandContext& ctx, const store::json::Node& node,
                     ReplyFormat format);

// What a legacy path that leads nowhere, or to a value of another kind, gives.
struct LegacyErrors {
  std::string_view nowhere;  // empty: null, and no error
  std::string_view other_kind;
};

// Replies about the values of one kind that a path leads to, by write(node).
template <typename Write>
void reply_of_kind(server::CommandContext& ctx, const store::JsonDocument& document,
                   std::string_view path_text, bool (store::json::Node::*is_kind)() const,
                   const LegacyErrors& errors, Write&& write) {
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  if (path->is_legacy) {
    const store::json::Node* node;
    if (!find_first(ctx, path->path, document.root(), &node)) return;
    if (node != nullptr && (node->*is_kind)()) return write(*node);
    const std::string_view error = node == nullptr ? errors.nowhere : errors.other_kind;
    return error.empty() ? ctx.reply.null() : ctx.reply.error(error);
  }
  std::vector<const store::json::Node*> nodes;
  if (!find_nodes(ctx, path->path, document.root(), &nodes)) return;
  ctx.reply.array(nodes.size());
  for (const store::json::Node* node : nodes) (node->*is_kind)() ? write(*node) : ctx.reply.null();
}

}  // namespace latchkey::commands
