// LOCK CHECK, DOCTOR, GUARD, HELP, INFO, LIST, LOG, RESET, TIMELINE, UNGUARD.
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/glob.h"
#include "base/text/number.h"
#include "locks/doctor.h"
#include "locks/lock_report.h"
#include "locks/lock_watch.h"
#include "locks/rows.h"
#include "locks/timeline.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::locks {

using namespace server;

namespace {

constexpr size_t kFirstArgument = 2;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();

LockModel& model_of(CommandContext& ctx) {
  return ctx.server.layer<LockWatch>().model();
}

// Null, with the error sent, when there is no such lock in the client's database.
const Record* find_lock(CommandContext& ctx, std::string_view key) {
  const Record* record = model_of(ctx).find(ctx.db.index(), key);
  if (record == nullptr) ctx.reply.error("ERR no lock is known at that key");
  return record;
}

void lock_list(CommandContext& ctx) {
  std::string_view text = "*";
  for (ArgReader options(ctx.args, kFirstArgument); options.more();) {
    if (!options.word("PATTERN", &text)) return ctx.syntax_error();
  }
  const base::GlobPattern pattern(text);
  std::vector<const Record*> shown;
  for (const Record& record : model_of(ctx).records()) {
    if (pattern.covers(record.place->key)) shown.push_back(&record);
  }
  ctx.reply.array(shown.size());
  for (const Record* record : shown) reply_lock(ctx.reply, *record, ctx.now_ms());
}

void lock_info(CommandContext& ctx) {
  const Record* record = find_lock(ctx, ctx.args[2]);
  if (record != nullptr)
    reply_lock_in_full(ctx.reply, *record, ctx.server.layer<LockWatch>(), ctx.now_ms());
}

void lock_log(CommandContext& ctx) {
  constexpr int64_t kDefaultCount = 10;
  int64_t most = kDefaultCount;
  std::optional<std::string_view> key;
  ArgReader arguments(ctx.args, kFirstArgument);
  if (arguments.more()) {
    int64_t number;
    const bool is_number = base::parse_int64(arguments.peek(), &number);
    if (is_number || arguments.left() > 1) {
      if (!ctx.read_int64_in(arguments.next(), 0, kMaxInteger, &most)) return;
    }
  }
  if (arguments.more()) key = arguments.next();
  if (arguments.more()) return ctx.wrong_arity();
  const boost::circular_buffer<Event>& log = model_of(ctx).log();
  std::vector<const Event*> shown;
  for (auto it = log.rbegin(); it != log.rend() && std::cmp_less(shown.size(), most); ++it) {
    const bool wanted = !key || (it->place->database == ctx.db.index() && it->place->key == *key);
    if (wanted) shown.push_back(&*it);
  }
  ctx.reply.array(shown.size());
  for (const Event* event : shown) reply_event(ctx.reply, *event);
}

void lock_check(CommandContext& ctx) {
  int64_t since = 0;
  Severity least = Severity::kLow;
  std::string_view text;
  for (ArgReader options(ctx.args, kFirstArgument); options.more();) {
    if (options.word("SINCE", &text)) {
      if (!ctx.read_int64_in(text, 0, kMaxInteger, &since)) return;
    } else if (options.word("SEVERITY", &text)) {
      const auto severity = parse_severity(text);
      if (!severity) return ctx.reply.error("ERR severity must be 'low', 'medium' or 'high'");
      least = *severity;
    } else {
      return ctx.syntax_error();
    }
  }
  std::vector<const Finding*> shown;
  for (const Finding& finding : model_of(ctx).findings()) {
    if (std::cmp_greater(finding.id, since) && description_of(finding.kind).severity >= least)
      shown.push_back(&finding);
  }
  ctx.reply.array(shown.size());
  for (const Finding* finding : shown) reply_finding(ctx.reply, *finding, ctx.server.edition());
}

void lock_doctor(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const Record* only = nullptr;
  if (ctx.args.size() == 3) {
    only = find_lock(ctx, ctx.args[2]);
    if (only == nullptr) return;
  }
  if (!ctx.server.layer<LockWatch>().is_on())
    return ctx.reply.verbatim("txt",
                              "Locks are not watched: CONFIG SET lock-watch yes watches them.\n");
  ctx.reply.verbatim("txt",
                     diagnose(model_of(ctx), only, ctx.server.edition(),
                              ctx.server.layer<LockWatch>().watching_since_ms(), ctx.now_ms()));
}

void lock_reset(CommandContext& ctx) {
  ctx.server.layer<LockWatch>().reset();
  ctx.reply.ok();
}

void lock_timeline(CommandContext& ctx) {
  TimelineOptions drawing;
  bool svg = false;
  std::string_view text;
  for (ArgReader options(ctx.args, kFirstArgument + 1); options.more();) {
    int64_t number;
    if (options.word("WIDTH", &text)) {
      if (!ctx.read_int64_in(text, TimelineOptions::kNarrowest, TimelineOptions::kWidest, &number))
        return;
      drawing.width = static_cast<size_t>(number);
    } else if (options.word("LAST", &text)) {
      if (!ctx.read_int64_in(text, 1, kMaxInteger, &number)) return;
      drawing.last_ms = number;
    } else if (options.word("FORMAT", &text)) {
      svg = is_word(text, "SVG");
      if (!svg && !is_word(text, "TEXT"))
        return ctx.reply.error("ERR format must be 'text' or 'svg'");
    } else {
      return ctx.syntax_error();
    }
  }
  const Record* record = find_lock(ctx, ctx.args[2]);
  if (record == nullptr) return;
  const auto draw = svg ? draw_timeline_svg : draw_timeline;
  ctx.reply.verbatim("txt", draw(model_of(ctx), *record, ctx.now_ms(), drawing));
}

void lock_guard(CommandContext& ctx) {
  LockWatch& watch = ctx.server.layer<LockWatch>();
  std::vector<base::GlobPattern> globs;
  for (const std::string_view glob : ctx.args.subspan(kFirstArgument + 1)) globs.emplace_back(glob);
  if (!watch.guard(ctx.db.index(), ctx.args[2], std::move(globs)))
    return ctx.reply.error("ERR there may be up to 1000 locks that guard keys");
  ctx.reply.ok();
}

void lock_unguard(CommandContext& ctx) {
  LockWatch& watch = ctx.server.layer<LockWatch>();
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  if (ctx.args.size() == 2) {
    watch.unguard_all();
  } else if (!watch.unguard(ctx.db.index(), ctx.args[2])) {
    return ctx.reply.error("ERR that lock guards nothing");
  }
  ctx.reply.ok();
}

void lock_help(CommandContext& ctx) {
  reply_help(ctx,
             {
                 "CHECK [SINCE <id>] [SEVERITY low|medium|high]",
                 "    Return what was wrong with the use of locks: an empty array when all is",
                 "    well. SINCE leaves out what was found up to that id.",
                 "DOCTOR [<key>]",
                 "    Report in words what was wrong, and what to do instead.",
                 "GUARD <key> <pattern> [<pattern> ...]",
                 "    Name the keys that only the holder of a lock may write.",
                 "INFO <key>",
                 "    Return all that is known of a lock.",
                 "LIST [PATTERN <glob>]",
                 "    List the locks, the most recently used first.",
                 "LOG [<count>] [<key>]",
                 "    Return the latest events (default 10) of all locks or of one, the latest",
                 "    first.",
                 "RESET",
                 "    Forget all locks, events and findings.",
                 "TIMELINE <key> [WIDTH <columns>] [LAST <milliseconds>] [FORMAT text|svg]",
                 "    Draw who held a lock, waited for it and was refused.",
                 "UNGUARD [<key>]",
                 "    Forget the keys that a lock guards, or that any does.",
             });
}

constexpr uint32_t kFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr CommandRow kLockSubcommands[] = {
    {"CHECK",
     lock_check,
     "[SINCE id:integer] [SEVERITY level]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of findings",
     "Returns what was wrong with the use of locks.",
     {.tips = "nondeterministic_output"}},
    {"DOCTOR",
     lock_doctor,
     "[lock]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of findings",
     "Returns a report on the use of locks for people to read.",
     {.tips = "nondeterministic_output"}},
    {"GUARD",
     lock_guard,
     "lock pattern...",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of locks that guard keys",
     "Names the keys that a lock protects."},
    help_row(lock_help, 0, Group::kServer, "0.2.0"),
    {"INFO",
     lock_info,
     "lock",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of clients that wanted the lock",
     "Returns what is known of a lock.",
     {.tips = "nondeterministic_output"}},
    {"LIST",
     lock_list,
     "[PATTERN pattern:pattern]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of locks",
     "Returns the locks that are known.",
     {.tips = "nondeterministic_output"}},
    {"LOG",
     lock_log,
     "[count] [lock]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of events on record",
     "Returns the latest events of locks.",
     {.tips = "nondeterministic_output"}},
    {"RESET",
     lock_reset,
     "",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of locks",
     "Forgets the locks and what was found."},
    {"TIMELINE",
     lock_timeline,
     "lock [WIDTH columns:integer] [LAST milliseconds:integer] [FORMAT format]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of events on record",
     "Draws the events of a lock.",
     {.tips = "nondeterministic_output"}},
    {"UNGUARD",
     lock_unguard,
     "[lock]",
     kFlags,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "O(N) where N is the number of locks that guard keys",
     "Forgets which keys a lock protects."},
};

constexpr CommandRow kLockRows[] = {
    {"LOCK",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "0.2.0",
     "Depends on subcommand.",
     "A container for commands that tell what becomes of locks.",
     {.subcommands = kLockSubcommands}},
};

}  // namespace

std::span<const CommandRow> lock_rows() {
  return kLockRows;
}

}  // namespace latchkey::locks
