// Integers of any width in strings: BITFIELD, BITFIELD_RO.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/strings/bit_strings.h"
#include "server/command/command_context.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;

namespace {

// Wide enough for the sum of any field and any argument.
__extension__ using Wide = __int128;

// A signed number of up to 64 bits, or an unsigned one of up to 63.
struct FieldType {
  bool is_signed = false;
  unsigned bits = 0;

  // Reads "i16" or "u8"; false when the text is no such type.
  bool read(std::string_view text) {
    if (!text.starts_with('i') && !text.starts_with('u')) return false;
    is_signed = text[0] == 'i';
    int64_t count;
    if (!base::parse_int64(text.substr(1), &count)) return false;
    if (count < 1 || count > (is_signed ? 64 : 63)) return false;
    bits = static_cast<unsigned>(count);
    return true;
  }

  Wide lowest() const { return is_signed ? -(Wide{1} << (bits - 1)) : Wide{0}; }
  Wide highest() const { return (Wide{1} << (is_signed ? bits - 1 : bits)) - 1; }
  bool holds(Wide number) const { return number >= lowest() && number <= highest(); }
  // Interprets the lowest bits of `pattern` as a number of this type.
  int64_t number_of(uint64_t pattern) const {
    const unsigned unused = 64 - bits;
    const uint64_t top = pattern << unused;
    return is_signed ? static_cast<int64_t>(top) >> unused : static_cast<int64_t>(top >> unused);
  }
};

enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

struct FieldOperation {
  enum class Kind : uint8_t { kGet, kSet, kAdd } kind;
  Overflow overflow;
  FieldType type;
  uint64_t offset;
  int64_t argument;  // of SET and INCRBY

  bool writes() const { return kind != Kind::kGet; }
  uint64_t end() const { return offset + type.bits; }

  // The new value of the field; nothing when it does not fit and the overflow is kFail.
  std::optional<int64_t> result(int64_t old) const {
    // In an unsigned field, a negative argument means the unsigned number with the same bits.
    const Wide set = type.is_signed ? Wide{argument} : Wide{static_cast<uint64_t>(argument)};
    const Wide exact = kind == Kind::kSet ? set : Wide{old} + argument;
    if (type.holds(exact)) return static_cast<int64_t>(exact);
    if (overflow == Overflow::kFail) return std::nullopt;
    if (overflow == Overflow::kSaturate)
      return static_cast<int64_t>(exact < type.lowest() ? type.lowest() : type.highest());
    return type.number_of(static_cast<uint64_t>(exact));
  }
};

using FieldOperations = std::vector<FieldOperation>;

bool read_overflow(CommandContext& ctx, std::string_view word, Overflow* overflow) {
  if (is_word(word, "WRAP")) {
    *overflow = Overflow::kWrap;
  } else if (is_word(word, "SAT")) {
    *overflow = Overflow::kSaturate;
  } else if (is_word(word, "FAIL")) {
    *overflow = Overflow::kFail;
  } else {
    return ctx.refuse("ERR Invalid OVERFLOW type specified");
  }
  return true;
}

// Reads the type, the offset and, for SET and INCRBY, the argument of an operation.
bool read_operands(CommandContext& ctx, ArgReader& words, FieldOperation* operation) {
  if (words.left() < (operation->writes() ? 3 : 2)) {
    ctx.syntax_error();
    return false;
  }
  if (!operation->type.read(words.next()))
    return ctx.refuse(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
        "i64 is.");
  return read_field_offset(ctx, words.next(), operation->type.bits, &operation->offset) &&
         (!operation->writes() || ctx.read_int64(words.next(), &operation->argument));
}

// False with the error sent.
bool read_operations(CommandContext& ctx, FieldOperations* operations) {
  using Kind = FieldOperation::Kind;
  Overflow overflow = Overflow::kWrap;
  for (ArgReader words(ctx.args, 2); words.more();) {
    std::string_view name;
    if (words.word("OVERFLOW", &name)) {
      if (!read_overflow(ctx, name, &overflow)) return false;
      continue;
    }
    FieldOperation operation{Kind::kGet, overflow, {}, 0, 0};
    if (words.word("SET")) {
      operation.kind = Kind::kSet;
    } else if (words.word("INCRBY")) {
      operation.kind = Kind::kAdd;
    } else if (!words.word("GET")) {
      ctx.syntax_error();
      return false;
    }
    if (!read_operands(ctx, words, &operation)) return false;
    operations->push_back(operation);
  }
  return true;
}

void reply_fields(CommandContext& ctx, const FieldOperations& gets) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_string(ref)) return;
  char scratch[base::kMaxInt64Text];
  const std::string_view bytes = ref ? ref->string(scratch) : std::string_view();
  ctx.reply.array(gets.size());
  for (const FieldOperation& get : gets)
    ctx.reply.integer(get.type.number_of(base::read_bits(bytes, get.offset, get.type.bits)));
}

