// HOTKEYS: which keys cost most while it is active.
#include <limits>
#include <string>
#include <utility>

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/command/help.h"
#include "server/command/slot_gate.h"
#include "server/observe/hot_keys.h"
#include "server/server.h"
#include "store/key_slot.h"

namespace latchkey::commands {

using namespace server;

namespace {

// --- START --------------------------------------------------------------------------------------

// Reads the metrics that follow METRICS and their number. Those that later versions may have are
// passed over, as long as there is one that this one has.
bool read_metrics(CommandContext& ctx, ArgReader& words, HotKeys::Options* options) {
  int64_t count = 0;
  if (!ctx.read_int64_in(words.next(), 1, 2, &count, "ERR METRICS count must be > 0 and <= 2"))
    return false;
  int64_t given = 0;
  for (; given < count && words.more(); ++given) {
    const bool cpu = words.word("CPU");
    if (!cpu && !words.word("NET")) {
      words.next();
      continue;
    }
    if (std::exchange(cpu ? options->cpu : options->network, true)) {
      return ctx.refuse(cpu ? "ERR METRICS CPU defined more than once!"
                            : "ERR METRICS NET defined more than once!");
    }
  }
  if (given < count)
    return ctx.refuse("ERR METRICS count does not match number of metric types provided");
  if (!options->cpu && !options->network)
    return ctx.refuse("ERR METRICS no valid metrics passed. Supported: CPU|NET");
  return true;
}

bool read_slots(CommandContext& ctx, ArgReader& words, std::string_view text,
                HotKeys::Options* options) {
  if (!ctx.server.in_cluster())
    return ctx.refuse("ERR SLOTS parameter cannot be used in non-cluster mode");
  if (!options->slots.empty()) return ctx.refuse("ERR SLOTS parameter already specified");
  int64_t count = 0;
  if (!ctx.read_int64_in(text, 1, store::kKeySlots, &count,
                         "ERR SLOTS count must be between 1 and 16384"))
    return false;
  if (words.left() < static_cast<size_t>(count))
    return ctx.refuse("ERR not enough slot numbers provided");
  options->slots.assign(store::kKeySlots, false);
  for (; count > 0; --count) {
    int64_t slot = 0;
    if (!ctx.read_int64_in(words.next(), 0, store::kKeySlots - 1, &slot,
                           "ERR Invalid or out of range slot"))
      return false;
    const auto place = static_cast<size_t>(slot);
    if (options->slots[place]) return ctx.refuse("ERR duplicate slot number");
    if (!ctx.server.slot_gate()->owns(static_cast<int>(slot)))
      return ctx.refuse("ERR slot " + std::to_string(slot) + " not handled by this node");
    options->slots[place] = true;
  }
  return true;
}

bool read_options(CommandContext& ctx, HotKeys::Options* options) {
  constexpr int64_t kMaxKeysTold = 64;
  constexpr int64_t kLongestS = 1'000'000;
  ArgReader words(ctx.args, 2);
  if (words.left() < 2 || !words.word("METRICS"))
    return ctx.refuse("ERR METRICS parameter is required");
  if (!read_metrics(ctx, words, options)) return false;
  while (words.more()) {
    std::string_view text;
    if (words.word("COUNT", &text)) {
      int64_t count = 0;
      if (!ctx.read_int64_in(text, 1, kMaxKeysTold, &count, "ERR COUNT must be between 1 and 64"))
        return false;
      options->count = static_cast<size_t>(count);
    } else if (words.word("DURATION", &text)) {
      if (!ctx.read_int64_in(text, 1, kLongestS, &options->duration_s,
                             "ERR DURATION must be between 1 and 1000000"))
        return false;
    } else if (words.word("SAMPLE", &text)) {
      if (!ctx.read_int64_in(text, 1, std::numeric_limits<int>::max(), &options->sample_ratio,
                             "ERR SAMPLE ratio must be positive"))
        return false;
    } else if (words.word("SLOTS", &text)) {
      if (!read_slots(ctx, words, text, options)) return false;
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

void hotkeys_start(CommandContext& ctx) {
  HotKeys& hot_keys = ctx.server.dispatcher().meters().hot_keys();
  if (hot_keys.is_active())
    return ctx.reply.error("ERR hotkey tracking session already in progress");
  HotKeys::Options options;
  if (!read_options(ctx, &options)) return;
  hot_keys.start(std::move(options));
  ctx.reply.ok();
}

// --- GET ----------------------------------------------------------------------------------------

// Replies with the ranges of the slots: a slot that stands alone as one number.
void reply_slots(CommandContext& ctx, const HotKeys::Options& options) {
  const SlotGate* gate = ctx.server.in_cluster() ? ctx.server.slot_gate() : nullptr;
  const auto is_wanted = [&](int slot) {
    if (!options.slots.empty()) return static_cast<bool>(options.slots[static_cast<size_t>(slot)]);
    return gate == nullptr || gate->owns(slot);
  };
  const auto later = ctx.reply.later();
  size_t ranges = 0;
  for (int first = 0; first < store::kKeySlots; ++first) {
    if (!is_wanted(first)) continue;
    int last = first;
    while (last + 1 < store::kKeySlots && is_wanted(last + 1)) ++last;
    ctx.reply.array(last == first ? 1 : 2);
    ctx.reply.integer(first);
    if (last != first) ctx.reply.integer(last);
    ++ranges;
    first = last;
  }
  ctx.reply.array_later(later, ranges);
}

void reply_ranking(CommandContext& ctx, std::string_view name, const HotKeys::Ranking& ranking) {
  ctx.reply.bulk(name);
  ctx.reply.array(ranking.size() * 2);
  for (const auto& [key, sum] : ranking) {
    ctx.reply.bulk(key);
    ctx.reply.integer(static_cast<int64_t>(sum));
  }
}

void hotkeys_get(CommandContext& ctx) {
  HotKeys& hot_keys = ctx.server.dispatcher().meters().hot_keys();
  const bool active = hot_keys.is_active();
  if (hot_keys.is_empty()) return ctx.reply.null();
  const HotKeys::Options& options = hot_keys.options();
  const bool of_slots = !options.slots.empty();
  const bool sampled = of_slots && options.sample_ratio > 1;
  size_t fields = 0;
  const auto name = [&](std::string_view text) {
    ctx.reply.bulk(text);
    ++fields;
  };
  const auto number = [&](std::string_view text, int64_t value) {
    name(text);
    ctx.reply.integer(value);
  };
  const auto time = [&](std::string_view text, const HotKeys::Cost& cost) {
    number(text, ctx.server.cycle_clock().to_us(cost.ticks));
  };
  const auto bytes = [&](std::string_view text, const HotKeys::Cost& cost) {
    number(text, static_cast<int64_t>(cost.bytes));
  };
  ctx.reply.array(1);
  const auto later = ctx.reply.later();
  number("tracking-active", active ? 1 : 0);
  number("sample-ratio", options.sample_ratio);
  name("selected-slots");
  reply_slots(ctx, options);
  if (sampled) time("sampled-commands-selected-slots-us", hot_keys.sampled());
  if (of_slots) time("all-commands-selected-slots-us", hot_keys.in_slots());
  time("all-commands-all-slots-us", hot_keys.all());
  if (sampled) bytes("net-bytes-sampled-commands-selected-slots", hot_keys.sampled());
  if (of_slots) bytes("net-bytes-all-commands-selected-slots", hot_keys.in_slots());
  bytes("net-bytes-all-commands-all-slots", hot_keys.all());
  number("collection-start-time-unix-ms", ctx.server.shown_ms(hot_keys.started_ms()));
  number("collection-duration-ms", hot_keys.lasted_ms());
  if (options.cpu) {
    const HotKeys::ProcessTimes times = hot_keys.process_times();
    number("total-cpu-time-user-ms", times.user_ms);
    number("total-cpu-time-sys-ms", times.system_ms);
  }
  if (options.network) bytes("total-net-bytes", hot_keys.sampled());
  if (options.cpu) {
    ++fields;
    reply_ranking(ctx, "by-cpu-time-us", hot_keys.by_cpu());
  }
  if (options.network) {
    ++fields;
    reply_ranking(ctx, "by-net-bytes", hot_keys.by_network());
  }
  ctx.reply.map_later(later, fields);
}

// --- The others ---------------------------------------------------------------------------------

void hotkeys_stop(CommandContext& ctx) {
  ctx.server.dispatcher().meters().hot_keys().stop() ? ctx.reply.ok() : ctx.reply.null();
}

void hotkeys_reset(CommandContext& ctx) {
  HotKeys& hot_keys = ctx.server.dispatcher().meters().hot_keys();
  if (hot_keys.is_active())
    return ctx.reply.error("ERR hotkey tracking session in progress, stop tracking first");
  hot_keys.reset();
  ctx.reply.ok();
}

void hotkeys_help(CommandContext& ctx) {
  reply_help(ctx,
             {
                 "GET",
                 "    Tell the keys that have cost most since START.",
                 "RESET",
                 "    Forget what was counted.",
                 "START METRICS <count> [CPU] [NET] [COUNT <keys>] [DURATION <seconds>] "
                 "[SAMPLE <ratio>] [SLOTS <count> <slot> ...]",
                 "    Count what calls cost in time or bytes, one call of a ratio, by their keys.",
                 "STOP",
                 "    Count no longer.",
             });
}

constexpr CommandRow kHotKeysSubcommands[] = {
    {"GET",
     hotkeys_get,
     "",
     kAdmin | kNoScript,
     {},
     0,
     Group::kServer,
     "8.6.0",
     "O(K) where K is the number of hotkeys returned.",
     "Returns lists of top K hotkeys depending on metrics chosen in HOTKEYS START command.",
     {.tips = "nondeterministic_output request_policy:special response_policy:special"}},
    help_row(hotkeys_help, 0, Group::kServer, "8.6.1"),
    {"RESET",
     hotkeys_reset,
     "",
     kAdmin | kNoScript,
     {},
     0,
     Group::kServer,
     "8.6.0",
     "O(1)",
     "Release the resources used for hotkey tracking.",
     {.tips = "request_policy:special"}},
    // METRICS is no option, but without it the handler says what is missing.
    {"START",
     hotkeys_start,
     "[METRICS metrics=count:integer [CPU] [NET]] [COUNT k:integer] [DURATION seconds] "
     "[SAMPLE ratio:integer] [SLOTS slots=count:integer slot:integer...]",
     kAdmin | kNoScript,
     {},
     0,
     Group::kServer,
     "8.6.0",
     "O(1)",
     "Starts hotkeys tracking.",
     {.tips = "request_policy:special"}},
    {"STOP",
     hotkeys_stop,
     "",
     kAdmin | kNoScript,
     {},
     0,
     Group::kServer,
     "8.6.0",
     "O(1)",
     "Stops hotkeys tracking.",
     {.tips = "request_policy:special"}},
};

constexpr CommandRow kHotKeysRows[] = {
    {"HOTKEYS",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "8.6.0",
     "Depends on subcommand.",
     "A container for hotkeys tracking commands.",
     {.subcommands = kHotKeysSubcommands}},
};

}  // namespace

std::span<const CommandRow> hotkeys_rows() {
  return kHotKeysRows;
}

}  // namespace latchkey::commands
