// LATENCY DOCTOR, GRAPH, HISTOGRAM, HISTORY, LATEST, RESET, HELP.
#include <cstdint>
#include <utility>
#include <vector>

#include "base/latency_histogram.h"
#include "base/text/up_to_nul.h"
#include "base/time_units.h"
#include "commands/groups.h"
#include "commands/server/latency_report.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"
#include "server/command/help.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

void latency_doctor(CommandContext& ctx) {
  ctx.reply.verbatim("txt", diagnose_latency(ctx.server.latency_monitor(), ctx.server.settings()));
}

void latency_graph(CommandContext& ctx) {
  const std::string_view name = ctx.args[kFirstArgument];
  const LatencyEvent* event = ctx.server.latency_monitor().find(name);
  if (event == nullptr)
    return ctx.reply.error("ERR No samples available for event '" +
                           std::string(base::up_to_nul(name)) + "'");
  ctx.reply.verbatim("txt", draw_latency(name, *event, ctx.now_ms() / base::kMsPerSecond));
}

void latency_history(CommandContext& ctx) {
  const LatencyEvent* event = ctx.server.latency_monitor().find(ctx.args[kFirstArgument]);
  if (event == nullptr) return ctx.reply.empty_array();
  ctx.reply.array(event->samples.size());
  for (const LatencySample& sample : event->samples) {
    ctx.reply.array(2);
    ctx.reply.integer(sample.time_s);
    ctx.reply.integer(sample.latency_ms);
  }
}

void latency_latest(CommandContext& ctx) {
  const LatencyMonitor::Events& events = ctx.server.latency_monitor().events();
  const bool with_sums = ctx.server.edition().is_valkey_since({8, 1});
  ctx.reply.array(events.size());
  for (const auto& [name, event] : events) {
    ctx.reply.array(with_sums ? 6 : 4);
    ctx.reply.bulk(name);
    ctx.reply.integer(event.samples.back().time_s);
    ctx.reply.integer(event.samples.back().latency_ms);
    ctx.reply.integer(event.worst_ms);
    if (!with_sums) continue;
    ctx.reply.integer(event.sum_ms);
    ctx.reply.integer(event.count);
  }
}

void latency_reset(CommandContext& ctx) {
  LatencyMonitor& monitor = ctx.server.latency_monitor();
  const Arguments names = ctx.args.subspan(kFirstArgument);
  size_t count = names.empty() ? monitor.reset() : 0;
  for (const std::string_view name : names) count += monitor.reset(name);
  ctx.reply.integer(static_cast<int64_t>(count));
}

// --- Histograms ---------------------------------------------------------------------------------

// Counts the calls that took at most about 1, 2, 4, 8, ... microseconds, leaving out steps that add
// no call: pairs of the step's end in microseconds and the cumulative count.
std::vector<std::pair<uint64_t, uint64_t>> cumulated(const base::LatencyHistogram& histogram) {
  constexpr uint64_t kFirstStepNs = 1024;
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  uint64_t step_ns = kFirstStepNs;
  uint64_t seen = 0;
  histogram.for_each([&](uint64_t highest_ns, uint64_t count) {
    while (highest_ns > base::LatencyHistogram::highest_like(step_ns)) step_ns *= 2;
    const uint64_t end_us = base::LatencyHistogram::highest_like(step_ns) / base::kNsPerUs;
    seen += count;
    if (!steps.empty() && steps.back().first == end_us) {
      steps.back().second = seen;
    } else {
      steps.emplace_back(end_us, seen);
    }
  });
  return steps;
}

// Adds the command, if it was called, and its subcommands that were called.
void collect(const CommandTable& table, const Command& command,
             std::vector<const Command*>* called) {
  const Command* const used = table.used()[command.id].get();
  if (used != nullptr && used->stats.latency != nullptr) called->push_back(used);
  for (const Command* subcommand : command.subcommands) collect(table, *subcommand, called);
}

std::vector<const Command*> called_commands(const CommandTable& table, Arguments names) {
  std::vector<const Command*> called;
  if (names.empty()) {
    for (const Command* command : table.commands()) collect(table, *command, &called);
  }
  for (const std::string_view name : names) {
    if (const Command* command = table.find_full_name(name); command != nullptr)
      collect(table, *command, &called);
  }
  return called;
}

void latency_histogram(CommandContext& ctx) {
  const auto called = called_commands(ctx.server.commands(), ctx.args.subspan(kFirstArgument));
  ctx.reply.map(called.size());
  for (const Command* command : called) {
    const auto steps = cumulated(*command->stats.latency);
    ctx.reply.bulk(command->full_name);
    ctx.reply.map(2);
    ctx.reply.bulk("calls");
    ctx.reply.integer(static_cast<int64_t>(command->stats.latency->count()));
    ctx.reply.bulk("histogram_usec");
    ctx.reply.map(steps.size());
    for (const auto& [end_us, count] : steps) {
      ctx.reply.integer(static_cast<int64_t>(end_us));
      ctx.reply.integer(static_cast<int64_t>(count));
    }
  }
}

void latency_help(CommandContext& ctx) {
  reply_help(ctx, {
                      "DOCTOR",
                      "    Tell what took long, and what can be done about it.",
                      "GRAPH <event>",
                      "    Draw the samples of an event.",
                      "HISTORY <event>",
                      "    List the samples of an event: Unix time, milliseconds.",
                      "LATEST",
                      "    List all events: the latest sample, and the worst.",
                      "RESET [<event> ...]",
                      "    Forget the samples of these events, or of all.",
                      "HISTOGRAM [COMMAND ...]",
                      "    Tell how many calls of these commands, or of all, took no longer than",
                      "    so many microseconds.",
                  });
}

constexpr CommandRow kLatencySubcommands[] = {
    {"DOCTOR",
     latency_doctor,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Returns a human-readable latency analysis report.",
     {.tips = "nondeterministic_output request_policy:all_nodes response_policy:special"}},
    {"GRAPH",
     latency_graph,
     "event",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Returns a latency graph for an event.",
     {.tips = "nondeterministic_output request_policy:all_nodes response_policy:special"}},
    help_row(latency_help, 0, Group::kServer, "2.8.13"),
    {"HISTOGRAM",
     latency_histogram,
     "[command...]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "7.0.0",
     "O(N) where N is the number of commands with latency information being retrieved.",
     "Returns the cumulative distribution of latencies of a subset or all commands.",
     {.tips = "nondeterministic_output request_policy:all_nodes response_policy:special"}},
    {"HISTORY",
     latency_history,
     "event",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Returns timestamp-latency samples for an event.",
     {.tips = "nondeterministic_output request_policy:all_nodes response_policy:special"}},
    {"LATEST",
     latency_latest,
     "",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Returns the latest latency samples for all events.",
     {.tips = "nondeterministic_output request_policy:all_nodes response_policy:special"}},
    {"RESET",
     latency_reset,
     "[event...]",
     kAdmin | kNoScript | kLoading | kStale,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "O(1)",
     "Resets the latency data for one or more events.",
     {.tips = "request_policy:all_nodes response_policy:agg_sum"}},
};

constexpr CommandRow kLatencyRows[] = {
    {"LATENCY",
     nullptr,
     "",
     0,
     {},
     0,
     Group::kServer,
     "2.8.13",
     "Depends on subcommand.",
     "A container for latency diagnostics commands.",
     {.subcommands = kLatencySubcommands}},
};

}  // namespace

std::span<const CommandRow> latency_rows() {
  return kLatencyRows;
}

}  // namespace latchkey::commands
