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
  ctx.reply.error(std::string("ERR error saving the cluster node config: ") + strerror(errno));
  return false;
}

void commit_and_confirm(CommandContext& ctx, Cluster& cluster) {
  if (commit(ctx, cluster)) ctx.reply.ok();
}

namespace {

bool read_slot(CommandContext& ctx, std::string_view text, int* slot) {
  if (parse_slot(text, slot)) return true;
  ctx.reply.error("ERR Invalid or out of range slot");
  return false;
}

// Reads a slot from each argument. False when an error has been sent.
bool read_slots(CommandContext& ctx, std::vector<int>* slots) {
  for (const std::string_view text : ctx.args.subspan(2)) {
    if (!read_slot(ctx, text, &slots->emplace_back())) return false;
  }
  return true;
}

// Reads pairs of arguments: the first and the last slot of a range. False when an error has been
// sent.
bool read_slot_ranges(CommandContext& ctx, std::vector<int>* slots) {
  const Arguments words = ctx.args.subspan(2);
  if (words.size() % 2 != 0) {
    ctx.wrong_arity();
    return false;
  }
  for (size_t i = 0; i < words.size(); i += 2) {
    int first = 0;
    int last = 0;
    if (!read_slot(ctx, words[i], &first) || !read_slot(ctx, words[i + 1], &last)) return false;
    if (first > last) {
      ctx.reply.error("ERR start slot number " + std::to_string(first) +
                      " is greater than end slot number " + std::to_string(last));
      return false;
    }
    for (int slot = first; slot <= last; ++slot) slots->push_back(slot);
  }
  return true;
}

// --- Assigning slots -----------------------------------------------------------------------------

// Assigns the slots to this node, or removes their owners; all or none.
void change_owner(CommandContext& ctx, Cluster& cluster, const std::vector<int>& slots, bool add) {
  NodeTable& nodes = cluster.nodes();
  SlotSet seen;
  for (const int slot : slots) {
    const std::string name = "ERR Slot " + std::to_string(slot);
    if ((nodes.owner(slot) != nullptr) == add)
      return ctx.reply.error(name + (add ? " is already busy" : " is already unassigned"));
    if (seen.has(slot)) return ctx.reply.error(name + " specified multiple times");
    seen.add(slot);
  }
  if (add && !cluster.myself().is_master())
    return ctx.reply.error("ERR A replica is not given slots");
  for (const int slot : slots) {
    if (add) {
      // A slot that is served here is not imported.
      nodes.set_importing(slot, nullptr);
      nodes.assign(slot, cluster.myself());
    } else {
      nodes.unassign(slot);
    }
  }
  commit_and_confirm(ctx, cluster);
}

// --- Migrating slots -----------------------------------------------------------------------------

// The other node of a migration. Null when an error has been sent.
Node* find_partner(CommandContext& ctx, Cluster& cluster, std::string_view id,
                   const std::string& unknown) {
  Node* const node = cluster.nodes().find(id);
  if (node == nullptr) {
    ctx.reply.error(unknown + std::string(id));
  } else if (!node->is_master()) {
    ctx.reply.error("ERR Target node is not a master");
    return nullptr;
  }
  return node;
}

void begin_migrating(CommandContext& ctx, Cluster& cluster, int slot, std::string_view id) {
  if (cluster.nodes().owner(slot) != &cluster.myself())
    return ctx.reply.error("ERR I'm not the owner of hash slot " + std::to_string(slot));
  Node* const to = find_partner(ctx, cluster, id, "ERR I don't know about node ");
  if (to == nullptr) return;
  cluster.nodes().set_migrating(slot, to == &cluster.myself() ? nullptr : to);
  commit_and_confirm(ctx, cluster);
}

void begin_importing(CommandContext& ctx, Cluster& cluster, int slot, std::string_view id) {
  if (cluster.nodes().owner(slot) == &cluster.myself())
    return ctx.reply.error("ERR I'm already the owner of hash slot " + std::to_string(slot));
  Node* const from = find_partner(ctx, cluster, id, "ERR I don't know about node ");
  if (from == nullptr) return;
  cluster.nodes().set_importing(slot, from == &cluster.myself() ? nullptr : from);
  commit_and_confirm(ctx, cluster);
}

// Whether an atomic migration has the slot, or left keys of it that are not deleted yet. An error
// has been sent then.
bool is_migrated(CommandContext& ctx, Cluster& cluster, int slot) {
  SlotMigration& migration = cluster.slot_migration();
  // Valkey lets no slot be moved by hand meanwhile.
  if (cluster.slot_jobs().sends() || cluster.slot_jobs().receives()) {
    ctx.reply.error(cluster.slot_jobs().receives() ? "ERR Slot import in progress."
                                                   : "ERR Slot export in progress.");
    return true;
  }
  if (migration.moves(slot)) {
    ctx.reply.error("ERR Slot " + std::to_string(slot) + " is in an active atomic slot migration.");
    return true;
  }
  Trimmer& trimmer = migration.trimmer();
  if (!trimmer.covers(slot)) return false;
  if (trimmer.is_held()) {
    ctx.reply.error("ERR There is a pending trim job for slot " + std::to_string(slot));
    return true;
  }
  SlotSet slots;
  slots.add(slot);
  trimmer.finish(slots);
  return false;
}

void end_move(CommandContext& ctx, Cluster& cluster, int slot) {
  cluster.nodes().set_migrating(slot, nullptr);
  cluster.nodes().set_importing(slot, nullptr);
  commit_and_confirm(ctx, cluster);
}

// Assigns the slot to that node.
void update_slot(CommandContext& ctx, Cluster& cluster, int slot, std::string_view id) {
  NodeTable& nodes = cluster.nodes();
  Node& myself = cluster.myself();
  Node* const owner = find_partner(ctx, cluster, id, "ERR Unknown node ");
  if (owner == nullptr) return;
  const bool was_mine = nodes.owner(slot) == &myself;
  const bool has_keys = keys_in_slot(ctx.server, slot) > 0;
  if (was_mine && owner != &myself && has_keys) {
    return ctx.reply.error("ERR Can't assign hashslot " + std::to_string(slot) +
                           " to a different node while I still hold keys for this hash slot.");
  }
  if (!has_keys || owner == &myself) nodes.set_migrating(slot, nullptr);
  nodes.assign(slot, *owner);
  const bool arrived = owner == &myself && nodes.importing_from(slot) != nullptr;
  if (arrived) {
    // The other nodes believe the claim with the newer epoch.
    cluster.bump_epoch();
    nodes.set_importing(slot, nullptr);
  }
  const bool left_with_none = was_mine && owner != &myself && myself.slots.empty();
  if (left_with_none && ctx.server.settings().cluster_allow_replica_migration) {
    ctx.server.log().notice("Configuration change detected. Reconfiguring myself as a replica of " +
                            title(*owner));
    cluster.replicate_from(*owner);
  }
  if (!commit(ctx, cluster)) return;
  if (arrived) cluster.gossip().broadcast_pong();
  ctx.reply.ok();
}

}  // namespace

