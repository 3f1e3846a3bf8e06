// Steps that the array commands share: indexes of requests, and replies.
//
// Redis 8.8 brought arrays. The commands follow its documentation
// (https://redis.io/docs/latest/develop/data-types/arrays/ and the pages of the commands), and what
// Redis's own tests expect, which settle what the text leaves open:
//
// * events have the commands' names, and are of the class 'a' of notify-keyspace-events;
// * ARSCAN, and ARGREP with WITHVALUES, reply with pairs (the text says flat);
// * a ring of another size keeps what is between its newest text and the first gap before it;
// * a cursor that was put at 0 is as that of an array to which nothing was appended: ARLASTITEMS
//   begins at the end of the array.
//
// Where these are silent too:
//
// * ARLASTITEMS goes back from the cursor over as many indexes as the array has texts, and gives
//   null for those that are empty by now;
// * AROP skips what is no number.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/array.h"

namespace latchkey::commands {

// Reads an index, up to `last`; false, with the error sent, when it is none.
bool read_index(server::CommandContext& ctx, std::string_view text, uint64_t* index,
                uint64_t last = store::Array::kLastIndex);

// The array at the command's key to read. Null when there is none, with the error sent if the key
// holds another type: then `*refused` is true.
const store::Array* array_to_read(server::CommandContext& ctx, bool* refused);

// An integer above 2^63 too.
void reply_unsigned(server::CommandContext& ctx, uint64_t value);
// A bulk string, or null for an empty index.
void reply_cell(server::CommandContext& ctx, store::ArrayCell value);

// Records that a command has changed `count` elements of the array at the command's key.
void array_changed(server::CommandContext& ctx, std::string_view event, uint64_t count);

}  // namespace latchkey::commands
