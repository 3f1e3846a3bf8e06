#include "commands/keys/scan_request.h"

#include <string>

#include "base/text/text.h"
#include "server/command/dispatcher.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::Entry;
using store::Keyspace;

namespace {

// Steps that one call takes at most for each key that is wanted.
constexpr uint64_t kStepsPerKey = 10;
// Hidden keys that one call passes at most, in about a millisecond.
constexpr uint64_t kMaxHidden = 10'000;

bool is_type(std::string_view name) {
  for (size_t type = 0; type < store::kTypeCount; ++type) {
    if (base::equal_ignoring_case(store::type_name(static_cast<store::Type>(type)), name))
      return true;
  }
  return false;
}

}  // namespace

bool ScanRequest::read_option(CommandContext& ctx, ArgReader& reader) {
  const bool as_valkey = refuses_unknown_types || ctx.server.edition().is_valkey();
  std::string_view text;
  if (reader.word("MATCH", &text)) {
    key_pattern_ = KeyPattern(text);
  } else if (reader.word("TYPE", &text)) {
    type_ = text;
    if (as_valkey && !is_type(text))
      return ctx.refuse("ERR unknown type name '" + std::string(text) + "'");
  } else if (reader.word("COUNT", &text)) {
    if (!ctx.read_int64(text, &count_)) return false;
    if (count_ < 1) {
      ctx.syntax_error();
      return false;
    }
  } else if (ctx.server.edition().has({7, 4}, {8, 0}) && reader.word("NOVALUES")) {
    return ctx.refuse("ERR NOVALUES option can only be used in HSCAN");
  } else if (as_valkey && reader.word("NOSCORES")) {
    return ctx.refuse("ERR NOSCORES option can only be used in ZSCAN");
  } else {
    ctx.syntax_error();
    return false;
  }
  return true;
}

void ScanRequest::visit(const Keyspace& keyspace, const Entry& entry) {
  if (keyspace.is_hidden(entry)) {
    ++hidden_;
    return;
  }
  ++seen_;
  if (key_pattern_.matches(entry.key())) found_.push_back(&entry);
}

bool ScanRequest::is_enough(uint64_t steps) const {
  return seen_ >= count() || hidden_ >= kMaxHidden || steps / kStepsPerKey >= count();
}

void ScanRequest::reply(CommandContext& ctx, std::string_view next_cursor) {
  // Expired keys are removed only after the scan, because the table must not change during it.
  // Before Redis 8.6 every key counted as a hit or a miss with TYPE.
  const Edition& edition = ctx.server.edition();
  const bool counts = type_ && !edition.is_valkey() && !edition.has({8, 6});
  const uint8_t how = counts ? Keyspace::kNoTouch : Keyspace::kPeek;
  const bool leaves_expired = ctx.server.dispatcher().in_nested_call() &&
                              !ctx.server.settings().lazyexpire_nested_arbitrary_keys;
  std::string key;
  std::erase_if(found_, [&](const Entry* entry) {
    if (!type_ && !ctx.db.is_expired(*entry)) return false;
    if (leaves_expired && ctx.db.is_expired(*entry)) return true;
    // Valkey lets expired keys of other types be.
    if (type_ && ctx.server.edition().is_valkey() &&
        !base::equal_ignoring_case(store::type_name(entry->type()), *type_))
      return true;
    // A copy of the key, because the entry is freed when it has expired.
    key = entry->key();
    const auto ref = ctx.db.find(key, how);
    return !ref || (type_ && !base::equal_ignoring_case(store::type_name(ref->type()), *type_));
  });
  ctx.reply.array(2);
  ctx.reply.bulk(next_cursor);
  ctx.reply.array(found_.size());
  for (const Entry* entry : found_) ctx.reply.bulk(entry->key());
}

}  // namespace latchkey::commands
