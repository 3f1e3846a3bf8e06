// Subcommands of DEBUG that inspect the dataset or create one.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text/hex.h"
#include "commands/keys/typed_key.h"
#include "commands/server/debug.h"
#include "server/client/tracking.h"
#include "server/command/watch.h"
#include "server/observe/dataset_digest.h"
#include "server/server.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

// Finds the named key, even if it has expired, without marking it as used; replies with an error if
// there is none.
KeyRef find_key(CommandContext& ctx) {
  const KeyRef ref =
      ctx.db.find(ctx.args[kFirstArgument], Keyspace::kPeek | Keyspace::kEvenExpired);
  if (!ref) ctx.reply.error("ERR no such key");
  return ref;
}

struct ChainFigures {
  size_t buckets = 0;
  size_t used = 0;
  size_t items = 0;
  std::vector<size_t> by_length;
};

template <typename Table>
ChainFigures measure_chains(const Table& table) {
  ChainFigures figures;
  figures.buckets = table.bucket_count();
  figures.items = table.size();
  for (size_t i = 0; i < figures.buckets; ++i) {
    const size_t length = table.chain_size(i);
    if (length != 0) ++figures.used;
    if (length >= figures.by_length.size()) figures.by_length.resize(length + 1);
    ++figures.by_length[length];
  }
  return figures;
}

void append_line(std::string& text, const char* format, auto... values) {
  char line[128];
  const int size = std::snprintf(line, sizeof(line), format, values...);
  text.append(line, std::min(static_cast<size_t>(size), sizeof(line) - 1));
}

