// Commands that iterate over all keys: KEYS, SCAN.
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/glob.h"
#include "base/number.h"
#include "base/text.h"
#include "base/up_to_nul.h"
#include "commands/groups.h"
#include "commands/keys/scan_cursor.h"
#include "server/client/output_limits.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Entry;
using store::Keyspace;

// A cursor is read as the C library's strtoull() reads a number: white space and a sign may precede
// it, a minus counts back from 2^64, the text ends at a zero byte. Only a plain negative number is
// refused.
bool parse_cursor(std::string_view text, uint64_t* cursor) {
  text = base::up_to_nul(text);
  if (int64_t value; base::parse_int64(text, &value) && value < 0) return false;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0)
    text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return false;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    if (__builtin_mul_overflow(value, 10, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) return false;
  }
  *cursor = negative ? 0 - value : value;
  return true;
}

namespace {

// The pattern of a request.
class Pattern {
 public:
  explicit Pattern(std::string_view pattern) : pattern_(pattern), everything_(pattern == "*") {}
  bool matches(std::string_view key) const {
    return everything_ || base::glob_match(pattern_, key);
  }
  // Whether only one key can match.
  bool is_literal() const { return pattern_.find_first_of("*?[\\") == std::string_view::npos; }

 private:
  std::string_view pattern_;
  bool everything_;
};

void keys_matching(CommandContext& ctx) {
  const Pattern pattern(ctx.args[1]);
  if (pattern.is_literal()) {
    const Entry* entry = ctx.db.table().find_item(ctx.args[1]);
    if (entry == nullptr || ctx.db.is_expired(*entry) || ctx.db.is_hidden(*entry))
      return ctx.reply.empty_array();
    ctx.reply.array(1);
    return ctx.reply.bulk(entry->key());
  }
  const auto size = ctx.reply.later();
  size_t count = 0;
  bool lost = false;
  ctx.db.for_each([&](const Entry& entry) {
    if (lost || !pattern.matches(entry.key())) return;
    ctx.reply.bulk(entry.key());
    ++count;
    lost = reply_is_lost(ctx.client);
  });
  ctx.reply.array_later(size, count);
}

bool is_type_name(std::string_view text) {
  static constexpr store::Type kTypes[] = {store::Type::kString,    store::Type::kList,
                                           store::Type::kSet,       store::Type::kHash,
                                           store::Type::kSortedSet, store::Type::kStream};
  return std::ranges::any_of(kTypes, [&](store::Type type) {
    return base::equal_ignoring_case(store::type_name(type), text);
  });
}

struct ScanOptions {
  int64_t count = 10;
  std::string_view pattern = "*";
  std::optional<std::string_view> type;
};

// False, with an error sent, on invalid options.
bool read_scan_options(CommandContext& ctx, ScanOptions* options) {
  for (ArgReader reader(ctx.args, 2); reader.more();) {
    std::string_view text;
    if (reader.word("MATCH", &options->pattern)) continue;
    if (reader.word("TYPE", &text)) {
      options->type = text;
      const server::Edition& edition = ctx.server.edition();
      if (edition.is_valkey() && edition.has(server::kNever, {8, 1}) && !is_type_name(text)) {
        ctx.reply.error("ERR unknown type name '" + std::string(text) + "'");
        return false;
      }
    } else if (reader.word("COUNT", &text)) {
      if (!ctx.read_int64(text, &options->count)) return false;
      if (options->count < 1) {
        ctx.syntax_error();
        return false;
      }
    } else if (reader.word("NOVALUES")) {
      ctx.reply.error("ERR NOVALUES option can only be used in HSCAN");
      return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

// Maximum buckets visited by one call per requested key, in case they are empty.
constexpr uint64_t kBucketsPerKey = 10;

// Collects the matching keys of one call, expired ones included; returns the next cursor.
uint64_t collect(const Keyspace& keyspace, uint64_t cursor, const ScanOptions& options,
                 std::vector<const Entry*>& found) {
  const Pattern pattern(options.pattern);
  const auto wanted = static_cast<uint64_t>(options.count);
  uint64_t seen = 0;
  uint64_t buckets = 0;
  do {
    cursor = keyspace.scan(cursor, [&](const Entry& entry) {
      ++seen;
      if (pattern.matches(entry.key()) && !keyspace.is_hidden(entry)) found.push_back(&entry);
    });
    ++buckets;
  } while (cursor != 0 && seen < wanted && buckets / kBucketsPerKey < wanted);
  return cursor;
}

void scan(CommandContext& ctx) {
  uint64_t cursor;
  ScanOptions options;
  if (!parse_cursor(ctx.args[1], &cursor)) return ctx.reply.error("ERR invalid cursor");
  if (!read_scan_options(ctx, &options)) return;

  std::vector<const Entry*> found;
  cursor = collect(ctx.db, cursor, options, found);

  // Expired keys are removed only after the scan, because the table must not change during it. With
  // TYPE every key is looked up and counts as a hit or a miss.
  const uint8_t how = options.type ? Keyspace::kNoTouch : Keyspace::kPeek;
  const bool leaves_expired = ctx.server.dispatcher().in_nested_call() &&
                              !ctx.server.settings().lazyexpire_nested_arbitrary_keys;
  std::erase_if(found, [&](const Entry* entry) {
    if (leaves_expired && ctx.db.is_expired(*entry)) return true;
    // Valkey lets expired keys of other types be.
    if (options.type && ctx.server.edition().is_valkey() &&
        !base::equal_ignoring_case(store::type_name(entry->type()), *options.type))
      return true;
    const auto ref = ctx.db.find(entry->key(), how);
    return !ref || (options.type &&
                    !base::equal_ignoring_case(store::type_name(ref->type()), *options.type));
  });

  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(cursor));
  ctx.reply.array(found.size());
  for (const Entry* entry : found) ctx.reply.bulk(entry->key());
}

constexpr CommandRow kScanRows[] = {
    {"KEYS",
     keys_matching,
     "pattern",
     kReadOnly,
     {},
     kAclKeyspace | kAclDangerous,
     Group::kGeneric,
     "1.0.0",
     "O(N) with N being the number of keys in the database, under the assumption that the key "
     "names in the database and the given pattern have limited length.",
     "Returns all key names that match a pattern.",
     {.tips = "request_policy:all_shards nondeterministic_output_order"}},
    {"SCAN",
     scan,
     "cursor [MATCH pattern] [COUNT count] [TYPE type]@6.0.0",
     kReadOnly,
     {},
     kAclKeyspace,
     Group::kGeneric,
     "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the "
     "cursor to return back to 0. N is the number of elements inside the collection.",
     "Iterates over the key names in the database.",
     {.tips = "nondeterministic_output request_policy:special response_policy:special",
      .history = "6.0.0 Added the `TYPE` subcommand."}},
};

}  // namespace

std::span<const CommandRow> scan_rows() {
  return kScanRows;
}

}  // namespace latchkey::commands
