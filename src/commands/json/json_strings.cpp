// Strings and booleans in JSON documents: JSON.STRAPPEND, JSON.STRLEN, JSON.TOGGLE.
#include <optional>

#include "commands/groups.h"
#include "commands/json/json_reply.h"
#include "commands/json/json_steps.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Node;
using store::json::Trail;
namespace json = store::json;

namespace {

constexpr std::string_view kNoString = "WRONGTYPE wrong type of path value - expected string";

void json_strappend(CommandContext& ctx) {
  const bool has_path = ctx.args.size() > 3;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, has_path ? ctx.args[2] : kRootPath);
  json::Trails trails;
  if (!path || !find_trails(ctx, path->path, document->root(), &trails)) return;
  const size_t strings = count_of_kind(document->root(), trails, &Node::is_string);
  // Read where there is a string to change, as in the reference.
  std::optional<json::Parsed> added;
  json::WalkBudget budget(document->root());
  const auto sizes = change_each<int64_t>(
      ctx, *document, trails, "json.strappend", [&](Node& node, Trail, int64_t* size) {
        if (!node.is_string()) return Change::kNone;
        if (!added) {
          added = read_value(ctx, ctx.args[has_path ? 3 : 2], "ERR ");
          if (!added) return Change::kFailed;
          if (!added->root.is_string()) return ctx.refuse(kNoString, Change::kFailed);
          if (!may_copy(ctx, strings, added->root.text().size())) return Change::kFailed;
        }
        const std::string_view text = added->root.text();
        if (text.size() > Node::kLongestText - node.text().size())
          return ctx.refuse("ERR string exceeds maximum allowed size", Change::kFailed);
        if (!may_move(ctx, budget, node.text().size())) return Change::kFailed;
        node.append(text);
        *size = static_cast<int64_t>(node.text().size());
        return Change::kDone;
      });
  if (!sizes) return;
  const auto write = [&](int64_t size) { ctx.reply.integer(size); };
  if (!path->is_legacy) return reply_each(ctx, *sizes, write);
  const int64_t* size = last_of(*sizes);
  size == nullptr ? ctx.reply.error("ERR Path does not exist or not a string") : write(*size);
}

void json_strlen(CommandContext& ctx) {
  const std::string_view path_text = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  const JsonDocument* document = document_to_read(ctx, ctx.args[1], path_text);
  if (document == nullptr) return;
  reply_of_kind(
      ctx, *document, path_text, &Node::is_string, {kNoSuchPath, kNoString},
      [&](const Node& node) { ctx.reply.integer(static_cast<int64_t>(node.text().size())); });
}

void json_toggle(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  if (!path) return;
  const auto values = change_each<int64_t>(ctx, *document, path->path, "json.toggle",
                                           [&](Node& node, Trail, int64_t* value) {
                                             if (!node.is_boolean()) return Change::kNone;
                                             node = Node::boolean(!node.truth());
                                             *value = node.truth() ? 1 : 0;
                                             return Change::kDone;
                                           });
  if (!values) return;
  if (!path->is_legacy)
    return reply_each(ctx, *values, [&](int64_t value) { ctx.reply.integer(value); });
  const int64_t* value = last_of(*values);
  if (value == nullptr) return ctx.reply.error("ERR Path does not exist or not a bool");
  ctx.reply.bulk(*value != 0 ? std::string_view("true") : std::string_view("false"));
}

constexpr CommandRow kJsonStringRows[] = {
    {"JSON.STRAPPEND",
     json_strappend,
     "key [path] value [_...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the strings and what the path visits",
     "Appends a JSON string to strings of a document.",
     {.module = "ReJSON"}},
    {"JSON.STRLEN",
     json_strlen,
     "key [path] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Returns the length of strings of a document.",
     {.module = "ReJSON"}},
    {"JSON.TOGGLE",
     json_toggle,
     "key path",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Inverts booleans of a document.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_string_rows() {
  return kJsonStringRows;
}

}  // namespace latchkey::commands
