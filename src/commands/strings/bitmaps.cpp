// Strings as bitmaps: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bits.h"
#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/index_range.h"
#include "commands/keys/repeated_operands.h"
#include "commands/strings/bit_strings.h"
#include "server/command/command_context.h"
#include "server/emulation/edition.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using base::BitOperation;
using store::KeyRef;
using store::Keyspace;

namespace {

void setbit(CommandContext& ctx) {
  const std::string_view key = ctx.args[1];
  uint64_t offset;
  int64_t bit;
  if (!read_bit_offset(ctx, ctx.args[2], &offset)) return;
  if (!ctx.read_int64_in(ctx.args[3], 0, 1, &bit, "ERR bit is not an integer or out of range"))
    return;
  KeyRef ref = ctx.db.find_to_replace(key);
  if (!ctx.is_string(ref)) return;

  const WritableBits row = writable_bits(ctx, ref, offset + 1);
  const std::string_view bytes(row.bytes.data(), row.bytes.size());
  const auto old_bit = static_cast<int64_t>(base::read_bits(bytes, offset, 1));
  base::write_bits(row.bytes, offset, 1, static_cast<uint64_t>(bit));
  if (row.grew || bit != old_bit) ctx.changed(key, EventClass::kString, "setbit");
  ctx.reply.integer(old_bit);
}

void getbit(CommandContext& ctx) {
  uint64_t offset;
  if (!read_bit_offset(ctx, ctx.args[2], &offset)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  if (!ctx.is_string(ref)) return;
  char scratch[base::kMaxInt64Text];
  ctx.reply.integer(static_cast<int64_t>(base::read_bits(ref->string(scratch), offset, 1)));
}

// --- Ranges --------------------------------------------------------------------------------------

// The bits from `from` up to, but not including, `to`.
struct Bits {
  uint64_t from = 0;
  uint64_t to = 0;
  bool empty() const { return from == to; }
};

// The range of BITCOUNT and BITPOS, in bytes or bits.
struct Range {
  IndexRange ends{0, -1};
  bool in_bits = false;

  // False unless the option is BIT or BYTE.
  bool read_unit(std::string_view option) {
    in_bits = is_word(option, "BIT");
    return in_bits || is_word(option, "BYTE");
  }

  // The bits of the range that exist in a string of `size` bytes.
  Bits within(size_t size) const {
    const IndexRange::Part part = ends.clamped_within(in_bits ? size * 8 : size);
    const uint64_t unit = in_bits ? 1 : 8;
    return {part.first * unit, (part.first + part.count) * unit};
  }
};

// Before Redis 7.2 a key that is missing, or of another type, is answered before the other words
// are looked at. `none`: the reply for a missing one.
bool is_answered_unread(CommandContext& ctx, int64_t none) {
  if (ctx.server.edition().has({7, 2})) return false;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) ctx.reply.integer(none);
  return !ref || !ctx.is_string(ref);
}

void bitcount(CommandContext& ctx) {
  if (is_answered_unread(ctx, 0)) return;
  Range range;
  const size_t words = ctx.args.size();
  // Valkey needs no end since 8.0.
  const bool may_end_with_start = ctx.server.edition().is_valkey_since({8, 0});
  if ((words == 3 && !may_end_with_start) || words > 5) return ctx.syntax_error();
  if (words > 2) {
    if (!ctx.read_int64(ctx.args[2], &range.ends.first)) return;
    if (words > 3 && !ctx.read_int64(ctx.args[3], &range.ends.last)) return;
    if (words == 5 && !range.read_unit(ctx.args[4])) return ctx.syntax_error();
  }
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.integer(0);
  if (!ctx.is_string(ref)) return;
  if (range.ends.is_reversed_from_end()) return ctx.reply.integer(0);
  char scratch[base::kMaxInt64Text];
  const std::string_view bytes = ref->string(scratch);
  const Bits bits = range.within(bytes.size());
  ctx.reply.integer(static_cast<int64_t>(base::count_ones(bytes, bits.from, bits.to)));
}

void bitpos(CommandContext& ctx) {
  int64_t bit;
  if (!ctx.read_int64(ctx.args[2], &bit)) return;
  if (bit != 0 && bit != 1) return ctx.reply.error("ERR The bit argument must be 1 or 0.");
  if (is_answered_unread(ctx, bit == 1 ? -1 : 0)) return;
  Range range;
  const size_t words = ctx.args.size();
  const bool has_end = words > 4;
  if (words > 6) return ctx.syntax_error();
  if (words > 3 && !ctx.read_int64(ctx.args[3], &range.ends.first)) return;
  if (words == 6 && !range.read_unit(ctx.args[5])) return ctx.syntax_error();
  if (has_end && !ctx.read_int64(ctx.args[4], &range.ends.last)) return;

  const KeyRef ref = ctx.db.find(ctx.args[1]);
  // A missing key is an endless row of zeros.
  if (!ref) return ctx.reply.integer(bit == 1 ? -1 : 0);
  if (!ctx.is_string(ref)) return;
  char scratch[base::kMaxInt64Text];
  const std::string_view bytes = ref->string(scratch);
  const Bits bits = range.within(bytes.size());
  if (bits.empty()) return ctx.reply.integer(-1);
  if (const auto found = base::find_bit(bytes, bit == 1, bits.from, bits.to))
    return ctx.reply.integer(static_cast<int64_t>(*found));
  // A string of ones is followed by zeros, unless the range has an end.
  ctx.reply.integer(bit == 0 && !has_end ? static_cast<int64_t>(bytes.size() * 8) : -1);
}

// --- BITOP ---------------------------------------------------------------------------------------

std::optional<BitOperation> operation_of(std::string_view name) {
  struct Name {
    std::string_view word;
    BitOperation operation;
  };
  constexpr Name kNames[] = {
      {"AND", BitOperation::kAnd},     {"OR", BitOperation::kOr},
      {"XOR", BitOperation::kXor},     {"NOT", BitOperation::kNot},
      {"DIFF", BitOperation::kDiff},   {"DIFF1", BitOperation::kDiff1},
      {"ANDOR", BitOperation::kAndOr}, {"ONE", BitOperation::kOne},
  };
  for (const Name& candidate : kNames) {
    if (is_word(name, candidate.word)) return candidate.operation;
  }
  return std::nullopt;
}

// False, with the error sent, when the operation does not accept this number of sources.
bool takes_sources(CommandContext& ctx, BitOperation operation, size_t count) {
  if (operation == BitOperation::kNot && count != 1)
    return ctx.refuse("ERR BITOP NOT must be called with a single source key.");
  const char* name = operation == BitOperation::kDiff    ? "DIFF"
                     : operation == BitOperation::kDiff1 ? "DIFF1"
                     : operation == BitOperation::kAndOr ? "ANDOR"
                                                         : nullptr;
  if (name == nullptr || count >= 2) return true;
  return ctx.refuse(std::string("ERR BITOP ") + name +
                    " must be called with at least two source keys.");
}

// The source strings; a missing key is an empty string.
class Sources {
 public:
  // False with the error sent.
  bool find(CommandContext& ctx, Arguments keys) {
    for (const std::string_view key : keys) {
      const KeyRef ref = ctx.db.find(key);
      if (!ctx.is_string(ref)) return false;
      if (!ref) {
        strings_.emplace_back();
      } else if (ref->is_integer()) {
        char scratch[base::kMaxInt64Text];
        strings_.push_back(numbers_.emplace_back(ref->string(scratch)));
      } else {
        // The text stays in place until the key is changed.
        strings_.push_back(ref->text());
      }
      longest_ = std::max(longest_, strings_.back().size());
    }
    return true;
  }
  // Leaves out strings that the request names again where that changes nothing in the result: one
  // of half a gigabyte may be named thousands of times.
  void drop_repeated(BitOperation operation) {
    if (strings_.size() <= kFewOperands) return;
    // Of the first one these operations make something else than of the others.
    const bool is_first_apart = operation == BitOperation::kDiff ||
                                operation == BitOperation::kDiff1 ||
                                operation == BitOperation::kAndOr;
    const auto from = strings_.begin() + (is_first_apart ? 1 : 0);
    std::unordered_map<const void*, size_t> mentions;
    for (auto at = from; at != strings_.end(); ++at) ++mentions[at->data()];
    std::unordered_map<const void*, size_t> kept;
    const auto is_superfluous = [&](std::string_view string) {
      return kept[string.data()]++ >= mentions_that_count(operation, mentions[string.data()]);
    };
    strings_.erase(std::remove_if(from, strings_.end(), is_superfluous), strings_.end());
    if (strings_.empty()) strings_.emplace_back();
  }
  std::span<const std::string_view> strings() const { return strings_; }
  size_t longest() const { return longest_; }