double ratio(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

template <typename Table>
void describe_chains(const Table& table, std::string& text) {
  const ChainFigures figures = measure_chains(table);
  append_line(text, " different slots: %zu\n", figures.used);
  append_line(text, " max chain length: %zu\n",
              figures.by_length.empty() ? 0 : figures.by_length.size() - 1);
  append_line(text, " avg chain length (counted): %.2f\n", ratio(figures.items, figures.used));
  append_line(text, " avg chain length (computed): %.2f\n", ratio(table.size(), figures.used));
  text += " Chain length distribution:\n";
  for (size_t length = 0; length < figures.by_length.size(); ++length) {
    const size_t count = figures.by_length[length];
    if (count != 0)
      append_line(text, "   %zu: %zu (%.2f%%)\n", length, count,
                  100 * ratio(count, figures.buckets));
  }
}

template <typename Table>
void describe_table(const Table& table, bool full, std::string& text) {
  text += "Hash table 0 stats (main hash table):\n";
  append_line(text, " table size: %zu\n", table.bucket_count());
  append_line(text, " number of elements: %zu\n", table.size());
  if (full) describe_chains(table, text);
}

// Whether the word after the first argument is FULL.
bool wants_full(const CommandContext& ctx) {
  return ctx.args.size() > kFirstArgument + 1 && is_word(ctx.args[kFirstArgument + 1], "FULL");
}

// Calls fn with the listpack of a value that is stored in one, and with null for any other
// encoding.
template <typename Fn>
void with_listpack(const KeyRef& ref, Fn&& fn) {
  if (ref->type() == store::Type::kHash) {
    const auto hash = view_of<store::Hash>(ref);
    fn(hash->listpack_or_null());
  } else if (ref->type() == store::Type::kSet) {
    const auto set = view_of<store::Set>(ref);
    fn(set->listpack_or_null());
  } else if (ref->type() == store::Type::kList) {
    const auto list = view_of<store::List>(ref);
    fn(list->is_quicklist() ? nullptr : &list->listpack());
  } else if (ref->type() == store::Type::kSortedSet) {
    const auto set = view_of<store::SortedSet>(ref);
    fn(set->is_listpack() ? &set->listpack() : nullptr);
  } else {
    fn(nullptr);
  }
}

void describe_nodes(const store::Quicklist& chain, std::string& text) {
  size_t index = 0;
  for (const store::Quicklist::Node* node = chain.first_node(); node != nullptr;
       node = node->next) {
    append_line(text, "node %zu: %s, %s, %zu bytes, %zu elements\n", index++,
                node->is_plain ? "plain" : "packed", node->is_compressed() ? "lzf" : "raw",
                node->byte_size(), node->count);
  }
}

void describe_elements(const store::Quicklist& chain, std::string& text) {
  size_t index = 0;
  for (auto cursor = chain.first(); cursor; cursor = chain.next(cursor)) {
    const store::Listpack::Element element = chain.get(cursor);
    char scratch[store::Listpack::kScratch];
    append_line(text, "%8zu %s ", index++, element.is_integer ? "integer" : "string ");
    text.append(element.text(scratch)).append("\n");
  }
  chain.recompress();
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void debug_digest(CommandContext& ctx) {
  ctx.reply.status(base::to_hex(dataset_digest(ctx.server)));
}

void debug_digest_value(CommandContext& ctx) {
  ctx.reply.array(ctx.args.size() - kFirstArgument);
  for (const std::string_view key : ctx.args.subspan(kFirstArgument)) {
    const KeyRef ref = ctx.db.find(key, Keyspace::kPeek | Keyspace::kEvenExpired);
    ctx.reply.status(base::to_hex(ref ? value_digest(*ref) : Digest{}));
  }
}

void debug_change_replication_id(CommandContext& ctx) {
  ctx.server.log().notice("Changing replication IDs after receiving change-repl-id");
  ctx.server.history().begin();
  ctx.reply.ok();
}

void debug_htstats(CommandContext& ctx) {
  int64_t index;
  if (!ctx.read_int64(ctx.args[kFirstArgument], &index)) return;
  if (index < 0 || index >= ctx.server.database_count())
    return ctx.reply.error("ERR Out of range database");
  const Keyspace& database = ctx.server.database(static_cast<int>(index));
  std::string text = "[Dictionary HT]\n";
  if (!database.empty()) describe_table(database.table(), wants_full(ctx), text);
  text += "[Expires HT]\n";
  if (database.volatile_size() > 0) {
    text += "Timing wheel stats:\n";
    append_line(text, " number of elements: %zu\n", database.volatile_size());
  }
  ctx.reply.verbatim("txt", text);
}

void debug_htstats_key(CommandContext& ctx) {
  const KeyRef ref = find_key(ctx);
  if (!ref) return;
  std::string text;
  const auto describe = [&](const auto* table) {
    if (table != nullptr) describe_table(*table, wants_full(ctx), text);
  };
  if (ref->type() == store::Type::kHash) {
    describe(view_of<store::Hash>(ref)->table_or_null());
  } else if (ref->type() == store::Type::kSet) {
    describe(view_of<store::Set>(ref)->table_or_null());
  } else if (ref->type() == store::Type::kSortedSet) {
    const auto set = view_of<store::SortedSet>(ref);
    describe(set->is_listpack() ? nullptr : &set->table());
  }
  if (!text.empty()) return ctx.reply.verbatim("txt", text);
  ctx.reply.error(
      "ERR The value stored at the specified key is not represented using an hash table");
}

void print_listpack(CommandContext& ctx, const store::Listpack* listpack) {
  if (listpack == nullptr) return ctx.reply.error("ERR Not a listpack encoded object.");
  std::string text;
  append_line(text, "listpack of %zu bytes, %zu elements\n", listpack->byte_size(),
              listpack->size());
  for (auto at = listpack->first(); at != store::Listpack::kNone; at = listpack->next(at)) {
    const store::Listpack::Element element = listpack->get(at);
    char scratch[store::Listpack::kScratch];
    append_line(text, "%8u %s ", at, element.is_integer ? "integer" : "string ");
    text.append(element.text(scratch)).append("\n");
  }
  print(text);
  ctx.reply.status("Listpack structure printed on stdout");
}

void debug_listpack(CommandContext& ctx) {
  const KeyRef ref = find_key(ctx);
  if (!ref) return;
  with_listpack(ref, [&](const store::Listpack* listpack) { print_listpack(ctx, listpack); });
}

void debug_quicklist(CommandContext& ctx) {
  const KeyRef ref = find_key(ctx);
  if (!ref) return;
  if (ref->type() != store::Type::kList || !view_of<store::List>(ref)->is_quicklist())
    return ctx.reply.error("ERR Not a quicklist encoded object.");
  const store::Quicklist& chain = view_of<store::List>(ref)->quicklist();
  const bool full = ctx.args.size() > kFirstArgument + 1 && is_on(ctx.args[kFirstArgument + 1]);
  std::string text;
  append_line(text, "quicklist of %zu elements, %zu nodes, compress depth %zu\n", chain.size(),
              chain.nodes(), chain.depth());
  describe_nodes(chain, text);
  if (full) describe_elements(chain, text);
  print(text);
  ctx.reply.status("Quicklist structure printed on stdout");
}

void debug_sdslen(CommandContext& ctx) {
  const KeyRef ref = find_key(ctx);
  if (!ref) return;
  if (!ref->is_string() || ref->is_integer())
    return ctx.reply.error("ERR Not an sds encoded string.");
  const size_t value_bytes = ref->string_size();
  const size_t room = ref->is_blob() ? ref->blob()->capacity() - value_bytes : 0;
  const size_t all = ref->memory_usage();
  char text[256];
  std::snprintf(text, sizeof(text),
                "key_sds_len:%zu, key_sds_avail:0, key_zmalloc: %zu, val_sds_len:%zu, "
                "val_sds_avail:%zu, val_zmalloc: %zu",
                ref->key().size(), all - value_bytes - room, value_bytes, room, value_bytes + room);
  ctx.reply.status(text);
}

void debug_populate(CommandContext& ctx) {
  constexpr std::string_view kNotPositive = "ERR value is out of range, must be positive";
  int64_t count;
  int64_t size = 0;
  if (!ctx.read_int64_in(ctx.args[2], 0, INT64_MAX, &count, kNotPositive)) return;
  const std::string prefix(ctx.args.size() > 3 ? ctx.args[3] : "key");
  // A size of zero keeps the default values.
  if (ctx.args.size() > 4 &&
      !ctx.read_int64_in(ctx.args[4], 0, ctx.server.settings().proto_max_bulk_len, &size,
                         kNotPositive)) {
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    const std::string key = prefix + ":" + number;
    KeyRef ref = ctx.db.find(key, Keyspace::kPeek);
    if (ref) continue;
    std::string value = "value:" + number;
    if (size != 0) value.resize(static_cast<size_t>(size));
    ctx.db.set_string(ref, value);
    // Not counted as a change, no event and no propagation; only clients that watch or track the
    // key must be notified.
    ctx.server.watches().key_changed(ctx.db, key, EventClass::kNewKey, "new");
    ctx.server.tracking().key_changed(ctx.db, key, EventClass::kNewKey, "new");
  }
  ctx.reply.ok();
}

}  // namespace latchkey::commands
