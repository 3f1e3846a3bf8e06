// Reading JSON documents: JSON.GET, JSON.MGET, JSON.TYPE, JSON.RESP, JSON.DEBUG.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "commands/groups.h"
#include "commands/json/json_reply.h"
#include "commands/json/json_steps.h"
#include "server/client/output_limits.h"
#include "store/json/json_writer.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Kind;
using store::json::Member;
using store::json::Node;
using store::json::Trail;
namespace json = store::json;

namespace {

// The longest text of a reply.
constexpr size_t kMostText = size_t{512} << 20;
constexpr std::string_view kTextTooLong = "ERR the text of the values is too long";

// --- JSON.GET ------------------------------------------------------------------------------------

struct Request {
  json::Layout layout;
  ReplyFormat format = ReplyFormat::kStrings;
  std::vector<std::string_view> paths;
};

// False with an error sent.
bool read_request(CommandContext& ctx, Request* request) {
  ArgReader args(ctx.args, 2);
  while (args.more()) {
    const std::string_view word = args.next();
    std::string_view* const part = is_word(word, "INDENT")    ? &request->layout.indent
                                   : is_word(word, "NEWLINE") ? &request->layout.newline
                                   : is_word(word, "SPACE")   ? &request->layout.space
                                                              : nullptr;
    const bool is_format = is_word(word, "FORMAT");
    if (part == nullptr && !is_format) {
      // Strings are sent with as few escapes as can be anyway.
      if (!is_word(word, "NOESCAPE")) request->paths.push_back(word);
      continue;
    }
    if (!args.more()) {
      ctx.wrong_arity();
      return false;
    }
    if (part != nullptr)
      *part = args.next();
    else if (!read_reply_format(ctx, args.next(), "STRING", &request->format))
      return false;
  }
  if (request->paths.empty()) request->paths.push_back(kRootPath);
  return true;
}

// Arrays of what each path leads to, which are types of RESP3.
void reply_expanded(CommandContext& ctx, const Node& root, const Request& request) {
  std::vector<std::vector<const Node*>> found;
  Walk walk(root);
  for (const std::string_view text : request.paths) {
    const std::optional<ReadPath> path = read_path(ctx, text);
    if (!path || !find_trees(ctx, path->path, walk, &found.emplace_back())) return;
  }
  ctx.reply.array(found.size());
  for (const std::vector<const Node*>& nodes : found) {
    ctx.reply.array(nodes.size());
    for (const Node* node : nodes) {
      if (reply_is_lost(ctx.client)) return;
      reply_formatted(ctx, *node, request.format);
    }
  }
}

// Writes what JSON.GET has for one path: the value of a legacy path, or an array of all values.
class TextWriter {
 public:
  TextWriter(CommandContext& ctx, const Node& root, const json::Layout& layout)
      : ctx_(ctx), walk_(root), layout_(layout) {}

  const std::string& text() const { return text_; }

  // False with an error sent.
  bool write_one(const json::Path& path, size_t level) {
    const Node* node;
    if (!find_first(ctx_, path, walk_, &node)) return false;
    if (node == nullptr) return ctx_.refuse(kNoSuchPath);
    json::write(*node, layout_, &text_, level, kMostText);
    return fits();
  }

  bool write_all(const json::Path& path, size_t level) {
    text_ += '[';
    bool is_first = true;
    const bool is_done = visit(ctx_, path, walk_, [&](const Node& node, Trail) {
      separate(&is_first, level + 1);
      const size_t nodes = json::write(node, layout_, &text_, level + 1, kMostText);
      return walk_.budget.take(nodes) && text_.size() <= kMostText;
    });
    if (!is_done) return false;
    close(is_first, level, ']');
    return fits();
  }

  // An object that has the values of each path by the path's text.
  bool write_each(const std::vector<std::string_view>& texts) {
    std::vector<ReadPath> paths;
    for (const std::string_view text : texts) {
      std::optional<ReadPath> path = read_path(ctx_, text);
      if (!path) return false;
      paths.push_back(std::move(*path));
    }
    std::set<std::string_view> written;
    const bool all_legacy = std::ranges::all_of(paths, &ReadPath::is_legacy);
    text_ += '{';
    bool is_first = true;
    for (size_t i = 0; i < paths.size(); ++i) {
      if (!written.insert(texts[i]).second) continue;
      separate(&is_first, 1);
      json::write_string(texts[i], &text_);
      text_ += ':';
      text_ += layout_.space;
      if (all_legacy ? !write_one(paths[i].path, 1) : !write_all(paths[i].path, 1)) return false;
    }
    close(is_first, 0, '}');
    return true;
  }

