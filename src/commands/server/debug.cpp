// DEBUG: subcommands for tests of servers and clients, not for users.
#include "commands/server/debug.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/time_units.h"
#include "commands/groups.h"
#include "server/command/help.h"
#include "server/config/config_parse.h"
#include "server/expiry.h"
#include "server/observe/memory.h"
#include "server/process/shutdown.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void debug_sleep(CommandContext& ctx) {
  const double seconds = std::strtod(std::string(ctx.args[kFirstArgument]).c_str(), nullptr);
  if (seconds > 0) {
    timespec pause{};
    pause.tv_sec = static_cast<time_t>(seconds);
    pause.tv_nsec =
        static_cast<long>((seconds - static_cast<double>(pause.tv_sec)) * base::kNsPerSecond);
    nanosleep(&pause, nullptr);
  }
  ctx.reply.ok();
}

void debug_set_active_expire(CommandContext& ctx) {
  ctx.server.expiry().enable(is_on(ctx.args[kFirstArgument]));
  ctx.reply.ok();
}

void debug_set_allow_access_expired(CommandContext& ctx) {
  ctx.server.expiry().show_expired(is_on(ctx.args[kFirstArgument]));
  ctx.reply.ok();
}

void debug_pause_cron(CommandContext& ctx) {
  if (is_on(ctx.args[kFirstArgument])) {
    ctx.server.pause_ticking();
  } else {
    ctx.server.start_ticking();
  }
  ctx.reply.ok();
}

void debug_log(CommandContext& ctx) {
  ctx.server.log().warning("DEBUG LOG: " + std::string(ctx.args[kFirstArgument]));
  ctx.reply.ok();
}

void debug_error(CommandContext& ctx) {
  const std::string_view text = ctx.args[kFirstArgument];
  const uint64_t errors = ctx.reply.error_count();
  // ReplyBuilder::error() adds no dash before a text that begins with one, so it is added here.
  ctx.reply.error(text.starts_with('-') ? "-" + std::string(text) : std::string(text));
  // It was asked for, and does not count as one.
  ctx.reply.forget_errors_since(errors);
}

void debug_structsize(CommandContext& ctx) {
  const auto part = [](std::string_view name, size_t bytes) {
    return std::string(name) + ":" + std::to_string(bytes) + " ";
  };
  ctx.reply.bulk(part("bits", sizeof(void*) * 8) + part("entry", sizeof(store::Entry)) +
                 part("deadline", sizeof(store::DeadlineNode)) + part("blob", sizeof(base::Blob)) +
                 part("keyspace", sizeof(store::Keyspace)) + part("client", sizeof(Client)));
}

void debug_reply_copy_avoidance(CommandContext& ctx) {
  ctx.server.buffer_pool().copies_all = !is_on(ctx.args[kFirstArgument]);
  ctx.reply.ok();
}

void debug_quicklist_packed_threshold(CommandContext& ctx) {
  constexpr uint64_t kMax = (uint64_t{1} << 32) - (1 << 20);
  const auto bytes = parse_memory(ctx.args[kFirstArgument]);
  if (!bytes || *bytes > kMax) {
    return ctx.reply.error(
        "ERR argument must be a memory value bigger than 1 and smaller than 4gb");
  }
  ctx.server.debug_settings().quicklist_packed_threshold = *bytes;
  ctx.server.apply_settings();
  ctx.reply.ok();
}

void debug_set_disable_deny_scripts(CommandContext& ctx) {
  ctx.server.debug_settings().scripts_may_debug = is_on(ctx.args[kFirstArgument]);
  ctx.reply.ok();
}

void debug_client_enforce_reply_list(CommandContext& ctx) {
  ctx.server.debug_settings().enforce_reply_list = is_on(ctx.args[kFirstArgument]);
  ctx.reply.ok();
}

// The client of a master is closed before the next master is asked, so that nothing is to be tried.
void debug_force_free_primary_async(CommandContext& ctx) {
  ctx.reply.ok();
}