void bitfield(CommandContext& ctx) {
  FieldOperations operations;
  if (!read_operations(ctx, &operations)) return;
  uint64_t end = 0;
  for (const FieldOperation& operation : operations) {
    if (operation.writes()) end = std::max(end, operation.end());
  }
  if (end == 0) return reply_fields(ctx, operations);

  const std::string_view key = ctx.args[1];
  KeyRef ref = ctx.db.find_to_replace(key);
  if (!ctx.is_string(ref)) return;
  const WritableBits row = writable_bits(ctx, ref, end);
  const std::string_view bytes(row.bytes.data(), row.bytes.size());
  uint64_t changes = 0;
  ctx.reply.array(operations.size());
  for (const FieldOperation& operation : operations) {
    const FieldType type = operation.type;
    const int64_t old = type.number_of(base::read_bits(bytes, operation.offset, type.bits));
    if (!operation.writes()) {
      ctx.reply.integer(old);
      continue;
    }
    const auto result = operation.result(old);
    if (!result) {
      ctx.reply.null();
      continue;
    }
    base::write_bits(row.bytes, operation.offset, type.bits, static_cast<uint64_t>(*result));
    ctx.reply.integer(operation.kind == FieldOperation::Kind::kSet ? old : *result);
    if (row.grew || *result != old) ++changes;
  }
  if (changes == 0) {
    // All that was to be written has overflowed. A string that has grown is another one in replicas
    // and files too; nobody is notified, as in the reference.
    if (row.grew) ctx.events.count(1);
    return;
  }
  ctx.changed(key, EventClass::kString, "setbit");
  ctx.events.count(changes - 1);
}

void bitfield_ro(CommandContext& ctx) {
  FieldOperations operations;
  if (!read_operations(ctx, &operations)) return;
  for (const FieldOperation& operation : operations) {
    if (operation.writes())
      return ctx.reply.error("ERR BITFIELD_RO only supports the GET subcommand");
  }
  reply_fields(ctx, operations);
}

// --- Rows ----------------------------------------------------------------------------------------

// The key counts as read-only only if all operations can be parsed and all are GET.
bool find_bitfield_keys(Arguments words, std::vector<KeyReference>* out) {
  uint32_t flags = kKeyReadOnly | kKeyAccess;
  for (ArgReader reader(words, 2); reader.more();) {
    std::string_view overflow;
    if (reader.word("OVERFLOW", &overflow)) continue;
    if (!reader.word("GET") || reader.left() < 2) {
      flags = kKeyReadWrite | kKeyAccess | kKeyUpdate;
      break;
    }
    reader.next();
    reader.next();
  }
  out->push_back({1, flags});
  return true;
}

constexpr CommandRow kBitfieldRows[] = {
    {"BITFIELD",
     bitfield,
     "key [operation={GET get-block=encoding offset}|{write=[OVERFLOW "
     "overflow-block=WRAP|SAT|FAIL] {write-operation={SET set-block=encoding offset "
     "value:integer}|{INCRBY incrby-block=encoding offset increment}}}]...",
     kWrite | kDenyOom,
     keys(1).rw().access().update().variable_flags().note(
         "This command allows both access and modification of the key"),
     kAclBitmap,
     Group::kBitmap,
     "3.2.0",
     "O(1) for each subcommand specified",
     "Performs arbitrary bitfield integer operations on strings.",
     {.find_keys = find_bitfield_keys}},
    {"BITFIELD_RO", bitfield_ro, "key [GET get-block=encoding offset]...", kReadOnly | kFast,
     keys(1).ro().access(), kAclBitmap, Group::kBitmap, "6.0.0",
     "O(1) for each subcommand specified",
     "Performs arbitrary read-only bitfield integer operations on strings."},
};

}  // namespace

std::span<const CommandRow> bitfield_rows() {
  return kBitfieldRows;
}

}  // namespace latchkey::commands
