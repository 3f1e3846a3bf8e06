// Blocking pops and moves: BLPOP, BRPOP, BLMOVE, BLMOVEM, BRPOPLPUSH, BLMPOP.
#include <cstdint>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "commands/lists/list_steps.h"
#include "server/client/blocking.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::List;

namespace {

void pop_or_wait(CommandContext& ctx, End end) {
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args.back(), &deadline_ms)) return;
  const Arguments keys = ctx.args.subspan(1, ctx.args.size() - 2);
  for (const std::string_view key : keys) {
    KeyRef ref = ctx.db.find_for_write(key);
    if (!ref) continue;
    if (!ctx.is_type(ref, List::kType)) return;
    ctx.reply.array(2);
    ctx.reply.bulk(key);
    pop_elements(ctx, ref, key, end, 1);
    return ctx.propagate({end == End::kLeft ? "LPOP" : "RPOP", key});
  }
  ctx.server.blocking().wait(ctx, {.keys = keys, .type = List::kType, .deadline_ms = deadline_ms});
}

void blpop(CommandContext& ctx) {
  pop_or_wait(ctx, End::kLeft);
}

void brpop(CommandContext& ctx) {
  pop_or_wait(ctx, End::kRight);
}

// `name`: the nonblocking command, which has the same arguments without the timeout; it is
// propagated.
void move_or_wait(CommandContext& ctx, End from, End to, std::string_view name) {
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args.back(), &deadline_ms)) return;
  const Moved moved = move_element(ctx, ctx.args[1], ctx.args[2], from, to);
  if (moved == Moved::kDone) ctx.propagate({name}, ctx.args.subspan(1, ctx.args.size() - 2));
  if (moved != Moved::kNoSource) return;
  ctx.server.blocking().wait(ctx, {.keys = ctx.args.subspan(1, 1),
                                   .type = List::kType,
                                   .deadline_ms = deadline_ms,
                                   .single_null_at_once = true});
}

void blmove(CommandContext& ctx) {
  End from;
  End to;
  if (!read_end(ctx, ctx.args[3], &from) || !read_end(ctx, ctx.args[4], &to)) return;
  move_or_wait(ctx, from, to, "LMOVE");
}

// Waits for one element, or for as many as are to be moved exactly: then it is run again at each
// change of the source, and keeps its place while there are fewer.
void blmovem(CommandContext& ctx) {
  constexpr size_t kTimeout = 5;
  MoveRequest request;
  if (!read_move_request(ctx, kTimeout + 1, &request)) return;
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args[kTimeout], &deadline_ms)) return;
  const Moved moved = move_elements(ctx, ctx.args[1], ctx.args[2], request);
  if (moved == Moved::kDone) {
    std::vector<std::string_view> words(ctx.args.begin() + 1, ctx.args.end());
    words.erase(words.begin() + kTimeout - 1);
    ctx.propagate({"LMOVEM"}, words);
  }
  if (moved != Moved::kNoSource) return;
  ctx.server.blocking().wait(ctx, {.keys = ctx.args.subspan(1, 1),
                                   .type = List::kType,
                                   .deadline_ms = deadline_ms,
                                   .single_null_at_once = true});
}

void brpoplpush(CommandContext& ctx) {
  move_or_wait(ctx, End::kRight, End::kLeft, "RPOPLPUSH");
}

void blmpop(CommandContext& ctx) {
  PopRequest request;
  if (!read_pop_request(ctx, 2, &request)) return;
  int64_t deadline_ms = 0;
  if (!read_wait_timeout(ctx, ctx.args[1], &deadline_ms)) return;
  if (pop_from_first(ctx, request)) return;
  ctx.server.blocking().wait(
      ctx, {.keys = request.keys, .type = List::kType, .deadline_ms = deadline_ms});
}

constexpr CommandRow kListWaitRows[] = {
    {"BLMOVE", blmove,
     "source destination {wherefrom=LEFT|RIGHT} {whereto=LEFT|RIGHT} timeout:double",
     kWrite | kDenyOom | kBlocking, keys(1).rw().access().remove() + keys(2).rw().insert(),
     kAclList, Group::kList, "6.2.0", "O(1)",
     "Pops an element from a list, pushes it to another list and returns it. Blocks until an "
     "element is available otherwise. Deletes the list if the last element was moved."},
    {"BLMOVEM", blmovem,
     "source destination {wherefrom=LEFT|RIGHT} {whereto=LEFT|RIGHT} timeout:double "
     "[how-many={selector=COUNT count|EXACTLY exactly:integer} {ordering=OBO|BULK}]",
     kWrite | kDenyOom | kBlocking, keys(1).rw().access().remove() + keys(2).rw().insert(),
     kAclList, Group::kList, "8.10.0", "O(N) where N is the number of elements moved.",
     "Moves up to (or exactly) a number of elements from one list to another and returns them. "
     "Blocks until the elements are available otherwise. Deletes the source list if it becomes "
     "empty."},
    {"BLMPOP", blmpop, "timeout:double numkeys key... {where=LEFT|RIGHT} [COUNT count]",
     kWrite | kBlocking, counted_keys(2).rw().access().remove(), kAclList, Group::kList, "7.0.0",
     "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
     "Pops the first element from one of multiple lists. Blocks until an element is available "
     "otherwise. Deletes the list if the last element was popped."},
    {"BLPOP",
     blpop,
     "key... timeout:double",
     kWrite | kBlocking,
     keys(1, -2).rw().access().remove(),
     kAclList,
     Group::kList,
     "2.0.0",
     "O(N) where N is the number of provided keys.",
     "Removes and returns the first element in a list. Blocks until an element is available "
     "otherwise. Deletes the list if the last element was popped.",
     {.history = "6.0.0 `timeout` is interpreted as a double instead of an integer."}},
    {"BRPOP",
     brpop,
     "key... timeout:double",
     kWrite | kBlocking,
     keys(1, -2).rw().access().remove(),
     kAclList,
     Group::kList,
     "2.0.0",
     "O(N) where N is the number of provided keys.",
     "Removes and returns the last element in a list. Blocks until an element is available "
     "otherwise. Deletes the list if the last element was popped.",
     {.history = "6.0.0 `timeout` is interpreted as a double instead of an integer."}},
    {"BRPOPLPUSH",
     brpoplpush,
     "source destination timeout:double",
     kWrite | kDenyOom | kBlocking,
     keys(1).rw().access().remove() + keys(2).rw().insert(),
     kAclList,
     Group::kList,
     "2.2.0",
     "O(1)",
     "Pops an element from a list, pushes it to another list and returns it. Block until an "
     "element is available otherwise. Deletes the list if the last element was popped.",
     {.history = "6.0.0 `timeout` is interpreted as a double instead of an integer.",
      .deprecated_since = "6.2.0",
      .replaced_by = "`BLMOVE` with the `RIGHT` and `LEFT` arguments"}},
};

}  // namespace

std::span<const CommandRow> list_wait_rows() {
  return kListWaitRows;
}

}  // namespace latchkey::commands