void debug_restart(CommandContext& ctx) {
  int64_t delay_ms = 0;
  if (ctx.args.size() > kFirstArgument &&
      !ctx.read_int64_in(ctx.args[kFirstArgument], 0, INT32_MAX, &delay_ms))
    return;
  Server& server = ctx.server;
  if (!server.config().file().empty()) {
    if (const auto rewritten = server.config().rewrite(); !rewritten)
      return ctx.reply.error("ERR The configuration cannot be written: " + rewritten.error());
  }
  // Without kShutdownFailover it does not wait.
  if (const auto outcome = server.shutdown().request(kShutdownNow); !outcome)
    return ctx.reply.error(outcome.error());
  server.shutdown().restart_after(delay_ms);
}

void debug_config_rewrite_force_all(CommandContext& ctx) {
  if (const auto rewritten = ctx.server.config().rewrite(/*everything=*/true); !rewritten)
    return ctx.reply.error("ERR CONFIG-REWRITE-FORCE-ALL failed: " + rewritten.error());
  ctx.reply.ok();
}

// A connection's reply buffer exists only while it has contents and is never resized in the
// background, so RESIZING has nothing to switch off, and there is no peak to reset.
void debug_replybuffer(CommandContext& ctx) {
  if (is_word(ctx.args[kFirstArgument], "RESIZING")) return ctx.reply.ok();
  ctx.reply.error("ERR reply buffers of this server have neither a fixed size nor a peak to reset");
}

void debug_mallctl(CommandContext& ctx) {
  const std::string name(ctx.args[kFirstArgument]);
  std::optional<uint64_t> wanted;
  if (ctx.args.size() > kFirstArgument + 1) {
    int64_t number = 0;
    if (!ctx.read_int64(ctx.args[kFirstArgument + 1], &number)) return;
    wanted = static_cast<uint64_t>(number);
  }
  uint64_t value = 0;
  const int error = allocator_number(name, wanted, &value);
  if (error != 0) return ctx.reply.error("ERR " + std::string(std::strerror(error)));
  ctx.reply.integer(static_cast<int64_t>(value));
}

void debug_mallctl_string(CommandContext& ctx) {
  if (!is_word(ctx.args[kFirstArgument + 1], "VOID"))
    return ctx.reply.error(
        "ERR only VOID is possible, for names that stand for something to be done");
  uint64_t none = 0;
  const int error = allocator_number(std::string(ctx.args[kFirstArgument]), {}, &none);
  if (error != 0) return ctx.reply.error("ERR " + std::string(std::strerror(error)));
  ctx.reply.ok();
}

// Tables grow and shrink by one bucket with each key, which cannot be disabled.
void debug_dict_resizing(CommandContext& ctx) {
  if (is_on(ctx.args[kFirstArgument])) return ctx.reply.ok();
  ctx.reply.error("ERR hash tables of this server cannot be kept from resizing");
}

// --- Crashes ------------------------------------------------------------------------------------

void debug_assert(CommandContext&) {
  base::assertion_failed("1 == 2", __FILE__, __LINE__);
}

void debug_panic(CommandContext& ctx) {
  ctx.server.panic("Panic called at Unixtime " +
                       std::to_string(ctx.server.clock().wall_us() / base::kUsPerSecond),
                   __FILE__, __LINE__);
}

