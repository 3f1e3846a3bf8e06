// Steps that the commands on bit strings share: reading offsets, and making room for bits.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "server/command/command_context.h"
#include "store/keyspace.h"

namespace latchkey::commands {

// Reads the offset of a bit within a string of proto-max-bulk-len bytes. False with the error sent.
bool read_bit_offset(server::CommandContext& ctx, std::string_view text, uint64_t* offset);
// The same for a field of `field_bits` bits; "#n" means the n-th field in a row of such fields.
bool read_field_offset(server::CommandContext& ctx, std::string_view text, unsigned field_bits,
                       uint64_t* offset);

struct WritableBits {
  std::span<char> bytes;
  bool grew;  // or was created
};

// The string at `ref`, created or extended with zeros to hold at least `bits` bits. REQUIRES: no
// key or a string.
WritableBits writable_bits(server::CommandContext& ctx, store::KeyRef& ref, uint64_t bits);

}  // namespace latchkey::commands
