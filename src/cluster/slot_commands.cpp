#include "cluster/slot_commands.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/slot_keys.h"
#include "server/command/command_context.h"
#include "server/command/help.h"
#include "server/server.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

using namespace server;

bool commit(CommandContext& ctx, Cluster& cluster) {
  if (cluster.commit()) return true;
  return ctx.refuse(std::string("ERR error saving the cluster node config: ") + strerror(errno));
}

void commit_and_confirm(CommandContext& ctx, Cluster& cluster) {
  if (commit(ctx, cluster)) ctx.reply.ok();
}

namespace {

struct RequestedRange {
  int first = 0;
  int last = 0;
};

bool read_slot(CommandContext& ctx, std::string_view text, int* slot) {
  if (parse_slot(text, slot)) return true;
  return ctx.refuse("ERR Invalid or out of range slot");
}

// Reads a slot from each argument. False when an error has been sent.
bool read_slots(CommandContext& ctx, std::vector<RequestedRange>* slots) {
  for (const std::string_view text : ctx.args.subspan(2)) {
    int slot = 0;
    if (!read_slot(ctx, text, &slot)) return false;
    slots->push_back({slot, slot});
  }
  return true;
}

// Reads pairs of arguments: the first and the last slot of a range. False when an error has been
// sent.
bool read_slot_ranges(CommandContext& ctx, std::vector<RequestedRange>* slots) {
  const Arguments words = ctx.args.subspan(2);
  if (words.size() % 2 != 0) {
    ctx.wrong_arity();
    return false;
  }
  for (size_t i = 0; i < words.size(); i += 2) {
    RequestedRange& range = slots->emplace_back();
    if (!read_slot(ctx, words[i], &range.first) || !read_slot(ctx, words[i + 1], &range.last))
      return false;
    if (range.first > range.last)
      return ctx.refuse("ERR start slot number " + std::to_string(range.first) +
                        " is greater than end slot number " + std::to_string(range.last));
  }
  return true;
}

// --- Assigning slots -----------------------------------------------------------------------------

// Adds the slots to `chosen`, which is empty. False when an error has been sent.
bool choose_slots(CommandContext& ctx, const NodeTable& nodes,
                  const std::vector<RequestedRange>& ranges, bool add, SlotSet* chosen) {
  for (const RequestedRange& range : ranges) {
    for (int slot = range.first; slot <= range.last; ++slot) {
      const std::string name = "ERR Slot " + std::to_string(slot);
      if ((nodes.owner(slot) != nullptr) == add)
        return ctx.refuse(name + (add ? " is already busy" : " is already unassigned"));
      if (chosen->has(slot)) return ctx.refuse(name + " specified multiple times");
      chosen->add(slot);
    }
  }
  return true;
}

// Assigns the slots to this node, or removes their owners; all or none.
void change_owner(CommandContext& ctx, Cluster& cluster, const std::vector<RequestedRange>& ranges,
                  bool add) {
  NodeTable& nodes = cluster.nodes();
  SlotSet slots;
  if (!choose_slots(ctx, nodes, ranges, add, &slots)) return;
  if (add && !cluster.myself().is_master())
    return ctx.reply.error("ERR A replica is not given slots");
  slots.for_each([&](int slot) {
    if (add) {
      // A slot that is served here is not imported.
      nodes.set_importing(slot, nullptr);
      nodes.assign(slot, cluster.myself());
    } else {
      nodes.unassign(slot);
    }
  });
  commit_and_confirm(ctx, cluster);
}

}  // namespace

// --- Commands ------------------------------------------------------------------------------------

void cluster_addslots(CommandContext& ctx, Cluster& cluster) {
  std::vector<RequestedRange> slots;
  if (read_slots(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/true);
}

void cluster_addslotsrange(CommandContext& ctx, Cluster& cluster) {
  std::vector<RequestedRange> slots;
  if (read_slot_ranges(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/true);
}

void cluster_delslots(CommandContext& ctx, Cluster& cluster) {
  std::vector<RequestedRange> slots;
  if (read_slots(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/false);
}

void cluster_delslotsrange(CommandContext& ctx, Cluster& cluster) {
  std::vector<RequestedRange> slots;
  if (read_slot_ranges(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/false);
}

void cluster_flushslots(CommandContext& ctx, Cluster& cluster) {
  const auto databases = ctx.server.databases();
  if (!std::all_of(databases.begin(), databases.end(), [](const auto& db) { return db->empty(); }))
    return ctx.reply.error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
  const SlotSet slots = cluster.myself().slots;
  slots.for_each([&](int slot) { cluster.nodes().unassign(slot); });
  commit_and_confirm(ctx, cluster);
}

// The keys of a slot in all databases. Replicas and the append-only file get the request as it is,
// if there was anything to delete; while the slot is being sent to another node, the deletion of
// each key, which that node understands.
void cluster_flushslot(CommandContext& ctx, Cluster& cluster) {
  if (ctx.args.size() > 4) return wrong_subcommand(ctx);
  int slot = 0;
  if (!read_slot(ctx, ctx.args[2], &slot)) return;
  ArgReader words(ctx.args, 3);
  const bool lazily = read_flush_lazily(ctx, words);
  if (words.more()) return ctx.syntax_error();
  const bool moves = cluster.migrates(slot);
  size_t deleted = 0;
  const auto gone = [&](store::Keyspace& database, const std::string& key) {
    ctx.events.removed(database, key);
    ++deleted;
    if (moves) ctx.server.propagation().add(database.index(), {"DEL", key});
  };
  delete_slot(ctx.server, slot, gone, lazily);
  if (moves) {
    ctx.propagate_nothing();
  } else if (deleted > 0) {
    ctx.propagate({}, ctx.args);
  }
  ctx.reply.ok();
}

void cluster_countkeysinslot(CommandContext& ctx, Cluster&) {
  int64_t slot = 0;
  if (!ctx.read_int64(ctx.args[2], &slot)) return;
  if (slot < 0 || slot >= store::kKeySlots) return ctx.reply.error("ERR Invalid slot");
  const auto number = static_cast<int>(slot);
  // Valkey counts what is being imported.
  const store::HiddenSlots& hidden = *ctx.db.hidden_slots();
  const bool is_hidden =
      ctx.server.edition().is_valkey() ? hidden.is_leaving(number) : hidden.has(number);
  ctx.reply.integer(is_hidden ? 0 : static_cast<int64_t>(ctx.db.slot_index()->in(number)));
}

void cluster_getkeysinslot(CommandContext& ctx, Cluster&) {
  int64_t slot = 0;
  int64_t most = 0;
  if (!ctx.read_int64(ctx.args[2], &slot) || !ctx.read_int64(ctx.args[3], &most)) return;
  if (slot < 0 || slot >= store::kKeySlots || most < 0)
    return ctx.reply.error("ERR Invalid slot or number of keys");
  const auto number = static_cast<int>(slot);
  const store::SlotIndex& index = *ctx.db.slot_index();
  if (ctx.db.hidden_slots()->has(number)) return ctx.reply.empty_array();
  const auto wanted =
      static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(most), index.in(number)));
  std::vector<std::string_view> keys;
  uint64_t cursor = 0;
  while (keys.size() < wanted) {
    cursor =
        index.scan(number, cursor, [&](const store::Entry& entry) { keys.push_back(entry.key()); });
    if (cursor == 0) break;
  }
  keys.resize(std::min(keys.size(), wanted));
  ctx.reply.array(keys.size());
  for (const std::string_view key : keys) ctx.reply.bulk(key);
}

}  // namespace latchkey::cluster
