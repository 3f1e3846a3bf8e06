#include "commands/json/json_steps.h"

#include <algorithm>
#include <numeric>

#include "base/text/number.h"
#include "commands/keys/typed_key.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Node;
namespace json = store::json;

namespace {

constexpr std::string_view kNotUtf8 = "Couldn't parse as UTF-8 string";

}  // namespace

bool is_document(CommandContext& ctx, const KeyRef& ref) {
  if (!ref || ref->type() == JsonDocument::kType) return true;
  ctx.reply.error("Existing key has wrong Redis type");
  return false;
}

JsonDocument* existing_document(CommandContext& ctx, KeyRef& ref) {
  if (!is_document(ctx, ref)) return nullptr;
  if (ref) return &document_of(ref);
  ctx.reply.error(kNoDocument);
  return nullptr;
}

const JsonDocument* document_to_read(CommandContext& ctx, std::string_view key,
                                     std::string_view path, std::string_view missing) {
  const KeyRef ref = ctx.db.find(key);
  if (!is_document(ctx, ref)) return nullptr;
  if (ref) return &document_of(ref);
  json::is_legacy_path(path) ? ctx.reply.null() : ctx.reply.error(missing);
  return nullptr;
}

std::optional<ReadPath> read_path(CommandContext& ctx, std::string_view text) {
  if (!json::is_valid_utf8(text)) {
    ctx.reply.error(kNotUtf8);
    return std::nullopt;
  }
  base::Result<json::Path> path = json::parse_path(text);
  if (path) return ReadPath{std::move(*path), json::is_legacy_path(text)};
  ctx.reply.error(path.error());
  return std::nullopt;
}

std::optional<json::Parsed> read_value(CommandContext& ctx, std::string_view text,
                                       std::string_view code,
                                       std::optional<json::Precision> precision) {
  if (!json::is_valid_utf8(text)) {
    ctx.reply.error(kNotUtf8);
    return std::nullopt;
  }
  base::Result<json::Parsed> parsed = json::parse(
      text, json::kMaxReadDepth, JsonDocument::key_seed(ctx.db.environment()), precision);
  if (parsed) return std::move(*parsed);
  ctx.reply.error(std::string(code) + parsed.error());
  return std::nullopt;
}

bool read_position(CommandContext& ctx, std::string_view text, int64_t* position) {
  if (base::parse_int64(text, position)) return true;
  ctx.reply.error("Couldn't parse as integer");
  return false;
}

bool visit(CommandContext& ctx, const json::Path& path, Walk& walk, const json::Found& found) {
  if (json::walk(path, *walk.root, walk.budget, found)) return true;
  ctx.reply.error(kTooManyValues);
  return false;
}

bool find_nodes(CommandContext& ctx, const json::Path& path, Walk& walk,
                std::vector<const Node*>* nodes) {
  const bool is_done = visit(ctx, path, walk, [&](const Node& node, json::Trail) {
    nodes->push_back(&node);
    return nodes->size() <= kMostPlaces;
  });
  if (!is_done || nodes->size() <= kMostPlaces) return is_done;
  ctx.reply.error(kTooManyValues);
  return false;
}

bool find_trees(CommandContext& ctx, const json::Path& path, Walk& walk,
                std::vector<const Node*>* nodes) {
  return visit(ctx, path, walk, [&](const Node& node, json::Trail) {
    nodes->push_back(&node);
    return walk.budget.take(node.read_cost());
  });
}

bool find_first(CommandContext& ctx, const json::Path& path, Walk& walk, const Node** node) {
  *node = nullptr;
  return visit(ctx, path, walk, [&](const Node& found, json::Trail) {
    *node = &found;
    return false;
  });
}

bool find_trails(CommandContext& ctx, const json::Path& path, Walk& walk, json::Trails* trails) {
  constexpr size_t kMostPositions = size_t{1} << 25;
  const bool is_done = visit(ctx, path, walk, [&](const Node&, json::Trail trail) {
    trails->add(trail);
    return trails->position_count() <= kMostPositions;
  });
  if (!is_done || trails->position_count() <= kMostPositions) return is_done;
  ctx.reply.error(kTooManyValues);
  return false;
}

bool has_room_for(CommandContext& ctx, json::Trail trail, size_t levels) {
  if (trail.size() + levels <= Node::kMaxDepth) return true;
  ctx.reply.error(kTooDeep);
  return false;
}

bool may_copy(CommandContext& ctx, size_t copies, size_t bytes) {
  constexpr size_t kMostBytes = size_t{512} << 20;
  if (copies <= 1 || bytes <= kMostBytes / copies) return true;
  ctx.reply.error("ERR the document would be too large");
  return false;
}

bool may_move(CommandContext& ctx, json::WalkBudget& budget, size_t bytes) {
  if (budget.take(store::json::cost_of_bytes(bytes))) return true;
  ctx.reply.error(kTooManyValues);
  return false;
}

std::vector<size_t> inside_out(const Node& root, const json::Trails& trails) {
  const auto comes_before = [&](size_t one, size_t other) {
    const json::Trail a = trails[one];
    const json::Trail b = trails[other];
    const Node* node = &root;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] == b[i])
        node = &node->child(a[i]);
      else if (node->is_array())
        return a[i] > b[i];
      else
        return node->members()[a[i]].key.text() < node->members()[b[i]].key.text();
    }
    return a.size() > b.size();
  };
  std::vector<size_t> order(trails.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, comes_before);
  return order;
}

void json_changed(CommandContext& ctx, std::string_view event) {
  ctx.changed(ctx.args[1], EventClass::kModule, event);
}

}  // namespace latchkey::commands
