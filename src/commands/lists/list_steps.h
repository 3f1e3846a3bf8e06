// Steps that the list handlers share: the ends of a list, popping from an end, and moving an
// element between lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "commands/keys/typed_key.h"
#include "server/command/command_context.h"
#include "store/value/list.h"

namespace latchkey::commands {

enum class End : uint8_t { kLeft, kRight };

inline const store::ValueLimits& limits(server::CommandContext& ctx) {
  return ctx.db.environment().limits;
}

inline void reply_element(server::CommandContext& ctx, const store::List::Element& element) {
  element.is_integer ? ctx.reply.bulk(element.integer) : ctx.reply.bulk(element.bytes);
}

inline store::List::Cursor end_of(const store::List& list, End end) {
  return list.at(end == End::kLeft ? 0 : -1);
}

// Sends the event for `count` removed elements, and removes the list if it is empty or lets it
// shrink.
inline void removed_elements(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key,
                             std::string_view event, size_t count) {
  ctx.events.count(count);
  ctx.events.happened(ctx.db, key, server::EventClass::kList, event);
  if (!erase_if_empty<store::List>(ctx, ref, key)) {
    value_of<store::List>(ref).has_shrunk(limits(ctx));
  }
}

// Replies with `count` elements from that end, one reply each, and removes them. REQUIRES: a list
// of at least `count` elements at `ref`; count is not 0.
inline void pop_elements(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key,
                         End end, size_t count) {
  store::List& list = value_of<store::List>(ref);
  store::List::Cursor cursor = end_of(list, end);
  for (size_t i = 0; i < count; ++i) {
    reply_element(ctx, list.get(cursor));
    if (i + 1 < count) cursor = end == End::kLeft ? list.next(cursor) : list.previous(cursor);
  }
  list.erase_range(end == End::kLeft ? 0 : list.size() - count, count);
  removed_elements(ctx, ref, key, end == End::kLeft ? "lpop" : "rpop", count);
}

// --- In list_moves.cpp --------------------------------------------------------------------------

// Reads LEFT or RIGHT; false, with a syntax error sent, when it is neither.
bool read_end(server::CommandContext& ctx, std::string_view text, End* end);

// Moves an element between the ends of two lists, which may be the same, and replies with it.
// kRefused: an error was sent. kNoSource: nothing was sent, because there is no source list.
enum class Moved : uint8_t { kDone, kRefused, kNoSource };
Moved move_element(server::CommandContext& ctx, std::string_view source_key,
                   std::string_view target_key, End from, End to);

// How many elements LMOVEM and BLMOVEM move, and how they lie in the target.
struct MoveRequest {
  End from = End::kLeft;
  End to = End::kLeft;
  size_t count = 1;
  bool exactly = false;     // all of them, or none
  bool one_by_one = false;  // OBO; else they keep their order
};

// Reads the ends at positions 3 and 4, and `[<COUNT | EXACTLY> count <OBO | BULK>]` from the
// argument at `block` to the end; false, with the error sent, on anything else.
bool read_move_request(server::CommandContext& ctx, size_t block, MoveRequest* request);

// Moves elements between two lists, which may be the same, and replies with an array of them in the
// target's order. kNoSource: nothing was sent, because there are not enough elements: none, or
// fewer than are to be moved exactly. O(elements moved).
Moved move_elements(server::CommandContext& ctx, std::string_view source_key,
                    std::string_view target_key, const MoveRequest& request);

// The arguments of LMPOP and BLMPOP.
struct PopRequest {
  server::Arguments keys;
  End end = End::kLeft;
  size_t count = 1;
};

// Reads `numkeys key [key ...] LEFT|RIGHT [COUNT count]` from the argument at `first` on; false,
// with the error sent, on anything else.
bool read_pop_request(server::CommandContext& ctx, size_t first, PopRequest* request);

// Pops from the first existing key, and replies with its name and an array of elements, or with an
// error. False, with nothing sent, when no key exists.
bool pop_from_first(server::CommandContext& ctx, const PopRequest& request);

}  // namespace latchkey::commands
