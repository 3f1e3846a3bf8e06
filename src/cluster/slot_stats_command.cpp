// CLUSTER SLOT-STATS: what is in the slots of this node's shard, and what their requests have cost.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "cluster/cluster.h"
#include "cluster/slot_commands.h"
#include "cluster/slot_keys.h"
#include "server/command/command_context.h"
#include "server/server.h"
#include "store/key_slot.h"

namespace latchkey::cluster {

using namespace server;

namespace {

enum class Metric : uint8_t { kKeys, kMemory, kCpu, kBytesIn, kBytesOut };

// What is asked of the slots, with the figures that settings allow.
class Report {
 public:
  Report(CommandContext& ctx, Cluster& cluster)
      : ctx_(ctx),
        stats_(cluster.slot_stats()),
        enabled_(ctx.server.settings().cluster_slot_stats_enabled) {
    if (has(Metric::kMemory)) memory_ = stats_.measure_memory();
  }

  bool has(Metric metric) const {
    switch (metric) {
      case Metric::kKeys:
        return true;
      case Metric::kMemory:
        return (enabled_ & kSlotStatsMemory) != 0;
      case Metric::kCpu:
        return (enabled_ & kSlotStatsCpu) != 0;
      case Metric::kBytesIn:
      case Metric::kBytesOut:
        return (enabled_ & kSlotStatsNetwork) != 0;
    }
    return false;
  }

  uint64_t figure(int slot, Metric metric) const {
    const SlotStats::Figures& figures = stats_.of(slot);
    switch (metric) {
      case Metric::kKeys:
        return keys_in_slot(ctx_.server, slot);
      case Metric::kMemory:
        return memory_[static_cast<size_t>(slot)];
      case Metric::kCpu:
        return static_cast<uint64_t>(ctx_.server.cycle_clock().to_us(figures.ticks));
      case Metric::kBytesIn:
        return figures.bytes_in;
      case Metric::kBytesOut:
        return figures.bytes_out;
    }
    return 0;
  }

  void reply(const std::vector<int>& slots) const {
    ctx_.reply.array(slots.size());
    for (const int slot : slots) reply(slot);
  }

 private:
  struct Name {
    std::string_view text;
    Metric metric;
  };

 public:
  static constexpr Name kNames[] = {{"key-count", Metric::kKeys},
                                    {"memory-bytes", Metric::kMemory},
                                    {"cpu-usec", Metric::kCpu},
                                    {"network-bytes-in", Metric::kBytesIn},
                                    {"network-bytes-out", Metric::kBytesOut}};

 private:
  void reply(int slot) const {
    ctx_.reply.array(2);
    ctx_.reply.integer(slot);
    ctx_.reply.map(static_cast<size_t>(std::count_if(
        std::begin(kNames), std::end(kNames), [&](const Name& name) { return has(name.metric); })));
    for (const Name& name : kNames) {
      if (!has(name.metric)) continue;
      ctx_.reply.bulk(name.text);
      ctx_.reply.integer(static_cast<int64_t>(figure(slot, name.metric)));
    }
  }

  CommandContext& ctx_;
  const SlotStats& stats_;
  unsigned enabled_;
  std::vector<uint64_t> memory_;
};

std::vector<int> own_slots(const Cluster& cluster, int first, int last) {
  std::vector<int> slots;
  const Node* master = cluster.shard_master();
  if (master == nullptr) return slots;
  master->slots.for_each([&](int slot) {
    if (slot >= first && slot <= last) slots.push_back(slot);
  });
  return slots;
}

void reply_range(CommandContext& ctx, Cluster& cluster) {
  int first = 0;
  int last = 0;
  if (!parse_slot(ctx.args[3], &first) || !parse_slot(ctx.args[4], &last))
    return ctx.reply.error("ERR Invalid or out of range slot");
  if (first > last) {
    return ctx.reply.error("ERR Start slot number " + std::to_string(first) +
                           " is greater than end slot number " + std::to_string(last));
  }
  Report(ctx, cluster).reply(own_slots(cluster, first, last));
}

struct Order {
  Metric metric = Metric::kKeys;
  int64_t limit = store::kKeySlots;
  bool descending = true;
};

bool read_order(CommandContext& ctx, const Report& report, Order* order) {
  const auto named =
      std::find_if(std::begin(Report::kNames), std::end(Report::kNames), [&](const auto& name) {
        return base::equal_ignoring_case(ctx.args[3], name.text) && report.has(name.metric);
      });
  if (named == std::end(Report::kNames))
    return ctx.refuse("ERR Unrecognized sort metric for ORDERBY.");
  order->metric = named->metric;
  bool limited = false;
  bool directed = false;
  for (ArgReader words(ctx.args, 4); words.more();) {
    std::string_view text;
    bool* given = nullptr;
    if (words.word("LIMIT", &text)) {
      if (!ctx.read_int64_in(
              text, 1, store::kKeySlots, &order->limit,
              "ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."))
        return false;
      given = &limited;
    } else if (words.word("ASC")) {
      order->descending = false;
      given = &directed;
    } else if (words.word("DESC")) {
      order->descending = true;
      given = &directed;
    } else {
      ctx.syntax_error();
      return false;
    }
    if (std::exchange(*given, true))
      return ctx.refuse("ERR Multiple filters of the same type are disallowed.");
  }
  return true;
}

void reply_ordered(CommandContext& ctx, Cluster& cluster) {
  const Report report(ctx, cluster);
  Order order;
  if (!read_order(ctx, report, &order)) return;
  std::vector<int> slots = own_slots(cluster, 0, store::kKeySlots - 1);
  std::stable_sort(slots.begin(), slots.end(), [&](int a, int b) {
    const uint64_t left = report.figure(a, order.metric);
    const uint64_t right = report.figure(b, order.metric);
    return order.descending ? left > right : left < right;
  });
  slots.resize(std::min(slots.size(), static_cast<size_t>(order.limit)));
  report.reply(slots);
}

}  // namespace

void cluster_slot_stats(CommandContext& ctx, Cluster& cluster) {
  constexpr size_t kWordsOfRange = 5;
  if (ctx.args.size() == kWordsOfRange && is_word(ctx.args[2], "SLOTSRANGE"))
    return reply_range(ctx, cluster);
  if (is_word(ctx.args[2], "ORDERBY")) return reply_ordered(ctx, cluster);
  ctx.reply.error(
      "ERR unknown subcommand or wrong number of arguments for 'SLOT-STATS'. Try "
      "CLUSTER HELP.");
}

}  // namespace latchkey::cluster
