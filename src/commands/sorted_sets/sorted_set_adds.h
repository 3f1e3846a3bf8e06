// The step that ZADD, ZINCRBY and GEOADD share: members are given scores.
#pragma once

#include <span>
#include <string_view>

#include "server/command/command_context.h"

namespace latchkey::commands {

struct AddOptions {
  bool only_new = false;
  bool only_existing = false;
  bool only_greater = false;
  bool only_less = false;
  bool count_changes = false;
  bool increment = false;
};

struct ScoredText {
  double score;
  std::string_view member;
};

// Gives members of the sorted set at the request's first key their scores as the options want it,
// makes the set where there is none, tells of it and replies. `members` is not empty and is changed
// to the scores that they then have; with `increment` it is one.
void add_members(server::CommandContext& ctx, const AddOptions& options,
                 std::span<ScoredText> members);

}  // namespace latchkey::commands
