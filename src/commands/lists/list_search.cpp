// LPOS: the index of an element in a list.
#include <cstdint>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/lists/list_steps.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::List;

namespace {

struct Search {
  int64_t rank = 1;            // negative: from the end
  int64_t count = 1;           // 0: all
  int64_t most_looked_at = 0;  // 0: all
  bool counted = false;
};

bool read_search(CommandContext& ctx, Search* search) {
  std::string_view text;
  for (ArgReader options(ctx.args, 3); options.more();) {
    if (options.word("RANK", &text)) {
      if (!ctx.read_int64_in(text, -INT64_MAX, INT64_MAX, &search->rank)) return false;
      if (search->rank == 0)
        return ctx.refuse(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
            "use negative to start from the end of the list");
    } else if (options.word("COUNT", &text)) {
      search->counted = true;
      if (!ctx.read_int64_in(text, 0, INT64_MAX, &search->count, "ERR COUNT can't be negative"))
        return false;
    } else if (options.word("MAXLEN", &text)) {
      if (!ctx.read_int64_in(text, 0, INT64_MAX, &search->most_looked_at,
                             "ERR MAXLEN can't be negative"))
        return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

// Indices of the matches, in the order in which they are found.
std::vector<int64_t> matches(const List& list, std::string_view element, const Search& search) {
  const bool backwards = search.rank < 0;
  const auto size = static_cast<int64_t>(list.size());
  int64_t to_skip = (backwards ? -search.rank : search.rank) - 1;
  const store::Listpack::Matcher wanted(element);
  std::vector<int64_t> found;
  List::Cursor cursor = list.at(backwards ? -1 : 0);
  for (int64_t seen = 0; cursor; ++seen) {
    if (search.most_looked_at != 0 && seen == search.most_looked_at) break;
    if (wanted.matches(list.get(cursor)) && to_skip-- <= 0) {
      found.push_back(backwards ? size - 1 - seen : seen);
      if (static_cast<int64_t>(found.size()) == search.count) break;
    }
    cursor = backwards ? list.previous(cursor) : list.next(cursor);
  }
  return found;
}

void lpos(CommandContext& ctx) {
  Search search;
  if (!read_search(ctx, &search)) return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const auto list = view_at<List>(ctx, ref);
  if (list == nullptr) {
    if (ref) return;
    return search.counted ? ctx.reply.empty_array() : ctx.reply.null();
  }
  const std::vector<int64_t> found = matches(*list, ctx.args[2], search);
  list->recompress();
  if (!search.counted) return found.empty() ? ctx.reply.null() : ctx.reply.integer(found[0]);
  ctx.reply.array(found.size());
  for (const int64_t index : found) ctx.reply.integer(index);
}

constexpr CommandRow kListSearchRows[] = {
    {"LPOS", lpos,
     "key element [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN len:integer]", kReadOnly,
     keys(1).ro().access(), kAclList, Group::kList, "6.0.6",
     "O(N) where N is the number of elements in the list, for the average case. When searching for "
     "elements near the head or the tail of the list, or when the MAXLEN option is provided, the "
     "command may run in constant time.",
     "Returns the index of matching elements in a list."},
};

}  // namespace

std::span<const CommandRow> list_search_rows() {
  return kListSearchRows;
}

}  // namespace latchkey::commands
