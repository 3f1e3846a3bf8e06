// Steps that the commands on strings of bits share: offsets, and room for the bits.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "server/command/command_context.h"
#include "store/keyspace.h"

namespace latchkey::commands {

// Reads the offset of a bit that a string of proto-max-bulk-len bytes has. False with the error
// sent.
bool read_bit_offset(server::CommandContext& ctx, std::string_view text, uint64_t* offset);
// The same for a field of so many bits; behind a '#' stands which field it is of such fields side
// by side.
bool read_field_offset(server::CommandContext& ctx, std::string_view text, unsigned field_bits,
                       uint64_t* offset);

struct WritableBits {
  std::span<char> bytes;
  bool grew;  // or has been made
};

// The string at `ref`, which is made or filled up with zeros to hold that many bits.
// REQUIRES: no key or a string.
WritableBits writable_bits(server::CommandContext& ctx, store::KeyRef& ref, uint64_t bits);

}  // namespace latchkey::commands