 private:
  // False with an error sent.
  bool fits() {
    if (text_.size() <= kMostText) return true;
    return ctx_.refuse(kTextTooLong);
  }

  void separate(bool* is_first, size_t level) {
    if (!*is_first) text_ += ',';
    *is_first = false;
    new_line(level);
  }
  void close(bool is_empty, size_t level, char bracket) {
    if (!is_empty) new_line(level);
    text_ += bracket;
  }
  void new_line(size_t level) {
    text_ += layout_.newline;
    for (size_t i = 0; i < level && text_.size() <= kMostText; ++i) text_ += layout_.indent;
  }

  CommandContext& ctx_;
  Walk walk_;
  const json::Layout& layout_;
  std::string text_;
};

void json_get(CommandContext& ctx) {
  Request request;
  if (!read_request(ctx, &request)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  if (!ref) return ctx.reply.null();
  const Node& root = document_of(ref).root();
  if (request.format != ReplyFormat::kStrings) return reply_expanded(ctx, root, request);
  TextWriter writer(ctx, root, request.layout);
  if (request.paths.size() > 1) {
    if (writer.write_each(request.paths)) ctx.reply.bulk(writer.text());
    return;
  }
  const std::optional<ReadPath> path = read_path(ctx, request.paths.front());
  if (!path) return;
  if (path->is_legacy ? writer.write_one(path->path, 0) : writer.write_all(path->path, 0))
    ctx.reply.bulk(writer.text());
}

// Appends what JSON.MGET has for one document. False when the budget is spent.
bool write_found(const json::Path& path, bool is_legacy, const Node& root, json::WalkBudget& budget,
                 std::string* text) {
  size_t count = 0;
  const bool is_done = json::walk(path, root, budget, [&](const Node& node, Trail) {
    if (!is_legacy) *text += count == 0 ? '[' : ',';
    ++count;
    const size_t nodes = json::write(node, {}, text, 0, kMostText);
    return budget.take(nodes) && !is_legacy && text->size() <= kMostText;
  });
  if (!is_legacy) *text += count == 0 ? "[]" : "]";
  return is_done;
}

void json_mget(CommandContext& ctx) {
  const std::string_view path_text = ctx.args.back();
  const bool is_legacy = json::is_legacy_path(path_text);
  // A path that is malformed leads nowhere.
  base::Result<json::Path> path = json::parse_path(path_text);
  const auto keys = ctx.args.subspan(1, ctx.args.size() - 2);
  // Of all keys, one behind the other.
  std::string text;
  std::vector<size_t> ends;
  // The places of documents among the keys. One that is named again is not walked again.
  std::unordered_map<const Node*, size_t> first_mentions;
  std::optional<json::WalkBudget> budget;
  for (const std::string_view key : keys) {
    const KeyRef ref = ctx.db.find(key);
    if (ref && ref->type() == JsonDocument::kType && path) {
      const Node& root = document_of(ref).root();
      const auto [known, is_new] = first_mentions.try_emplace(&root, ends.size());
      if (is_new) {
        budget ? budget->add_document(root) : void(budget.emplace(root));
        if (!write_found(*path, is_legacy, root, *budget, &text))
          return ctx.reply.error(kTooManyValues);
      } else {
        const size_t begin = known->second == 0 ? 0 : ends[known->second - 1];
        text.append(text, begin, ends[known->second] - begin);
      }
      if (text.size() > kMostText) return ctx.reply.error(kTextTooLong);
    }
    ends.push_back(text.size());
  }
  ctx.reply.array(keys.size());
  size_t begin = 0;
  for (const size_t end : ends) {
    end != begin ? ctx.reply.bulk(std::string_view(text).substr(begin, end - begin))
                 : ctx.reply.null();
    begin = end;
  }
}

// --- JSON.TYPE, JSON.RESP ------------------------------------------------------------------------

void json_type(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  // RESP3 has one more array around the reply.
  if (!ref) {
    if (ctx.reply.is_resp3()) ctx.reply.array(1);
    return ctx.reply.null();
  }
  const std::string_view path_text = ctx.args.size() > 2 ? ctx.args[2] : kRootPath;
  if (is_malformed_legacy(path_text)) {
    if (ctx.reply.is_resp3()) ctx.reply.array(1);
    return ctx.reply.null();
  }
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  const Node& root = document_of(ref).root();
  std::vector<const Node*> nodes;
  if (!find_nodes(ctx, path->path, root, &nodes)) return;
  if (ctx.reply.is_resp3()) ctx.reply.array(1);
  if (path->is_legacy)
    return nodes.empty() ? ctx.reply.null() : ctx.reply.bulk(kind_name(nodes.front()->kind()));
  ctx.reply.array(nodes.size());
  for (const Node* node : nodes) ctx.reply.bulk(kind_name(node->kind()));
}

// Arrays begin with "[", objects with "{", their keys and values following in turn.
void reply_resp(CommandContext& ctx, const Node& node) {
  switch (node.kind()) {
    case Kind::kBoolean:
      return ctx.reply.status(node.truth() ? "true" : "false");
    case Kind::kArray:
      ctx.reply.array(node.size() + 1);
      ctx.reply.status("[");
      for (const Node& element : node.elements()) reply_resp(ctx, element);
      return;
    case Kind::kObject:
      ctx.reply.array(2 * node.size() + 1);
      ctx.reply.status("{");
      for (const Member& member : node.members()) {
        ctx.reply.bulk(member.key.text());
        reply_resp(ctx, member.value);
      }
      return;
    default:
      return reply_formatted(ctx, node, ReplyFormat::kExpand);
  }
}

void json_resp(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!is_document(ctx, ref)) return;
  if (!ref) return ctx.reply.null();
  const std::optional<ReadPath> path =
      read_path(ctx, ctx.args.size() > 2 ? ctx.args[2] : kRootPath);
  if (!path) return;
  std::vector<const Node*> nodes;
  Walk walk(document_of(ref).root());
  if (!find_trees(ctx, path->path, walk, &nodes)) return;
  if (path->is_legacy) {
    return nodes.empty() ? ctx.reply.error(kNoSuchPath) : reply_resp(ctx, *nodes.front());
  }
  ctx.reply.array(nodes.size());
  for (const Node* node : nodes) {
    if (reply_is_lost(ctx.client)) return;
    reply_resp(ctx, *node);
  }
}

// --- JSON.DEBUG ----------------------------------------------------------------------------------

void json_debug_memory(CommandContext& ctx) {
  if (ctx.args.size() < 3) return ctx.wrong_arity();
  const std::string_view path_text = ctx.args.size() > 3 ? ctx.args[3] : kRootPath;
  const KeyRef ref = ctx.db.find(ctx.args[2]);
  if (!is_document(ctx, ref)) return;
  if (!ref) return json::is_legacy_path(path_text) ? ctx.reply.integer(0) : ctx.reply.empty_array();
  const std::optional<ReadPath> path = read_path(ctx, path_text);
  if (!path) return;
  std::vector<const Node*> nodes;
  Walk walk(document_of(ref).root());
  if (!find_trees(ctx, path->path, walk, &nodes)) return;
  const auto write = [&](const Node& node) {
    ctx.reply.integer(static_cast<int64_t>(sizeof node + node.memory_usage()));
  };
  if (path->is_legacy) {
    return nodes.empty() ? ctx.reply.error(kNoSuchPath) : write(*nodes.front());
  }
  ctx.reply.array(nodes.size());
  for (const Node* node : nodes) write(*node);
}

void json_debug(CommandContext& ctx) {
  if (is_word(ctx.args[1], "MEMORY")) return json_debug_memory(ctx);
  if (!is_word(ctx.args[1], "HELP"))
    return ctx.reply.error("ERR unknown subcommand - try `JSON.DEBUG HELP`");
  ctx.reply.array(2);
  ctx.reply.bulk("MEMORY <key> [path] - reports memory usage");
  ctx.reply.bulk("HELP                - this message");
}

constexpr CommandRow kJsonReadingRows[] = {
    {"JSON.DEBUG",
     json_debug,
     "_ [_...]",
     kReadOnly | kModule,
     keys_after("MEMORY", 1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of the document",
     "Tells what a document takes of memory.",
     {.module = "ReJSON"}},
    {"JSON.GET",
     json_get,
     "key [INDENT indent] [NEWLINE newline] [SPACE space] [FORMAT "
     "format-token=STRING|EXPAND1|EXPAND] [path...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of what is returned and what the paths visit",
     "Returns values of a document as JSON.",
     {.module = "ReJSON"}},
    {"JSON.MGET",
     json_mget,
     "key... path",
     kReadOnly | kModule,
     keys(1, -2).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(M*N) where M is the number of documents and N the size of what is returned of each",
     "Returns values of several documents as JSON.",
     {.module = "ReJSON"}},
    {"JSON.RESP",
     json_resp,
     "key [path] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is the size of what is returned and what the path visits",
     "Returns values of a document as types of the protocol.",
     {.module = "ReJSON"}},
    {"JSON.TYPE",
     json_type,
     "key [path] [_...]",
     kReadOnly | kModule,
     keys(1).ro(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Returns the types of values of a document.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_reading_rows() {
  return kJsonReadingRows;
}

}  // namespace latchkey::commands
