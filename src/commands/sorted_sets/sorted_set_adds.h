// The step that ZADD, ZINCRBY and GEOADD share: setting the scores of members.
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

// Sets the scores of members of the sorted set at the request's first key according to `options`,
// creates the set if there is none, sends the event and replies. `members` must not be empty; its
// scores are replaced by the resulting ones. With `increment` it has exactly one element.
void add_members(server::CommandContext& ctx, const AddOptions& options,
                 std::span<ScoredText> members);

}  // namespace latchkey::commands
