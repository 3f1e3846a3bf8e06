// MEMORY: reports on the server's memory usage.
#include "server/observe/memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/command/slot_gate.h"
#include "server/emulation/info_fields.h"
#include "server/observe/info.h"
#include "server/observe/memory_report.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Keyspace;

namespace {

void memory_usage(CommandContext& ctx) {
  std::string_view samples;
  for (ArgReader options(ctx.args, 3); options.more();) {
    if (!options.word("SAMPLES", &samples)) return ctx.syntax_error();
    int64_t count;
    if (!ctx.read_int64_in(samples, INT64_MIN, INT64_MAX, &count)) return;
    if (count < 0) return ctx.syntax_error();
  }
  const KeyRef ref = ctx.db.find(ctx.args[2], Keyspace::kPeek);
  if (!ref) return ctx.reply.null();
  ctx.reply.integer(static_cast<int64_t>(ref->memory_usage()));
}

// A reply of names and values whose number is known only at the end.
class Figures {
 public:
  explicit Figures(CommandContext& ctx)
      : reply_(ctx.reply), edition_(ctx.server.edition()), start_(reply_.later()) {}
  ~Figures() { reply_.map_later(start_, count_); }
  Figures(const Figures&) = delete;
  Figures& operator=(const Figures&) = delete;

  void add(std::string_view name, size_t value) { add_signed(name, static_cast<int64_t>(value)); }
  void add_signed(std::string_view name, int64_t value) {
    if (begin(name)) reply_.integer(value);
  }
  void add_ratio(std::string_view name, double value) {
    if (begin(name)) reply_.number(value);
  }
  void add_difference(std::string_view name, size_t left, size_t right) {
    add_signed(name, static_cast<int64_t>(left) - static_cast<int64_t>(right));
  }
  void add_database(const DatabaseMemory& database) {
    begin("db." + std::to_string(database.index));
    reply_.map(2);
    reply_.bulk("overhead.hashtable.main");
    reply_.integer(static_cast<int64_t>(database.table_bytes));
    reply_.bulk("overhead.hashtable.expires");
    reply_.integer(static_cast<int64_t>(database.deadlines_bytes));
  }

 private:
  // False when the release has no such figure.
  bool begin(std::string_view name) {
    if (!has_memory_figure(edition_, name)) return false;
    reply_.bulk(name);
    ++count_;
    return true;
  }

