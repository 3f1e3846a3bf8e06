// Steps that the handlers of JSON commands share: the document of a key, paths, values in requests,
// and what is done at each place that a path leads to.
//
// A legacy path, one without `$`, means one place: its reply is about that place, and it is an
// error when there is none. A JSONPath may lead to any number of places: its reply is an array of
// what there is to say of each, null where a place is of another kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "store/json/json_document.h"
#include "store/json/json_parser.h"
#include "store/json/json_path.h"
#include "store/json/json_path_walk.h"

namespace latchkey::commands {

inline constexpr std::string_view kNoDocument =
    "ERR could not perform this operation on a key that doesn't exist";
inline constexpr std::string_view kNoSuchPath = "ERR Path does not exist";
// Nothing that a request adds may lie deeper in its document.
inline constexpr std::string_view kTooDeep = "ERR the document would be nested too deep";
inline constexpr std::string_view kTooManyValues = "ERR the path leads to too many values";
inline constexpr std::string_view kRootPath = ".";
// Places about which one reply tells.
inline constexpr size_t kMostPlaces = size_t{1} << 24;

// False, with an error sent, when the key holds another type. A missing key has any type.
bool is_document(server::CommandContext& ctx, const store::KeyRef& ref);
// The document to be changed; null with an error sent when there is none.
store::JsonDocument* existing_document(server::CommandContext& ctx, store::KeyRef& ref);
// The document to be read; null with an error sent when there is none, `missing` (kNoDocument
// unless told otherwise) when there is no key and the path is a JSONPath, for a legacy path null as
// a reply.
const store::JsonDocument* document_to_read(server::CommandContext& ctx, std::string_view key,
                                            std::string_view path,
                                            std::string_view missing = kNoDocument);
inline store::JsonDocument& document_of(const store::KeyRef& ref) {
  return static_cast<store::JsonDocument&>(*ref->value());
}

struct ReadPath {
  store::json::Path path;
  bool is_legacy = false;
};
// Nothing with an error sent.
std::optional<ReadPath> read_path(server::CommandContext& ctx, std::string_view text);
// A legacy path that is none leads nowhere for some commands, and is no error.
inline bool is_malformed_legacy(std::string_view text) {
  return store::json::is_legacy_path(text) && !store::json::parse_path(text);
}
// A value in a request. Nothing with an error sent, which has `code` before it.
// `precision`: as json::parse() has it.
std::optional<store::json::Parsed> read_value(
    server::CommandContext& ctx, std::string_view text, std::string_view code = {},
    std::optional<store::json::Precision> precision = std::nullopt);
// False, with an error sent, when it is none. Integers of commands for arrays.
bool read_position(server::CommandContext& ctx, std::string_view text, int64_t* position);

// A document in which a request looks for several paths, or several documents one after the other,
// with one budget for all.
struct Walk {
  explicit Walk(const store::json::Node& document) : root(&document), budget(document) {}
  void go_to(const store::json::Node& document) {
    root = &document;
    budget.add_document(document);
  }

