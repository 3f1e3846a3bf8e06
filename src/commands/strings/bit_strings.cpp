#include "commands/strings/bit_strings.h"

#include <algorithm>

#include "base/text/number.h"
#include "server/server.h"

namespace latchkey::commands {

using server::CommandContext;

namespace {

// Sends the error when the offset is out of range.
bool check_offset(CommandContext& ctx, bool is_number, int64_t position, uint64_t* offset) {
  if (!is_number || position < 0 || position / 8 >= ctx.server.settings().proto_max_bulk_len)
    return ctx.refuse("ERR bit offset is not an integer or out of range");
  *offset = static_cast<uint64_t>(position);
  return true;
}

}  // namespace

bool read_bit_offset(CommandContext& ctx, std::string_view text, uint64_t* offset) {
  int64_t position = 0;
  const bool is_number = base::parse_int64(text, &position);
  return check_offset(ctx, is_number, position, offset);
}

bool read_field_offset(CommandContext& ctx, std::string_view text, unsigned field_bits,
                       uint64_t* offset) {
  if (!text.starts_with('#')) return read_bit_offset(ctx, text, offset);
  int64_t position = 0;
  const bool is_number = base::parse_int64(text.substr(1), &position) &&
                         !__builtin_mul_overflow(position, field_bits, &position);
  return check_offset(ctx, is_number, position, offset);
}

WritableBits writable_bits(CommandContext& ctx, store::KeyRef& ref, uint64_t bits) {
  const size_t old_size = ref ? ref->string_size() : 0;
  const size_t size = std::max<size_t>(old_size, (bits + 7) / 8);
  return {ctx.db.extend_string(ref, size), size > old_size};
}

}  // namespace latchkey::commands