  resp::ReplyBuilder& reply_;
  const Edition& edition_;
  resp::ReplyBuilder::Later start_;
  size_t count_ = 0;
};

void memory_stats(CommandContext& ctx) {
  const MemoryReport memory = measure_memory(ctx.server);
  const AllocatorFigures& allocator = memory.allocator;
  Figures figures(ctx);
  figures.add("peak.allocated", memory.peak);
  figures.add("total.allocated", memory.used);
  figures.add("startup.allocated", memory.startup);
  const ReplicationFigures replication = ctx.server.figures().replication();
  figures.add("replication.backlog", replication.backlog_memory);
  figures.add("replica.fullsync.buffer", replication.full_sync_buffer);
  figures.add("clients.slaves", replication.clients_memory);
  figures.add("clients.normal", memory.clients - replication.clients_memory);
  const SlotGate* const node = ctx.server.slot_gate();
  figures.add("cluster.links", node != nullptr ? node->link_figures().bytes : 0);
  figures.add("aof.buffer", ctx.server.figures().persistence().aof.buffer_memory);
  figures.add("lua.caches", memory.scripts.scripts_bytes);
  figures.add("functions.caches", memory.scripts.functions_bytes);
  figures.add("script.VMs", memory.scripts.all_interpreter_bytes());
  size_t tables = 0;
  for (const DatabaseMemory& database : memory.databases) {
    figures.add_database(database);
    tables += database.table_bytes;
  }
  figures.add("overhead.db.hashtable.lut", tables);
  // Tables grow by one bucket at a time, never by a second table beside the first.
  figures.add("overhead.db.hashtable.rehashing", 0);
  figures.add("overhead.total", memory.overhead());
  figures.add("db.dict.rehashing.count", 0);
  figures.add("keys.count", memory.keys);
  const size_t since_start = memory.used > memory.startup ? memory.used - memory.startup : 0;
  figures.add("keys.bytes-per-key", memory.keys == 0 ? 0 : since_start / memory.keys);
  figures.add("dataset.bytes", memory.dataset());
  figures.add_ratio("dataset.percentage", memory.dataset_percent());
  figures.add_ratio("peak.percentage", memory.peak_percent());
  figures.add("allocator.allocated", allocator.allocated);
  figures.add("allocator.active", allocator.active);
  figures.add("allocator.resident", allocator.resident);
  figures.add("allocator.muzzy", allocator.muzzy);
  figures.add_ratio("allocator-fragmentation.ratio", memory.allocator_fragmentation());
  figures.add_difference("allocator-fragmentation.bytes", allocator.active, allocator.allocated);
  figures.add_ratio("allocator-rss.ratio", memory.allocator_resident_ratio());
  figures.add_difference("allocator-rss.bytes", allocator.resident, allocator.active);
  figures.add_ratio("rss-overhead.ratio", memory.resident_overhead_ratio());
  figures.add_difference("rss-overhead.bytes", memory.resident, allocator.resident);
  figures.add_ratio("fragmentation", memory.fragmentation());
  figures.add_difference("fragmentation.bytes", memory.resident, memory.used);
}

// Problems that an administrator should look into.
std::vector<std::string> memory_complaints(Server& server, const MemoryReport& memory) {
  constexpr double kHighPeakPercent = 150;
  constexpr double kHighRatio = 1.4;
  constexpr size_t kNegligible = 10 << 20;
  constexpr size_t kLargeClient = 200 << 10;
  std::vector<std::string> complaints;
  if (static_cast<double>(memory.peak) * 100 >
      kHighPeakPercent * static_cast<double>(memory.used)) {
    complaints.emplace_back("Peak memory: the server once used " + human_bytes(memory.peak) +
                            " and uses " + human_bytes(memory.used) + " now; of then " +
                            human_bytes(memory.resident) +
                            " are resident. MEMORY PURGE gives back pages that are empty.");
  }
  const auto wasteful = [](double ratio, size_t large, size_t small) {
    return ratio > kHighRatio && large > small + kNegligible;
  };
  if (wasteful(memory.allocator_fragmentation(), memory.allocator.active,
               memory.allocator.allocated)) {
    complaints.emplace_back("Fragmentation: pages of " + human_bytes(memory.allocator.active) +
                            " hold values of " + human_bytes(memory.allocator.allocated) +
                            ". The space between them fills as values of like sizes are written; "
                            "DEBUG RELOAD, or a restart, packs them anew.");
  }
  if (wasteful(memory.allocator_resident_ratio(), memory.allocator.resident,
               memory.allocator.active)) {
    complaints.emplace_back(
        "Allocator: of " + human_bytes(memory.allocator.resident) + " that are resident " +
        human_bytes(memory.allocator.resident - memory.allocator.active) +
        " hold nothing. MEMORY PURGE gives them back now, the allocator by and by; CONFIG SET "
        "jemalloc-bg-thread yes has it done in the background.");
  }
  if (wasteful(memory.resident_overhead_ratio(), memory.resident, memory.allocator.resident)) {
    complaints.emplace_back(
        "Process: " + human_bytes(memory.resident - memory.allocator.resident) +
        " are resident that the allocator knows nothing of, such as libraries and scripts. INFO "
        "memory shows those of scripts (used_memory_vm_total), which SCRIPT FLUSH frees.");
  }
  const size_t clients = std::max<size_t>(server.clients().size(), 1);
  if (memory.clients / clients > kLargeClient) {
    complaints.emplace_back(
        "Clients: the buffers of " + std::to_string(clients) + " take " +
        human_bytes(memory.clients) + ", " + human_bytes(memory.clients / clients) +
        " each. CLIENT LIST shows which do not read their replies (omem, tot-mem); CONFIG SET "
        "maxmemory-clients 5% disconnects those that use most.");
  }
  return complaints;
}

void memory_doctor(CommandContext& ctx) {
  constexpr size_t kTooLittle = 5 << 20;
  const MemoryReport memory = measure_memory(ctx.server);
  if (memory.used < kTooLittle) {
    return ctx.reply.verbatim(
        "txt", "There is too little data in this server for its figures to mean anything.\n");
  }
  const auto complaints = memory_complaints(ctx.server, memory);
  if (complaints.empty())
    return ctx.reply.verbatim("txt", "Nothing about this server's memory looks wrong.\n");
  std::string text = "Worth a look:\n\n";
  for (const std::string& complaint : complaints) text += " * " + complaint + "\n\n";
  ctx.reply.verbatim("txt", text);
}

void memory_malloc_stats(CommandContext& ctx) {
  const std::string report = allocator_report();
  if (report.empty()) return ctx.reply.bulk("Stats not supported for the current allocator");
  ctx.reply.verbatim("txt", report);
}

void memory_purge(CommandContext& ctx) {
  if (!purge_allocator()) return ctx.reply.error("ERR Error purging dirty pages");
  ctx.reply.ok();
}

void memory_help(CommandContext& ctx) {
  reply_help(ctx,
             {
                 "DOCTOR",
                 "    Tell what about the use of memory is worth a look.",
                 "MALLOC-STATS",
                 "    Show the allocator's own statistics.",
                 "PURGE",
                 "    Give empty pages back to the system.",
                 "STATS",
                 "    Tell what memory is spent on.",
                 "USAGE <key> [SAMPLES <count>]",
                 "    Count the bytes that a <key> and its value take. Of the elements of large",
                 "    values <count> are measured (5 by default, all for 0).",
             });
}

constexpr CommandRow kMemorySubcommands[] = {
    {"DOCTOR",
     memory_doctor,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "O(1)",
     "Outputs a memory problems report.",
     {.tips = "nondeterministic_output request_policy:all_shards response_policy:special"}},
    help_row(memory_help, 0, Group::kServer, "4.0.0"),
    {"MALLOC-STATS",
     memory_malloc_stats,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "Depends on how much memory is allocated, could be slow",
     "Returns the allocator statistics.",
     {.tips = "nondeterministic_output request_policy:all_shards response_policy:special"}},
    {"PURGE",
     memory_purge,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "Depends on how much memory is allocated, could be slow",
     "Asks the allocator to release memory.",
     {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {"STATS",
     memory_stats,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "O(1)",
     "Returns details about memory usage.",
     {.tips = "nondeterministic_output request_policy:all_shards response_policy:special"}},
    {"USAGE", memory_usage, "key [SAMPLES count]", kReadOnly, keys(2).ro(), 0, Group::kServer,
     "4.0.0", "O(N) where N is the number of samples.", "Estimates the memory usage of a key."},
};

constexpr CommandRow kMemoryRows[] = {
    {"MEMORY",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "4.0.0",
     "Depends on subcommand.",
     "A container for memory diagnostics commands.",
     {.subcommands = kMemorySubcommands}},
};

}  // namespace

std::span<const CommandRow> memory_rows() {
  return kMemoryRows;
}

}  // namespace latchkey::commands