  const store::json::Node* root;
  store::json::WalkBudget budget;
};

// Each place that the path leads to. False, with an error sent, when that is too much work; found()
// may be part of it, and spend what is left of the budget.
bool visit(server::CommandContext& ctx, const store::json::Path& path, Walk& walk,
           const store::json::Found& found);
// All of them. False as visit().
bool find_nodes(server::CommandContext& ctx, const store::json::Path& path, Walk& walk,
                std::vector<const store::json::Node*>* nodes);
// The same for a reply with all that is below each, which is counted as it is read.
bool find_trees(server::CommandContext& ctx, const store::json::Path& path, Walk& walk,
                std::vector<const store::json::Node*>* nodes);
// Null when there is none. False as visit().
bool find_first(server::CommandContext& ctx, const store::json::Path& path, Walk& walk,
                const store::json::Node** node);
// The same where the document is walked once.
inline bool visit(server::CommandContext& ctx, const store::json::Path& path,
                  const store::json::Node& root, const store::json::Found& found) {
  Walk walk(root);
  return visit(ctx, path, walk, found);
}
inline bool find_nodes(server::CommandContext& ctx, const store::json::Path& path,
                       const store::json::Node& root,
                       std::vector<const store::json::Node*>* nodes) {
  Walk walk(root);
  return find_nodes(ctx, path, walk, nodes);
}
bool find_trails(server::CommandContext& ctx, const store::json::Path& path, Walk& walk,
                 store::json::Trails* trails);
inline bool find_trails(server::CommandContext& ctx, const store::json::Path& path,
                        const store::json::Node& root, store::json::Trails* trails) {
  Walk walk(root);
  return find_trails(ctx, path, walk, trails);
}

// Whether a value that is so many levels deep may be put below a place. False with an error sent.
bool has_room_for(server::CommandContext& ctx, store::json::Trail trail, size_t levels);

// How many of these places have a node of that kind.
size_t count_of_kind(store::json::Node& root, const store::json::Trails& trails,
                     bool (store::json::Node::*is_kind)() const);
// Whether so many copies of a value of so many bytes may be put into a document. To be asked before
// the first is. False with an error sent.
bool may_copy(server::CommandContext& ctx, size_t copies, size_t bytes);

// Whether so many bytes may be moved or copied to change a place: a path may lead to one place
// thousands of times. `budget`: of all changes of the request. False with an error sent.
bool may_move(server::CommandContext& ctx, store::json::WalkBudget& budget, size_t bytes);

// The key was changed; the event is the command's name in lower case.
void json_changed(server::CommandContext& ctx, std::string_view event);

// --- The same at each place --------------------------------------------------------------------

// What happened at one place: it is of another kind, it was changed, or an error was sent and the
// places that are left stay as they are.
enum class Change : uint8_t { kNone, kDone, kFailed };

// Places that were changed, and what there is to say of each.
template <typename Outcome>
using Outcomes = std::vector<std::optional<Outcome>>;

// In the path's order, or each place after those within it, as changes that move elements need it.
enum class Order : uint8_t { kOfPath, kInsideOut };

// The order in which the reference changes places from the inside out: by the keys that lead there,
// and from an array's end to its beginning. The numbers of trails; find_trails() finds no more than
// there are such numbers.
std::vector<uint32_t> inside_out(const store::json::Node& root, const store::json::Trails& trails);

// Changes each of these places. Outcomes are in the path's order. Nothing with an error sent.
template <typename Outcome, Order kOrder = Order::kOfPath, typename Function>
std::optional<Outcomes<Outcome>> change_each(server::CommandContext& ctx,
                                             store::JsonDocument& document,
                                             const store::json::Trails& trails,
                                             std::string_view event, Function&& function) {
  Outcomes<Outcome> outcomes(trails.size());
  std::vector<uint32_t> order;
  if constexpr (kOrder == Order::kInsideOut) order = inside_out(document.root(), trails);
  bool any = false;
  bool failed = false;
  for (size_t step = 0; step < trails.size() && !failed; ++step) {
    const size_t i = order.empty() ? step : order[step];
    store::json::Node* node = node_at(document.root(), trails[i]);
    if (node == nullptr) continue;
    Outcome outcome{};
    const Change change = function(*node, trails[i], &outcome);
    failed = change == Change::kFailed;
    if (change != Change::kDone) continue;
    any = true;
    outcomes[i] = std::move(outcome);
  }
  if (any) json_changed(ctx, event);
  if (failed) return std::nullopt;
  return outcomes;
}

// The same for each place that a path leads to.
template <typename Outcome, Order kOrder = Order::kOfPath, typename Function>
std::optional<Outcomes<Outcome>> change_each(server::CommandContext& ctx,
                                             store::JsonDocument& document,
                                             const store::json::Path& path, std::string_view event,
                                             Function&& function) {
  store::json::Trails trails;
  if (!find_trails(ctx, path, document.root(), &trails)) return std::nullopt;
  return change_each<Outcome, kOrder>(ctx, document, trails, event,
                                      std::forward<Function>(function));
}

// The outcome that a legacy path is about, the last. Null when there is none.
template <typename Outcome>
const Outcome* last_of(const Outcomes<Outcome>& outcomes) {
  for (size_t i = outcomes.size(); i-- > 0;) {
    if (outcomes[i]) return &*outcomes[i];
  }
  return nullptr;
}

// Replies with each outcome, by write(outcome), or with null. Ends when the reply is lost.
template <typename Outcome, typename Write>
void reply_each(server::CommandContext& ctx, const Outcomes<Outcome>& outcomes, Write&& write) {
  ctx.reply.array(outcomes.size());
  for (const auto& outcome : outcomes) {
    if (reply_is_lost(ctx.client)) return;
    outcome ? write(*outcome) : ctx.reply.null();
  }
}

}  // namespace latchkey::commands
