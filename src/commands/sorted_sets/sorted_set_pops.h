// What the commands that pop from sorted sets share, those that wait and those that do not.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/command/command_context.h"
#include "store/keyspace.h"
#include "store/value/sorted_set.h"

namespace latchkey::commands {

// Members at one end of a set, `count` or as many as there are.
store::RankRange members_at_end(const store::SortedSet& set, bool highest, size_t count);

// Sends and removes members at an end of the sorted set at `ref`, which is gone afterwards if it is
// empty. The reply is theirs alone, without an array around; `nested` sends each with its score as
// an array of its own. REQUIRES: the members exist.
void send_and_remove(server::CommandContext& ctx, store::KeyRef& ref, std::string_view key,
                     bool highest, store::RankRange ranks, bool nested);

// What ZMPOP and BZMPOP ask for.
struct MultiPop {
  server::Arguments keys;
  bool highest = false;
  size_t count = 1;

  // From the argument `first` on, the number of keys. False, with an error sent, when it cannot be
  // understood.
  bool read(server::CommandContext& ctx, size_t first);
  // Pops from the first key that there is. False, with nothing sent, when there is none.
  bool serve(server::CommandContext& ctx) const;
};

}  // namespace latchkey::commands
