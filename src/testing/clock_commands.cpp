// CLOCK, CLOCK ADVANCE, FREEZE, HELP, RATE, RESET, RESUME, SET.
#include <span>
#include <string_view>

#include "base/settable_clock.h"
#include "base/time_units.h"
#include "replication/replication.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/command/help.h"
#include "server/server.h"
#include "testing/clock_control.h"
#include "testing/duration.h"
#include "testing/instant.h"
#include "testing/rows.h"

namespace latchkey::testing {

using namespace server;
using base::SettableClock;

namespace {

std::string_view name_of(SettableClock::Mode mode) {
  switch (mode) {
    case SettableClock::Mode::kFrozen:
      return "frozen";
    case SettableClock::Mode::kRunning:
      return "running";
    case SettableClock::Mode::kWall:
      break;
  }
  return "wall";
}

void reply_time(resp::ReplyBuilder& reply, const SettableClock& clock) {
  reply.integer(clock.wall_us() / base::kUsPerMs);
}

// False, with the error sent, when the clock is not this server's to move.
bool may_move(CommandContext& ctx) {
  if (ctx.server.is_replica()) return ctx.refuse("ERR A replica follows the clock of its master");
  if (ctx.server.layer<replication::Replication>().replicas_follow_clock()) return true;
  return ctx.refuse("ERR CLOCK is refused while a replica is attached that cannot follow it");
}

// As may_move(), for what is done at once.
bool may_set(CommandContext& ctx) {
  if (!may_move(ctx)) return false;
  if (!ctx.server.layer<ClockControl>().is_moving()) return true;
  return ctx.refuse("ERR The clock is being moved by another client");
}

void reply_moved(CommandContext& ctx) {
  ctx.server.layer<ClockControl>().moved();
  reply_time(ctx.reply, ctx.server.data_clock());
}

void clock(CommandContext& ctx) {
  const SettableClock& clock = ctx.server.data_clock();
  ctx.reply.map(4);
  ctx.reply.bulk("mode");
  ctx.reply.bulk(name_of(clock.mode()));
  ctx.reply.bulk("time");
  reply_time(ctx.reply, clock);
  ctx.reply.bulk("offset");
  ctx.reply.integer(clock.offset_us() / base::kUsPerMs);
  ctx.reply.bulk("rate");
  ctx.reply.number(clock.rate());
}

// The client waits until what is due has happened.
void move(CommandContext& ctx, ClockControl::Move::Kind kind, int64_t us) {
  if (ctx.client.has(kClientDenyBlocking))
    return ctx.reply.error("ERR CLOCK ADVANCE and CLOCK SET wait, which is not possible here");
  Server& server = ctx.server;
  const uint64_t id = ctx.client.id;
  ctx.client.wait(
      {.deadline_ms = 0, .may_unblock = false, .outlives_role = true, .ended = nullptr});
  const auto answer = [&server, id] {
    server.dispatcher().answer_waiting(
        id, [&server](Client& client) { reply_time(client.reply, server.data_clock()); });
  };
  server.layer<ClockControl>().start({kind, us, answer});
}

void clock_advance(CommandContext& ctx) {
  const auto us = parse_duration_us(ctx.args[kFirstArgument]);
  if (!us)
    return ctx.reply.error(
        "ERR Invalid duration: milliseconds, or a number with us, ms, s, m, h or d behind it, was "
        "expected");
  if (!may_move(ctx)) return;
  if (*us > SettableClock::kMaxUs - ctx.server.data_clock().wall_us())
    return ctx.reply.error("ERR The clock cannot go beyond the year 9999");
  move(ctx, ClockControl::Move::Kind::kBy, *us);
}

void clock_set(CommandContext& ctx) {
  const auto us = parse_instant_us(ctx.args[kFirstArgument]);
  if (!us)
    return ctx.reply.error(
        "ERR Invalid time: Unix time in seconds, in milliseconds with ms behind it, or "
        "2024-01-01T00:00:00Z (or +02:00) was expected");
  if (!may_move(ctx)) return;
  move(ctx, ClockControl::Move::Kind::kTo, *us);
}

void clock_freeze(CommandContext& ctx) {
  if (!may_set(ctx)) return;
  ctx.server.data_clock().freeze();
  reply_moved(ctx);
}

void clock_resume(CommandContext& ctx) {
  if (!may_set(ctx)) return;
  ctx.server.data_clock().resume();
  reply_moved(ctx);
}

void clock_rate(CommandContext& ctx) {
  double rate = 0;
  if (!ctx.read_double(ctx.args[kFirstArgument], &rate)) return;
  if (!(rate >= SettableClock::kMinRate && rate <= SettableClock::kMaxRate))
    return ctx.reply.error("ERR The rate must be between 0.001 and 1000000");
  if (!may_set(ctx)) return;
  ctx.server.data_clock().set_rate(rate);
  reply_moved(ctx);
}

void clock_reset(CommandContext& ctx) {
  if (!may_set(ctx)) return;
  ctx.server.data_clock().reset();
  reply_moved(ctx);
}

void clock_help(CommandContext& ctx) {
  reply_help(
      ctx,
      {"(no subcommand)",
       "    Return the clock's mode (wall, running, frozen), its time in milliseconds, by how",
       "    many milliseconds it is ahead of the machine's, and its rate.", "ADVANCE <duration>",
       "    Move the clock forward, by 1500, 1500ms, 30s, 5m, 2h, 1d or 1.5h. All that is due",
       "    until then happens in order and has been sent when the reply comes.", "FREEZE",
       "    Stop the clock where it stands.", "RATE <factor>",
       "    Let the clock run so many times as fast as the machine's.", "RESET",
       "    Show the machine's time again.", "RESUME",
       "    Let a clock that was frozen run on from where it stands.", "SET <time>",
       "    Set the clock to 2024-01-01T00:00:00Z, or to Unix time in seconds, or in",
       "    milliseconds with ms behind it. Forward as ADVANCE does."});
}

// A pause ends by this clock: a user that has stopped the clock and then paused all clients must be
// able to resume it.
constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale | kProtected | kDuringPause;
constexpr uint32_t kMoves =
    kAdmin | kNoScript | kNoMulti | kNoAsyncLoading | kBlocking | kProtected | kDuringPause;
constexpr const char* kSince = "0.2.0";

constexpr CommandRow kClockSubcommands[] = {
    {"ADVANCE",
     clock_advance,
     "duration",
     kMoves,
     {},
     0,
     Group::kServer,
     kSince,
     "O(N) where N is the number of keys and waits that are due until then",
     "Moves the clock forward through all that is due until then."},
    {"FREEZE", clock_freeze, "", kFlags, {}, 0, Group::kServer, kSince, "O(1)", "Stops the clock."},
    help_row(clock_help, 0, Group::kServer, kSince),
    {"RATE",
     clock_rate,
     "factor",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Lets the clock run at a multiple of real time."},
    {"RESET",
     clock_reset,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Lets the clock show the machine's time again."},
    {"RESUME",
     clock_resume,
     "",
     kFlags | kAllowBusy,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Lets a clock that was stopped run on."},
    {"SET",
     clock_set,
     "time",
     kMoves,
     {},
     0,
     Group::kServer,
     kSince,
     "O(N) where N is the number of keys and waits that are due until then",
     "Sets the clock, forward through all that is due until then."},
};

constexpr CommandRow kClockRows[] = {
    {"CLOCK",
     clock,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     kSince,
     "O(1)",
     "Returns the time that data and commands live in, and how it runs.",
     {.tips = "nondeterministic_output", .subcommands = kClockSubcommands}},
};

}  // namespace

std::span<const CommandRow> clock_rows() {
  return kClockRows;
}

}  // namespace latchkey::testing
