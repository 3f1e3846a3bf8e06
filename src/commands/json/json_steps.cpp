#include "commands/json/json_steps.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

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

// Orders trails by their first positions, then those that share them by the second, and so on:
// linear in the positions of all trails but for the sorting of keys, since a path may lead to
// millions of places.
class InsideOut {
 public:
  explicit InsideOut(const json::Trails& trails)
      : trails_(trails), order_(trails.size()), sorted_(trails.size()) {
    std::iota(order_.begin(), order_.end(), uint32_t{0});
  }

  std::vector<uint32_t> order_below(const Node& root) {
    sort(root, order_, 0);
    return std::move(order_);
  }

 private:
  // Numbers of trails, a part of the order.
  using Part = std::span<uint32_t>;

  static auto comes_before(const Node& node) {
    return [&node](uint32_t one, uint32_t other) {
      if (node.is_array()) return one > other;
      return node.members()[one].key.text() < node.members()[other].key.text();
    };
  }

  // REQUIRES: the first `depth` positions of all trails in `part` lead to `node`.
  void sort(const Node& node, Part part, size_t depth) {
    if (part.size() < 2) return;
    part = move_ends_back(part, depth);
    if (part.empty()) return;
    const auto position = [&](uint32_t trail) { return trails_[trail][depth]; };
    if (part.size() <= kFew) {
      sort_few(part, position, comes_before(node));
    } else if (node.size() <= kSparse * part.size()) {
      sort_by_rank(part, position, ranks(node));
    } else {
      std::ranges::stable_sort(part, comes_before(node), position);
    }
    for (size_t begin = 0; begin < part.size();) {
      const uint32_t child = position(part[begin]);
      size_t end = begin + 1;
      while (end < part.size() && position(part[end]) == child) ++end;
      sort(node.child(child), part.subspan(begin, end - begin), depth + 1);
      begin = end;
    }
  }

  // Moves trails of that many positions behind the longer ones, which are returned.
  Part move_ends_back(Part part, size_t depth) {
    size_t longer = 0;
    size_t ended = 0;
    for (const uint32_t trail : part) {
      if (trails_[trail].size() > depth) {
        part[longer++] = trail;
      } else {
        sorted_[ended++] = trail;
      }
    }
    std::copy_n(sorted_.begin(), ended, part.begin() + static_cast<ptrdiff_t>(longer));
    return part.first(longer);
  }

  // Allocates nothing: there may be millions of parts.
  template <typename Position, typename Before>
  static void sort_few(Part part, const Position& position, const Before& before) {
    for (size_t i = 1; i < part.size(); ++i) {
      for (size_t j = i; j > 0 && before(position(part[j]), position(part[j - 1])); --j)
        std::swap(part[j], part[j - 1]);
    }
  }

  // Of each child, the number of those that come before it.
  static std::vector<uint32_t> ranks(const Node& node) {
    std::vector<uint32_t> children(node.size());
    std::iota(children.begin(), children.end(), uint32_t{0});
    if (node.is_array()) {
      std::ranges::reverse(children);
      return children;
    }
    std::ranges::sort(children, comes_before(node));
    std::vector<uint32_t> ranks(children.size());
    for (uint32_t i = 0; i < children.size(); ++i) ranks[children[i]] = i;
    return ranks;
  }

  // Counts the trails of each rank, and then knows where each one belongs.
  template <typename Position>
  void sort_by_rank(Part part, const Position& position, const std::vector<uint32_t>& ranks) {
    std::vector<uint32_t> places(ranks.size() + 1);
    for (const uint32_t trail : part) ++places[ranks[position(trail)] + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    for (const uint32_t trail : part) sorted_[places[ranks[position(trail)]]++] = trail;
    std::copy_n(sorted_.begin(), part.size(), part.begin());
  }

  static constexpr size_t kFew = 12;
  // An array or object of so many times more children than there are trails is not gone through.
  static constexpr size_t kSparse = 8;

  const json::Trails& trails_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> sorted_;  // while a part is sorted
};

}  // namespace

bool is_document(CommandContext& ctx, const KeyRef& ref) {
  if (!ref || ref->type() == JsonDocument::kType) return true;
  return ctx.refuse("Existing key has wrong Redis type");
}

JsonDocument* existing_document(CommandContext& ctx, KeyRef& ref) {
  if (!is_document(ctx, ref)) return nullptr;
  if (ref) return &document_of(ref);
  return ctx.refuse(kNoDocument, nullptr);
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
  if (!json::is_valid_utf8(text)) return ctx.refuse(kNotUtf8, std::nullopt);
  base::Result<json::Path> path = json::parse_path(text);
  if (path) return ReadPath{std::move(*path), json::is_legacy_path(text)};
  return ctx.refuse(path.error(), std::nullopt);
}

std::optional<json::Parsed> read_value(CommandContext& ctx, std::string_view text,
                                       std::string_view code,
                                       std::optional<json::Precision> precision) {
  if (!json::is_valid_utf8(text)) return ctx.refuse(kNotUtf8, std::nullopt);
  base::Result<json::Parsed> parsed = json::parse(
      text, json::kMaxReadDepth, JsonDocument::key_seed(ctx.db.environment()), precision);
  if (parsed) return std::move(*parsed);
  return ctx.refuse(std::string(code) + parsed.error(), std::nullopt);
}

bool read_position(CommandContext& ctx, std::string_view text, int64_t* position) {
  if (base::parse_int64(text, position)) return true;
  return ctx.refuse("Couldn't parse as integer");
}

bool visit(CommandContext& ctx, const json::Path& path, Walk& walk, const json::Found& found) {
  if (json::walk(path, *walk.root, walk.budget, found)) return true;
  return ctx.refuse(kTooManyValues);
}

bool find_nodes(CommandContext& ctx, const json::Path& path, Walk& walk,
                std::vector<const Node*>* nodes) {
  const bool is_done = visit(ctx, path, walk, [&](const Node& node, json::Trail) {
    nodes->push_back(&node);
    return nodes->size() <= kMostPlaces;
  });
  if (!is_done || nodes->size() <= kMostPlaces) return is_done;
  return ctx.refuse(kTooManyValues);
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
  return ctx.refuse(kTooManyValues);
}

bool has_room_for(CommandContext& ctx, json::Trail trail, size_t levels) {
  if (trail.size() + levels <= Node::kMaxDepth) return true;
  return ctx.refuse(kTooDeep);
}

size_t count_of_kind(Node& root, const json::Trails& trails, bool (Node::*is_kind)() const) {
  size_t count = 0;
  for (size_t i = 0; i < trails.size(); ++i) {
    const Node* const node = node_at(root, trails[i]);
    if (node != nullptr && (node->*is_kind)()) ++count;
  }
  return count;
}

bool may_copy(CommandContext& ctx, size_t copies, size_t bytes) {
  constexpr size_t kMostBytes = size_t{512} << 20;
  if (copies <= 1 || bytes <= kMostBytes / copies) return true;
  return ctx.refuse("ERR the document would be too large");
}

bool may_move(CommandContext& ctx, json::WalkBudget& budget, size_t bytes) {
  if (budget.take(store::json::cost_of_bytes(bytes))) return true;
  return ctx.refuse(kTooManyValues);
}

std::vector<uint32_t> inside_out(const Node& root, const json::Trails& trails) {
  return InsideOut(trails).order_below(root);
}

void json_changed(CommandContext& ctx, std::string_view event) {
  ctx.changed(ctx.args[1], EventClass::kModule, event);
}

}  // namespace latchkey::commands
