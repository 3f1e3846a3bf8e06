// Steps shared by the commands that pop from sorted sets, blocking and not.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/command/command_context.h"
#include "store/keyspace.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

// The ranks of `count` members (or all if there are fewer) at one end of a set.
store::RankRange members_at_end(const store::SortedSet& set, bool highest, size_t count);

// Replies with members at one end of the sorted set at `ref` and removes them, and the key if the
// set is empty. Sends only the members, without an array around them; `nested` sends each member
// and its score as an array. REQUIRES: the members exist.
void send_and_remove(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key,
                     bool highest, store::RankRange ranks, bool nested);

// The arguments of ZMPOP and BZMPOP.
struct MultiPop {
  server::Arguments keys;
  bool highest = false;
  size_t count = 1;

  // Reads from argument `first`, the number of keys, on. False, with an error sent, when the
  // arguments are invalid.
  bool read(server::CommandContext& ctx, size_t first);
  // Pops from the first existing key. False, with nothing sent, when no key exists.
  bool serve(server::CommandContext& ctx) const;
};

}  // namespace latchkey::commands