// --- Commands ------------------------------------------------------------------------------------

void cluster_addslots(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
  if (read_slots(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/true);
}

void cluster_addslotsrange(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
  if (read_slot_ranges(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/true);
}

void cluster_delslots(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
  if (read_slots(ctx, &slots)) change_owner(ctx, cluster, slots, /*add=*/false);
}

void cluster_delslotsrange(CommandContext& ctx, Cluster& cluster) {
  std::vector<int> slots;
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
  bool lazily = ctx.server.settings().lazyfree_lazy_user_flush;
  if (ctx.args.size() == 4) {
    lazily = is_word(ctx.args[3], "ASYNC");
    if (!lazily && !is_word(ctx.args[3], "SYNC")) return ctx.syntax_error();
  }
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

void cluster_setslot(CommandContext& ctx, Cluster& cluster) {
  if (!cluster.myself().is_master())
    return ctx.reply.error("ERR You can use SETSLOT only with masters.");
  int slot = 0;
  if (!read_slot(ctx, ctx.args[2], &slot)) return;
  if (is_migrated(ctx, cluster, slot)) return;
  const std::string_view action = ctx.args[3];
  if (ctx.args.size() == 4 && is_word(action, "STABLE")) return end_move(ctx, cluster, slot);
  const std::string_view node = ctx.args.size() == 5 ? ctx.args[4] : std::string_view();
  if (ctx.args.size() == 5 && is_word(action, "MIGRATING"))
    return begin_migrating(ctx, cluster, slot, node);
  if (ctx.args.size() == 5 && is_word(action, "IMPORTING"))
    return begin_importing(ctx, cluster, slot, node);
  if (ctx.args.size() == 5 && is_word(action, "NODE")) return update_slot(ctx, cluster, slot, node);
  ctx.reply.error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");
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