void debug_segfault(CommandContext& ctx) {
  void* page = mmap(nullptr, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(page) = 'x';
  ctx.reply.ok();
}

void debug_oom(CommandContext& ctx) {
  constexpr size_t kTooMuch = std::numeric_limits<size_t>::max() / 4;
  const std::string text =
      "Redis aborting for OUT OF MEMORY. Allocating " + std::to_string(kTooMuch) + " bytes!";
  ctx.server.log().warning("Out Of Memory allocating " + std::to_string(kTooMuch) + " bytes!");
  ctx.server.panic(text, __FILE__, __LINE__);
}

void debug_leak(CommandContext& ctx) {
  // Leaked on purpose; volatile, so that the compiler does not remove the allocation.
  std::string* volatile leaked = new std::string(ctx.args[kFirstArgument]);
  static_cast<void>(leaked);
  ctx.reply.ok();
}

constexpr std::string_view kHelp[] = {
    "ALLOCSIZE-SLOTS-ASSERT <0|1>",
    "    Have a wrong number of keys in a slot end the server, counting all keys after each call.",
    "ASSERT",
    "    Die of a failed assertion.",
    "CHANGE-REPL-ID",
    "    Give the server another replication id.",
    "CLIENT-ENFORCE-REPLY-LIST <0|1>",
    "    Close clients that have not logged in when they are sent a reply.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    Like CONFIG REWRITE, and settings that are as by default are written too.",
    "DIGEST",
    "    Hash the whole dataset; equal datasets have equal digests.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Hash the value of each key.",
    "DICT-RESIZING <0|1>",
    "    Let hash tables resize; they cannot be kept from it here.",
    "ERROR <string>",
    "    Reply with an error of this text.",
    "FORCE-FREE-PRIMARY-ASYNC <0|1>",
    "    Free the client of a master later when it is left; here it always goes at once.",
    "HTSTATS <dbid> [full]",
    "    Describe the hash table of a database.",
    "HTSTATS-KEY <key> [full]",
    "    Describe the hash table of a value.",
    "LEAK <string>",
    "    Allocate a copy of the string and forget it.",
    "KEYSIZES-HIST-ASSERT <0|1>",
    "    Have a wrong histogram of key sizes end the server, looking at all keys after each call.",
    "LISTPACK <key>",
    "    Print the listpack that a value is kept in to standard output.",
    "LOG <message>",
    "    Write a line to the log.",
    "MALLCTL <name> [<value>]",
    "    Tell a number that the allocator knows by that name, and set it.",
    "MALLCTL-STR <name> VOID",
    "    Have the allocator do what it knows by that name.",
    "OOM",
    "    Die as if memory had run out.",
    "PANIC",
    "    Die of a panic.",
    "PAUSE-CRON <0|1>",
    "    Stop the server's periodic work, or go on with it.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> keys named <prefix>:<number> ('key' without a prefix) that",
    "    hold value:<number>, cut or filled up with zeros to <size> bytes.",
    "PROTOCOL <type>",
    "    Reply with a value of a type: string, integer, double, bignum, null,",
    "    array, set, map, attrib, push, verbatim, true, false.",
    "QUICKLIST <key> [<0|1>]",
    "    Print the nodes of a list to standard output, and its elements with 1.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    From what size on a list element gets a node of its own; 0: as usual.",
    "REPLY-COPY-AVOIDANCE <0|1>",
    "    Whether long values are sent without being copied.",
    "REPLYBUFFER PEAK-RESET-TIME <NEVER||RESET|time>",
    "    Refused: reply buffers hold what is to be sent and no more.",
    "REPLYBUFFER RESIZING <0|1>",
    "    Let idle clients' reply buffers be resized; they never are here.",
    "SDSLEN <key>",
    "    Tell the bytes that a key and its string value take.",
    "RESTART [<milliseconds>]",
    "    Write the configuration, shut down, and begin anew as long after that.",
    "SEGFAULT",
    "    Die of a write to memory that cannot be written.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys whose time has come go before anybody asks for them.",
    "SET-ALLOW-ACCESS-EXPIRED <0|1>",
    "    Whether keys and fields of hashes stay and can be read after their time has come.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Whether scripts may call DEBUG, CLIENT LIST and CLIENT INFO.",
    "SLEEP <seconds>",
    "    Do nothing at all for a while.",
    "STRUCTSIZE",
    "    Tell the sizes of the server's main structures.",
};

void debug_help(CommandContext& ctx) {
  std::vector<std::string> summaries;
  for (const DebugSubcommand& more : ctx.server.debug_subcommands())
    summaries.push_back("    " + std::string(more.summary));
  std::vector<std::string_view> lines(std::begin(kHelp), std::end(kHelp));
  for (size_t i = 0; i < summaries.size(); ++i) {
    lines.push_back(ctx.server.debug_subcommands()[i].usage);
    lines.push_back(summaries[i]);
  }
  reply_help(ctx, lines);
}

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

constexpr DebugSubcommand kSubcommands[] = {
    {"ALLOCSIZE-SLOTS-ASSERT", 1, 1, debug_allocsize_slots_assert},
    {"ASSERT", 0, 0, debug_assert},
    {"CHANGE-REPL-ID", 0, 0, debug_change_replication_id},
    {"CLIENT-ENFORCE-REPLY-LIST", 1, 1, debug_client_enforce_reply_list},
    {"CONFIG-REWRITE-FORCE-ALL", 0, 0, debug_config_rewrite_force_all},
    {"DICT-RESIZING", 1, 1, debug_dict_resizing},
    {"DIGEST", 0, 0, debug_digest},
    {"DIGEST-VALUE", 0, kAnyNumber, debug_digest_value},
    {"ERROR", 1, 1, debug_error},
    {"FORCE-FREE-PRIMARY-ASYNC", 1, 1, debug_force_free_primary_async},
    {"HELP", 0, 0, debug_help},
    {"HTSTATS", 1, 2, debug_htstats},
    {"HTSTATS-KEY", 1, 2, debug_htstats_key},
    {"LEAK", 1, 1, debug_leak},
    {"KEYSIZES-HIST-ASSERT", 1, 1, debug_keysizes_hist_assert},
    {"LISTPACK", 1, 1, debug_listpack},
    {"LOG", 1, 1, debug_log},
    {"MALLCTL", 1, 2, debug_mallctl},
    {"MALLCTL-STR", 2, 2, debug_mallctl_string},
    {"OOM", 0, 0, debug_oom},
    {"PANIC", 0, 0, debug_panic},
    {"PAUSE-CRON", 1, 1, debug_pause_cron},
    {"POPULATE", 1, 3, debug_populate},
    {"PROTOCOL", 1, 1, debug_protocol},
    {"QUICKLIST", 1, 2, debug_quicklist},
    {"QUICKLIST-PACKED-THRESHOLD", 1, 1, debug_quicklist_packed_threshold},
    {"REPLY-COPY-AVOIDANCE", 1, 1, debug_reply_copy_avoidance},
    {"REPLYBUFFER", 2, 2, debug_replybuffer},
    {"SDSLEN", 1, 1, debug_sdslen},
    {"RESTART", 0, 1, debug_restart},
    {"SEGFAULT", 0, 0, debug_segfault},
    {"SET-ACTIVE-EXPIRE", 1, 1, debug_set_active_expire},
    {"SET-ALLOW-ACCESS-EXPIRED", 1, 1, debug_set_allow_access_expired},
    {"SET-DISABLE-DENY-SCRIPTS", 1, 1, debug_set_disable_deny_scripts},
    {"SLEEP", 1, 1, debug_sleep},
    {"STRUCTSIZE", 0, 0, debug_structsize},
};

// The handler of the subcommand with that name and that number of words; null when there is none.
Handler find_subcommand(std::span<const DebugSubcommand> subcommands, std::string_view name,
                        size_t words) {
  for (const DebugSubcommand& subcommand : subcommands) {
    if (!is_word(name, subcommand.name)) continue;
    return words < subcommand.least || words > subcommand.most ? nullptr : subcommand.handler;
  }
  return nullptr;
}

// Subcommands that act on the process or its files, of which a space has none.
constexpr std::string_view kOfProcess[] = {
    "ASSERT",
    "CONFIG-REWRITE-FORCE-ALL",
    "CRASH-AND-RECOVER",
    "LEAK",
    "LOADAOF",
    "MALLCTL",
    "MALLCTL-STR",
    "OOM",
    "PANIC",
    "RESTART",
    "SEGFAULT",
};

void debug(CommandContext& ctx) {
  const bool of_process =
      std::any_of(std::begin(kOfProcess), std::end(kOfProcess),
                  [&](std::string_view name) { return is_word(ctx.args[1], name); });
  if (of_process && (ctx.server.state() & kStateSpace) != 0)
    return ctx.reply.error("ERR DEBUG " + std::string(ctx.args[1]) +
                           " acts on the whole process, and is not available in a space");
  const size_t words = ctx.args.size() - kFirstArgument;
  Handler handler = find_subcommand(kSubcommands, ctx.args[1], words);
  if (handler == nullptr)
    handler = find_subcommand(ctx.server.debug_subcommands(), ctx.args[1], words);
  if (handler != nullptr) return handler(ctx);
  wrong_subcommand(ctx);
}

constexpr CommandRow kDebugRows[] = {
    {"DEBUG",
     debug,
     "_...",
     kAdmin | kNoScript | kLoading | kStale | kProtected | kMayTakeLong,
     {},
     0,
     Group::kServer,
     "1.0.0",
     "Depends on subcommand.",
     "A container for debugging commands.",
     {.system = true}},
};

}  // namespace

bool is_on(std::string_view argument) {
  return std::atoi(std::string(argument).c_str()) != 0;
}

std::span<const CommandRow> debug_rows() {
  return kDebugRows;
}

}  // namespace latchkey::commands
