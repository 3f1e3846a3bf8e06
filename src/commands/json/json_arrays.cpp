// Arrays in JSON documents: JSON.ARRAPPEND, JSON.ARRINDEX, JSON.ARRINSERT, JSON.ARRLEN,
// JSON.ARRPOP, JSON.ARRTRIM.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/json/json_reply.h"
#include "commands/json/json_steps.h"
#include "store/json/json_writer.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Node;
using store::json::Trail;
namespace json = store::json;

namespace {

constexpr std::string_view kNoArray = "ERR Path does not exist or not an array";

void reply_sizes(CommandContext& ctx, const ReadPath& path, const Outcomes<size_t>& sizes,
                 const size_t* of_legacy) {
  const auto write = [&](size_t size) { ctx.reply.integer(static_cast<int64_t>(size)); };
  if (!path.is_legacy) return reply_each(ctx, sizes, write);
  of_legacy == nullptr ? ctx.reply.error(kNoArray) : write(*of_legacy);
}

// Whether the elements from `first` on may be moved. False with an error sent.
bool may_move_from(CommandContext& ctx, json::WalkBudget& budget, const Node& array, size_t first) {
  return may_move(ctx, budget, (array.size() - first) * sizeof(Node));
}

// --- Adding --------------------------------------------------------------------------------------

struct Addition {
  std::vector<Node> nodes;
  size_t depth = 0;  // of the deepest
  size_t bytes = 0;
};

// The arguments from `first` on. False with an error sent.
bool read_addition(CommandContext& ctx, size_t first, Addition* addition) {
  for (const std::string_view text : ctx.args.subspan(first)) {
    std::optional<json::Parsed> parsed = read_value(ctx, text);
    if (!parsed) return false;
    addition->depth = std::max(addition->depth, parsed->depth);
    addition->bytes += sizeof(Node) + parsed->root.memory_usage();
    addition->nodes.push_back(std::move(parsed->root));
  }
  return true;
}

// The places that the path leads to, if the arrays among them may be added to. False with an error
// sent.
bool find_arrays(CommandContext& ctx, JsonDocument& document, const json::Path& path,
                 const Addition& addition, json::Trails* trails) {
  return find_trails(ctx, path, document.root(), trails) &&
         may_copy(ctx, count_of_kind(document.root(), *trails, &Node::is_array), addition.bytes);
}

// Inserts copies before `at`.
Change insert(CommandContext& ctx, Node& array, Trail trail, const Addition& addition, size_t at,
              size_t* size) {
  if (!has_room_for(ctx, trail, addition.depth + 1)) return Change::kFailed;
  if (addition.nodes.size() > Node::kMostElements - array.size())
    return ctx.refuse("ERR array is too large", Change::kFailed);
  std::vector<Node> copies;
  copies.reserve(addition.nodes.size());
  for (const Node& node : addition.nodes) copies.push_back(node.clone());
  array.insert(at, copies);
  *size = array.size();
  return Change::kDone;
}

void json_arrappend(CommandContext& ctx) {
  if (ctx.args.size() < 4) return ctx.wrong_arity();
  Addition addition;
  if (!read_addition(ctx, 3, &addition)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  json::Trails trails;
  if (!path || !find_arrays(ctx, *document, path->path, addition, &trails)) return;
  const auto sizes = change_each<size_t>(
      ctx, *document, trails, "json.arrappend", [&](Node& node, Trail trail, size_t* size) {
        if (!node.is_array()) return Change::kNone;
        return insert(ctx, node, trail, addition, node.size(), size);
      });
  if (sizes) reply_sizes(ctx, *path, *sizes, last_of(*sizes));
}

void json_arrinsert(CommandContext& ctx) {
  int64_t given;
  Addition addition;
  if (!read_position(ctx, ctx.args[3], &given) || !read_addition(ctx, 4, &addition)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  json::Trails trails;
  if (!path || !find_arrays(ctx, *document, path->path, addition, &trails)) return;
  // Of the array that was changed last, which is the one that a legacy path means.
  std::optional<size_t> last;
  json::WalkBudget budget(document->root());
  const auto sizes = change_each<size_t, Order::kInsideOut>(
      ctx, *document, trails, "json.arrinsert", [&](Node& node, Trail trail, size_t* size) {
        if (!node.is_array()) return Change::kNone;
        const auto length = static_cast<int64_t>(node.size());
        if (given > length || given < -length)
          return ctx.refuse("ERR index out of bounds", Change::kFailed);
        const auto at = static_cast<size_t>(given < 0 ? given + length : given);
        if (!may_move_from(ctx, budget, node, at)) return Change::kFailed;
        const Change change = insert(ctx, node, trail, addition, at, size);
        last = *size;
        return change;
      });
  if (sizes) reply_sizes(ctx, *path, *sizes, last ? &*last : nullptr);
}

// --- Removing ------------------------------------------------------------------------------------

void json_arrpop(CommandContext& ctx) {
  ArgReader args(ctx.args, 2);
  ReplyFormat format = ReplyFormat::kStrings;
  std::string_view word;
  if (args.word("FORMAT", &word) && !read_reply_format(ctx, word, "STRINGS", &format)) return;
  const std::string_view path_text = args.more() ? args.next() : kRootPath;
  int64_t given = -1;
  if (args.more() && !base::parse_int64(args.next(), &given)) given = -1;
  if (format != ReplyFormat::kStrings && json::is_legacy_path(path_text))
    return ctx.reply.error("Legacy paths are supported only with FORMAT STRINGS");
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  // Of the array that was changed last, which is the one that a legacy path means. An empty one
  // gives nothing, which is no error.
  bool any_array = false;
  std::optional<std::string> last;
  json::WalkBudget budget(document->root());
  const auto popped = change_each<Node, Order::kInsideOut>(
      ctx, *document, path->path, "json.arrpop", [&](Node& node, Trail, Node* element) {
        if (!node.is_array()) return Change::kNone;
        const auto size = static_cast<int64_t>(node.size());
        any_array = true;
        last.reset();
        if (size == 0) return Change::kNone;
        const auto at =
            static_cast<size_t>(std::clamp<int64_t>(given < 0 ? given + size : given, 0, size - 1));
        if (!may_move_from(ctx, budget, node, at + 1)) return Change::kFailed;
        *element = std::move(node.elements()[at]);
        node.erase_elements(at, at + 1);
        if (path->is_legacy) last = json::written(*element);
        return Change::kDone;
      });
  if (!popped) return;
  if (!path->is_legacy) {
    return reply_each(ctx, *popped, [&](const Node& node) { reply_formatted(ctx, node, format); });
  }
  if (!any_array) return ctx.reply.error(kNoArray);
  last ? ctx.reply.bulk(*last) : ctx.reply.null();
}

void json_arrtrim(CommandContext& ctx) {
  int64_t given_first;
  int64_t given_last;
  if (!read_position(ctx, ctx.args[3], &given_first) ||
      !read_position(ctx, ctx.args[4], &given_last))
    return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  if (!path) return;
  std::optional<size_t> last_size;
  json::WalkBudget budget(document->root());
  const auto sizes = change_each<size_t, Order::kInsideOut>(
      ctx, *document, path->path, "json.arrtrim", [&](Node& node, Trail, size_t* size) {
        if (!node.is_array()) return Change::kNone;
        const auto length = static_cast<int64_t>(node.size());
        const auto bound = [&](int64_t given) {
          return std::max<int64_t>(given < 0 ? given + length : given, 0);
        };
        const int64_t first = bound(given_first);
        const int64_t last = std::min(bound(given_last), length - 1);
        if (first > last) {
          node.erase_elements(0, node.size());
        } else {
          const size_t moved = first == 0 ? 0 : static_cast<size_t>(last - first + 1);
          if (!may_move(ctx, budget, moved * sizeof(Node))) return Change::kFailed;
          node.erase_elements(static_cast<size_t>(last) + 1, node.size());
          node.erase_elements(0, static_cast<size_t>(first));
        }
        *size = node.size();
        last_size = *size;
        return Change::kDone;
      });
  if (sizes) reply_sizes(ctx, *path, *sizes, last_size ? &*last_size : nullptr);
}

// --- Reading -------------------------------------------------------------------------------------

void json_arrlen(CommandContext& ctx) {
  const std::string_view path_text = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  const JsonDocument* document = document_to_read(ctx, ctx.args[1], path_text);
  if (document == nullptr) return;
  const auto size = [&](const Node& node) { ctx.reply.integer(static_cast<int64_t>(node.size())); };
  reply_of_kind(ctx, *document, path_text, &Node::is_array, {kNoSuchPath, kNoArray}, size);
}

// Position of the first equal element of [first, last), or -1. Of `last` 0 is the end. Adds to
// *cost what it has looked at.
int64_t index_of(const Node& array, const Node& wanted, int64_t first, int64_t last, size_t* cost) {
  const auto size = static_cast<int64_t>(array.size());
  if (size == 0) return -1;
  const int64_t begin = std::clamp<int64_t>(first < 0 ? first + size : first, 0, size - 1);
  const int64_t end = last == 0 ? size : std::min(last < 0 ? last + size : last, size);
  for (int64_t i = begin; i < end; ++i) {
    if (array.elements()[static_cast<size_t>(i)].equals(wanted, cost)) return i;
  }
  return -1;
}

void json_arrindex(CommandContext& ctx) {
  if (ctx.args.size() > 6) return ctx.wrong_arity();
  int64_t first = 0;
  int64_t last = 0;
  if (ctx.args.size() > 4 && !read_position(ctx, ctx.args[4], &first)) return;
  if (ctx.args.size() > 5 && !read_position(ctx, ctx.args[5], &last)) return;
  const std::optional<json::Parsed> wanted = read_value(ctx, ctx.args[3], "ERR ");
  if (!wanted) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  if (!ref) return ctx.reply.error(kNoSuchPath);
  const auto look = [&](const Node& node, json::WalkBudget& budget) {
    size_t cost = 0;
    const int64_t index = index_of(node, wanted->root, first, last, &cost);
    budget.take(cost);
    return index;
  };
  reply_of_kind(ctx, document_of(ref), ctx.args[2], &Node::is_array,
                {kNoSuchPath, "WRONGTYPE wrong type of path value - expected array"}, look,
                [&](int64_t index) { ctx.reply.integer(index); });
}

constexpr CommandRow kJsonArrayRows[] = {
    {"JSON.ARRAPPEND",
     json_arrappend,
     "key [path] value... [_...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(1) for each array and value that is appended, and O(N) to find them where N is what the "
     "path visits",
     "Appends one or more JSON values to arrays of a document.",
     {.module = "ReJSON"}},
    {"JSON.ARRINDEX",
     json_arrindex,
     "key path value [range=start:integer [stop:integer]]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the arrays",
     "Returns the position of the first element of an array that is equal to a JSON value.",
     {.module = "ReJSON"}},
    {"JSON.ARRINSERT",
     json_arrinsert,
     "key path index:integer value...",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the arrays",
     "Inserts one or more JSON values into arrays of a document before a position.",
     {.module = "ReJSON"}},
    {"JSON.ARRLEN",
     json_arrlen,
     "key [path]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Returns the number of elements of arrays of a document.",
     {.module = "ReJSON"}},
    {"JSON.ARRPOP",
     json_arrpop,
     "key [FORMAT format=STRINGS|EXPAND1|EXPAND] [path_index=path [index:integer]]",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the arrays, O(1) for their last elements",
     "Removes an element from arrays of a document, the last unless told otherwise, and returns "
     "it.",
     {.module = "ReJSON"}},
    {"JSON.ARRTRIM",
     json_arrtrim,
     "key path start:integer stop:integer",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the arrays",
     "Removes all elements of arrays of a document but those of a range.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_array_rows() {
  return kJsonArrayRows;
}

}  // namespace latchkey::commands
