// Changing JSON documents: JSON.SET, JSON.MSET, JSON.MERGE, JSON.DEL, JSON.FORGET, JSON.CLEAR.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands/groups.h"
#include "commands/json/json_steps.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Node;
using store::json::Trail;
using store::json::Trails;
namespace json = store::json;

namespace {

constexpr std::string_view kNotAtRoot = "ERR new objects must be created at the root";

uint64_t key_seed(CommandContext& ctx) {
  return JsonDocument::key_seed(ctx.db.environment());
}

void changed(CommandContext& ctx, std::string_view key, std::string_view event) {
  ctx.changed(key, EventClass::kModule, event);
}

// --- Setting -------------------------------------------------------------------------------------

// kNothing: there is nowhere to put the value, or a condition is not met.
enum class Outcome : uint8_t { kDone, kNothing, kFailed };

// Where something would be added that a path leads to, which leads nowhere yet: the trail of its
// parent. kNothing when that is not there.
Outcome find_parent(CommandContext& ctx, Walk& walk, json::Path& path, json::Step* last,
                    Trails* trails) {
  if (!path.is_single()) return ctx.refuse("Err wrong static path", Outcome::kFailed);
  *last = std::move(path.steps.back());
  path.steps.pop_back();
  if (!last->positions.empty()) return ctx.refuse("ERR array index out of range", Outcome::kFailed);
  if (!find_trails(ctx, path, walk, trails)) return Outcome::kFailed;
  if (trails->empty()) return Outcome::kNothing;
  return Outcome::kDone;
}

// Adds what a path leads to that leads nowhere yet: a member of an object that there is.
Outcome add(CommandContext& ctx, JsonDocument& document, Walk& walk, json::Path& path,
            json::Parsed& value) {
  json::Step last;
  Trails trails;
  const Outcome outcome = find_parent(ctx, walk, path, &last, &trails);
  if (outcome != Outcome::kDone) return outcome;
  Node& parent = *node_at(document.root(), trails[0]);
  if (!parent.is_object()) return Outcome::kNothing;
  if (!has_room_for(ctx, trails[0], value.depth + 1)) return Outcome::kFailed;
  if (parent.size() == Node::kMostElements)
    return ctx.refuse("ERR object is too large", Outcome::kFailed);
  parent.put(last.names.front(), std::move(value.root), key_seed(ctx));
  return Outcome::kDone;
}

// Puts copies of the value wherever the trails lead; the last ones first, so that a place within
// another is gone when its turn would come.
Outcome replace(CommandContext& ctx, JsonDocument& document, const Trails& trails,
                json::Parsed& value) {
  for (size_t i = 0; i < trails.size(); ++i) {
    if (!has_room_for(ctx, trails[i], value.depth)) return Outcome::kFailed;
  }
  if (!may_copy(ctx, trails.size(), value.root.memory_usage())) return Outcome::kFailed;
  for (size_t i = trails.size(); i-- > 0;) {
    Node* node = node_at(document.root(), trails[i]);
    if (node != nullptr) *node = i == 0 ? std::move(value.root) : value.root.clone();
  }
  return Outcome::kDone;
}

enum class When : uint8_t { kAlways, kMissing, kPresent };

// Sets what a path leads to in a document that there is. `walk`: in it.
Outcome set_in(CommandContext& ctx, JsonDocument& document, Walk& walk, std::string_view path_text,
               When when, json::Parsed& value) {
  if (json::is_root_path(path_text)) {
    if (when == When::kMissing) return Outcome::kNothing;
    document.root() = std::move(value.root);
    return Outcome::kDone;
  }
  std::optional<ReadPath> path = read_path(ctx, path_text);
  Trails trails;
  if (!path || !find_trails(ctx, path->path, walk, &trails)) return Outcome::kFailed;
  if (when != When::kAlways && trails.empty() != (when == When::kMissing)) return Outcome::kNothing;
  if (trails.empty()) return add(ctx, document, walk, path->path, value);
  return replace(ctx, document, trails, value);
}

void create(CommandContext& ctx, KeyRef& ref, Node root) {
  ctx.db.set_value(ref, JsonDocument::kType, std::make_unique<JsonDocument>(std::move(root)));
}

void reply_outcome(CommandContext& ctx, Outcome outcome, std::string_view event) {
  if (outcome == Outcome::kNothing) return ctx.reply.null();
  if (outcome == Outcome::kFailed) return;
  changed(ctx, ctx.args[1], event);
  ctx.reply.ok();
}

struct SetOptions {
  When when = When::kAlways;
  std::optional<json::Precision> precision;
};

// False with an error sent.
bool read_options(CommandContext& ctx, SetOptions* options) {
  for (ArgReader args(ctx.args, 4); args.more();) {
    const bool has_condition = options->when != When::kAlways;
    if (!has_condition && args.word("NX")) {
      options->when = When::kMissing;
    } else if (!has_condition && args.word("XX")) {
      options->when = When::kPresent;
    } else if (args.word("FPHA")) {
      if (!args.more()) {
        ctx.wrong_arity();
        return false;
      }
      options->precision = json::precision_named(args.next());
      if (!options->precision) return ctx.refuse("ERR invalid FPHA type");
    } else if (args.word("FORMAT")) {
      if (!args.more()) {
        ctx.wrong_arity();
        return false;
      }
      const std::string_view format = args.next();
      if (!is_word(format, "JSON") && !is_word(format, "STRING"))
        return ctx.refuse("ERR wrong format");
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

void json_set(CommandContext& ctx) {
  SetOptions options;
  if (!read_options(ctx, &options)) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  std::optional<json::Parsed> value = read_value(ctx, ctx.args[3], {}, options.precision);
  if (!value) return;
  if (ref) {
    JsonDocument& document = document_of(ref);
    Walk walk(document.root());
    const Outcome outcome = set_in(ctx, document, walk, ctx.args[2], options.when, *value);
    return reply_outcome(ctx, outcome, "json.set");
  }
  if (options.when == When::kPresent) return ctx.reply.null();
  if (!json::is_root_path(ctx.args[2])) return ctx.reply.error(kNotAtRoot);
  create(ctx, ref, std::move(value->root));
  reply_outcome(ctx, Outcome::kDone, "json.set");
}

// Whether a value can be set there, or there is nowhere to set it, which is no error. False with an
// error sent.
bool can_set(CommandContext& ctx, Walk& walk, std::string_view path_text) {
  std::optional<ReadPath> path = read_path(ctx, path_text);
  const Node* node;
  if (!path || !find_first(ctx, path->path, walk, &node)) return false;
  json::Step last;
  Trails trails;
  return node != nullptr || find_parent(ctx, walk, path->path, &last, &trails) != Outcome::kFailed;
}

// All triples are checked before the first is set.
void json_mset(CommandContext& ctx) {
  constexpr size_t kTriple = 3;
  if ((ctx.args.size() - 1) % kTriple != 0) return ctx.wrong_arity();
  std::vector<json::Parsed> values;
  std::optional<Walk> walk;
  const auto go_to = [&](const Node& root) { walk ? walk->go_to(root) : void(walk.emplace(root)); };
  for (size_t i = 1; i < ctx.args.size(); i += kTriple) {
    const KeyRef ref = ctx.db.find(ctx.args[i], store::Keyspace::kPeek);
    if (!is_document(ctx, ref)) return;
    if (ref) {
      go_to(document_of(ref).root());
      if (!can_set(ctx, *walk, ctx.args[i + 1])) return;
    }
    if (!ref && !json::is_root_path(ctx.args[i + 1])) return ctx.reply.error(kNotAtRoot);
    std::optional<json::Parsed> value = read_value(ctx, ctx.args[i + 2]);
    if (!value) return;
    values.push_back(std::move(*value));
  }
  for (size_t i = 1; i < ctx.args.size(); i += kTriple) {
    json::Parsed& value = values[i / kTriple];
    KeyRef ref = ctx.db.find_for_write(ctx.args[i]);
    Outcome outcome = Outcome::kDone;
    if (ref) {
      JsonDocument& document = document_of(ref);
      go_to(document.root());
      outcome = set_in(ctx, document, *walk, ctx.args[i + 1], When::kAlways, value);
    } else {
      create(ctx, ref, std::move(value.root));
    }
    if (outcome == Outcome::kFailed) return;
    if (outcome == Outcome::kDone) changed(ctx, ctx.args[i], "json.mset");
  }
  ctx.reply.ok();
}

// --- Merging -------------------------------------------------------------------------------------

// RFC 7396.
void merge(Node& target, const Node& patch, uint64_t seed) {
  if (!patch.is_object()) {
    target = patch.clone();
    return;
  }
  if (!target.is_object()) target = Node::object();
  for (const json::Member& member : patch.members()) {
    const std::string_view key = member.key.text();
    const size_t at = target.find(key);
    if (member.value.is_null()) {
      if (at != Node::npos) target.erase_member(at);
    } else if (at != Node::npos) {
      merge(target.child(at), member.value, seed);
    } else {
      Node value;
      merge(value, member.value, seed);
      target.put(key, std::move(value), seed);
    }
  }
}

// What leads from the root down to a place: keys of objects and indexes of arrays.
using Steps = std::vector<Node>;

void add_steps(const Node& root, Trail trail, Steps* steps) {
  const Node* node = &root;
  for (const uint32_t position : trail) {
    steps->push_back(node->is_array() ? Node::integer(position)
                                      : node->members()[position].key.shared());
    node = &node->child(position);
  }
}

// Null when there is no such place.
Node* node_behind(Node& root, std::span<const Node> steps) {
  Node* node = &root;
  for (const Node& step : steps) {
    size_t at = Node::npos;
    if (step.is_string() && node->is_object()) at = node->find(step.text());
    if (step.is_integer() && node->is_array()) at = static_cast<size_t>(step.as_int64());
    if (at == Node::npos || at >= node->size()) return nullptr;
    node = &node->child(at);
  }
  return node;
}

// Merging into one place moves the members of others within it, or replaces what had them: places
// are found by keys and indexes, and those that are gone are left out. The first is there always.
Outcome merge_in(CommandContext& ctx, JsonDocument& document, json::Path& path,
                 json::Parsed& patch) {
  Trails trails;
  Walk walk(document.root());
  if (!find_trails(ctx, path, walk, &trails)) return Outcome::kFailed;
  if (trails.empty()) return add(ctx, document, walk, path, patch);
  if (!may_copy(ctx, trails.size(), patch.root.memory_usage())) return Outcome::kFailed;
  Steps steps;
  steps.reserve(trails.position_count());
  for (size_t i = 0; i < trails.size(); ++i) {
    if (!has_room_for(ctx, trails[i], patch.depth)) return Outcome::kFailed;
    add_steps(document.root(), trails[i], &steps);
  }
  std::span<const Node> left = steps;
  for (size_t i = 0; i < trails.size(); ++i) {
    const size_t length = trails[i].size();
    Node* node = node_behind(document.root(), left.first(length));
    left = left.subspan(length);
    if (node != nullptr) merge(*node, patch.root, key_seed(ctx));
  }
  return Outcome::kDone;
}

void json_merge(CommandContext& ctx) {
  if (ctx.args.size() > 4) return ctx.syntax_error();
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  std::optional<json::Parsed> patch = read_value(ctx, ctx.args[3]);
  if (!patch) return;
  if (!ref) {
    if (!json::is_root_path(ctx.args[2])) return ctx.reply.error(kNotAtRoot);
    create(ctx, ref, std::move(patch->root));
    return reply_outcome(ctx, Outcome::kDone, "json.merge");
  }
  std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  if (path) reply_outcome(ctx, merge_in(ctx, document_of(ref), path->path, *patch), "json.merge");
}

// --- Removing ------------------------------------------------------------------------------------

using Positions = std::vector<uint32_t>;

// Those that are not within another, in the order of positions.
std::vector<Positions> outermost(const Trails& trails) {
  std::vector<Positions> all;
  for (size_t i = 0; i < trails.size(); ++i) {
    const Trail trail = trails[i];
    all.emplace_back(trail.begin(), trail.end());
  }
  std::ranges::sort(all);
  std::vector<Positions> kept;
  for (Positions& trail : all) {
    const bool is_within = !kept.empty() && kept.back().size() < trail.size() &&
                           std::equal(kept.back().begin(), kept.back().end(), trail.begin());
    if (!is_within) kept.push_back(std::move(trail));
  }
  return kept;
}

// Removes children of one node, elements from the last on and members in the order of their keys.
// `positions` in ascending order; an element that is there twice takes its neighbour with it, for
// each place is removed in its turn.
size_t remove_children(Node& parent, std::span<const uint32_t> positions) {
  if (parent.is_array()) return parent.erase_each(positions);
  size_t removed = 0;
  std::vector<std::string> keys;
  for (const uint32_t position : positions)
    keys.emplace_back(parent.members()[position].key.text());
  std::ranges::sort(keys);
  for (const std::string& key : keys) {
    const size_t at = parent.find(key);
    if (at == Node::npos) continue;
    parent.erase_member(at);
    ++removed;
  }
  return removed;
}

// How many places were removed. The deepest are removed first, for removing moves their neighbours.
size_t remove(Node& root, const Trails& trails) {
  std::vector<Positions> places = outermost(trails);
  std::ranges::stable_sort(places, std::greater(), &Positions::size);
  size_t removed = 0;
  for (size_t i = 0; i < places.size();) {
    const Trail parent = Trail(places[i]).first(places[i].size() - 1);
    Positions children;
    for (; i < places.size() && places[i].size() == parent.size() + 1 &&
           std::equal(parent.begin(), parent.end(), places[i].begin());
         ++i)
      children.push_back(places[i].back());
    removed += remove_children(*node_at(root, parent), children);
  }
  return removed;
}

void json_del(CommandContext& ctx) {
  const std::string_view path_text = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  if (!ref) return ctx.reply.integer(0);
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  Trails trails;
  Node& root = document_of(ref).root();
  if (!path || !find_trails(ctx, path->path, root, &trails)) return;
  if (trails.empty()) return ctx.reply.integer(0);
  const bool is_root = trails[0].empty();
  const size_t removed = is_root ? 1 : remove(root, trails);
  // A document without anything left is removed with its key.
  if (is_root || (root.is_container() && root.size() == 0)) ctx.db.erase(ref);
  changed(ctx, ctx.args[1], "json.del");
  ctx.reply.integer(static_cast<int64_t>(removed));
}

void json_clear(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const std::string_view path_text = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  Trails trails;
  const bool is_done = visit(ctx, path->path, document->root(), [&](const Node& node, Trail trail) {
    if (node.is_container() ? node.size() != 0 : node.is_numeric() && node.as_double() != 0)
      trails.add(trail);
    return true;
  });
  if (!is_done) return;
  size_t cleared = 0;
  for (; cleared < trails.size(); ++cleared) {
    Node* node = node_at(document->root(), trails[cleared]);
    if (node == nullptr) break;
    *node = node->is_array()    ? Node::array()
            : node->is_object() ? Node::object()
                                : Node::integer(0);
  }
  if (cleared != 0) json_changed(ctx, "json.clear");
  // What is within something that was cleared is no longer there.
  if (cleared != trails.size()) return ctx.reply.error(kNoSuchPath);
  ctx.reply.integer(static_cast<int64_t>(cleared));
}

constexpr CommandRow kJsonRows[] = {
    {"JSON.CLEAR",
     json_clear,
     "key [path] [_...]",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of what is removed and what the path visits",
     "Empties arrays and objects of a document, and sets numbers to zero.",
     {.module = "ReJSON"}},
    {"JSON.DEL",
     json_del,
     "key [path] [_...]",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of what is removed and what the path visits",
     "Removes values of a document. Deletes the key if nothing is left.",
     {.module = "ReJSON"}},
    {"JSON.FORGET",
     json_del,
     "key [path] [_...]",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of what is removed and what the path visits",
     "Removes values of a document. Deletes the key if nothing is left.",
     {.module = "ReJSON"}},
    {"JSON.MERGE",
     json_merge,
     "key path value [_...]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(M+N) where M is the size of what is there and N the size of the value",
     "Merges a JSON value into values of a document. Creates the key if it doesn't exist.",
     {.module = "ReJSON"}},
    {"JSON.MSET",
     json_mset,
     "{triplet=key path value}...",
     kWrite | kDenyOom | kModule,
     keys(1, -1, 3).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(K*(M+N)) where K is the number of values that are set, M the size of what they replace and "
     "N their size",
     "Sets values of one or more documents.",
     {.module = "ReJSON"}},
    {"JSON.SET",
     json_set,
     "key path json [condition=NX|XX] [FPHA fpha-type=BF16|FP16|FP32|FP64] [FORMAT "
     "format-token=STRING|JSON]",
     kWrite | kDenyOom | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(M+N) where M is the size of what is replaced and N the size of the value",
     "Sets a value of a document. Creates the key if it doesn't exist.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_rows() {
  return kJsonRows;
}

}  // namespace latchkey::commands
