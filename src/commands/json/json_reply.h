// Replies of commands for JSON documents.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

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

// Replies about the values of one kind that a path leads to: look(node, budget) gives what there is
// to say of one, and write() sends that. look() takes from the budget what it costs to look and to
// write, if that is more than a little: a path may lead to one value thousands of times.
template <typename Look, typename Write>
void reply_of_kind(server::CommandContext& ctx, const store::JsonDocument& document,
                   std::string_view path_text, bool (store::json::Node::*is_kind)() const,
                   const LegacyErrors& errors, Look&& look, Write&& write) {
  using store::json::Node;
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  Walk walk(document.root());
  if (path->is_legacy) {
    const Node* node;
    if (!find_first(ctx, path->path, walk, &node)) return;
    if (node != nullptr && (node->*is_kind)()) return write(look(*node, walk.budget));
    const std::string_view error = node == nullptr ? errors.nowhere : errors.other_kind;
    return error.empty() ? ctx.reply.null() : ctx.reply.error(error);
  }
  Outcomes<std::invoke_result_t<Look, const Node&, store::json::WalkBudget&>> outcomes;
  const bool is_done = visit(ctx, path->path, walk, [&](const Node& node, store::json::Trail) {
    if (outcomes.size() == kMostPlaces) walk.budget.spend();
    outcomes.emplace_back();
    if ((node.*is_kind)()) outcomes.back() = look(node, walk.budget);
    return !walk.budget.is_spent();
  });
  if (is_done) reply_each(ctx, outcomes, write);
}
// The same where write(node) is as quick for one as for another.
template <typename Write>
void reply_of_kind(server::CommandContext& ctx, const store::JsonDocument& document,
                   std::string_view path_text, bool (store::json::Node::*is_kind)() const,
                   const LegacyErrors& errors, Write&& write) {
  const auto look = [](const store::json::Node& node, store::json::WalkBudget&) { return &node; };
  reply_of_kind(ctx, document, path_text, is_kind, errors, look,
                [&](const store::json::Node* node) { write(*node); });
}

}  // namespace latchkey::commands