 private:
  static size_t mentions_that_count(BitOperation operation, size_t mentions) {
    if (operation == BitOperation::kXor) return mentions % 2;
    // A bit that is set in one string twice is not set in exactly one.
    return operation == BitOperation::kOne ? std::min<size_t>(mentions, 2) : 1;
  }

  std::vector<std::string_view> strings_;
  std::deque<std::string> numbers_;  // a deque, because strings_ has views of its elements
  size_t longest_ = 0;
};

// Sets the key to a string of `size` bytes that write(bytes) fills in. Overwrites a large string of
// the same size unless it `is_source`, because new memory costs several times what writing it does.
template <typename Write>
void store_bytes(CommandContext& ctx, KeyRef& ref, size_t size, bool is_source, Write&& write) {
  const bool reusable = !is_source && ref && ref->is_string() && ref->is_blob() &&
                        !ref->blob()->shared() && ref->string_size() == size;
  if (reusable) {
    write(ctx.db.extend_string(ref, size));
    return ctx.db.set_deadline(ref, Keyspace::kNoDeadline);
  }
  base::Blob* blob = base::Blob::create(size, size);
  write(std::span<char>(blob->data(), size));
  ctx.db.set_blob(ref, blob);
}

void bitop(CommandContext& ctx) {
  const std::string_view destination = ctx.args[2];
  const Arguments keys = ctx.args.subspan(3);
  const auto operation = operation_of(ctx.args[1]);
  if (!operation) return ctx.syntax_error();
  if (!takes_sources(ctx, *operation, keys.size())) return;
  Sources sources;
  if (!sources.find(ctx, keys)) return;
  sources.drop_repeated(*operation);

  const size_t size = sources.longest();
  KeyRef ref = ctx.db.find_to_replace(destination);
  if (size > 0) {
    const bool is_source = std::find(keys.begin(), keys.end(), destination) != keys.end();
    store_bytes(ctx, ref, size, is_source, [&](std::span<char> bytes) {
      base::combine_bits(*operation, sources.strings(), bytes);
    });
    ctx.changed(destination, EventClass::kString, "set");
  } else if (ref) {
    ctx.db.erase(ref, ctx.server.settings().lazyfree_lazy_server_del);
    ctx.removed(destination);
  }
  ctx.reply.integer(static_cast<int64_t>(size));
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr CommandRow kBitmapRows[] = {
    {"BITCOUNT",
     bitcount,
     "key [range=start end [unit=BYTE|BIT]@7.0.0]",
     kReadOnly,
     keys(1).ro().access(),
     kAclBitmap,
     Group::kBitmap,
     "2.6.0",
     "O(N)",
     "Counts the number of set bits (population counting) in a string.",
     {.history = "7.0.0 Added the `BYTE|BIT` option."}},
    {"BITOP", bitop, "{operation=AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE} destkey key...",
     kWrite | kDenyOom, keys(2).ow().update() + keys(3, -1).ro().access(), kAclBitmap,
     Group::kBitmap, "2.6.0", "O(N)",
     "Performs bitwise operations on multiple strings, and stores the result."},
    {"BITPOS",
     bitpos,
     "key bit:integer [range=start [end-unit-block=end [unit=BYTE|BIT]@7.0.0]]",
     kReadOnly,
     keys(1).ro().access(),
     kAclBitmap,
     Group::kBitmap,
     "2.8.7",
     "O(N)",
     "Finds the first set (1) or clear (0) bit in a string.",
     {.history = "7.0.0 Added the `BYTE|BIT` option."}},
    {"GETBIT", getbit, "key offset", kReadOnly | kFast, keys(1).ro().access(), kAclBitmap,
     Group::kBitmap, "2.2.0", "O(1)", "Returns a bit value by offset."},
    {"SETBIT", setbit, "key offset value:integer", kWrite | kDenyOom,
     keys(1).rw().access().update(), kAclBitmap, Group::kBitmap, "2.2.0", "O(1)",
     "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist."},
};

}  // namespace

std::span<const CommandRow> bitmap_rows() {
  return kBitmapRows;
}

}  // namespace latchkey::commands
