#include "cluster/slot_migration/commands.h"

#include <string>
#include <string_view>

#include "base/text/number.h"
#include "cluster/cluster.h"
#include "cluster/slot_jobs/commands.h"
#include "cluster/slot_migration/slot_migration.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// Reads pairs of arguments: the first and the last slot of a range. False when an error has been
// sent. REQUIRES: an even number of words.
bool read_ranges(CommandContext& ctx, Arguments words, SlotSet* slots) {
  for (size_t i = 0; i < words.size(); i += 2) {
    int first = 0;
    int last = 0;
    if (!parse_slot(words[i], &first) || !parse_slot(words[i + 1], &last))
      return ctx.refuse("ERR Invalid or out of range slot");
    if (first > last)
      return ctx.refuse("ERR start slot number " + std::to_string(first) +
                        " is greater than end slot number " + std::to_string(last));
    for (int slot = first; slot <= last; ++slot) {
      if (slots->has(slot))
        return ctx.refuse("ERR Slot " + std::to_string(slot) + " specified multiple times");
      slots->add(slot);
    }
  }
  return true;
}

// --- CLUSTER MIGRATION ---------------------------------------------------------------------------

// Whether the slots can be imported. The error is a reply, from "ERR " on.
base::Result<> check_import(Cluster& cluster, const SlotSet& slots) {
  const NodeTable& nodes = cluster.nodes();
  if (nodes.any_moves())
    return base::fail("ERR all slot states must be STABLE to start a slot migration task.");
  const Node* source = nullptr;
  base::Result<> result;
  slots.for_each([&](int slot) {
    const Node* const owner = nodes.owner(slot);
    if (!result) return;
    if (owner == nullptr) {
      result = base::fail("ERR slot has no owner: " + std::to_string(slot));
    } else if (source != nullptr && owner != source) {
      result = base::fail("ERR slots belong to different source nodes");
    }
    source = owner;
  });
  if (!result) return result;
  if (source == &cluster.myself())
    return base::fail("ERR this node is already the owner of the slot range");
  if (cluster.migrates_any(slots)) return base::fail("ERR overlapping import exists");
  return {};
}

void import(CommandContext& ctx, Cluster& cluster) {
  const Arguments words = ctx.args.subspan(3);
  if (words.size() < 2 || words.size() % 2 != 0) return ctx.wrong_arity();
  SlotSet slots;
  if (!read_ranges(ctx, words, &slots)) return;
  if (cluster.myself().is_replica())
    return ctx.reply.error("ERR slot migration not allowed on replica.");
  const base::Result<> checked = check_import(cluster, slots);
  if (!checked) return ctx.reply.error(checked.error());
  ctx.reply.bulk(cluster.slot_migration().import(slots));
}

// Reads ID and an id, or ALL. False when an error has been sent.
bool read_choice(CommandContext& ctx, bool* all, std::string_view* id) {
  const size_t size = ctx.args.size();
  *all = size >= 4 && is_word(ctx.args[3], "ALL");
  const bool one = size >= 4 && is_word(ctx.args[3], "ID");
  if (size < 4 || (*all && size != 4) || (one && size != 5)) {
    ctx.wrong_arity();
    return false;
  }
  if (!*all && !one) return ctx.refuse("ERR unknown argument");
  if (one) *id = ctx.args[4];
  return true;
}

void cancel(CommandContext& ctx, Cluster& cluster) {
  bool all = false;
  std::string_view id;
  if (!read_choice(ctx, &all, &id)) return;
  SlotMigration& migration = cluster.slot_migration();
  const size_t canceled =
      all ? migration.cancel_all("Cancelled due to user request") : migration.cancel(id);
  ctx.reply.integer(static_cast<int64_t>(canceled));
}

void reply_task(CommandContext& ctx, const SlotTask& task) {
  constexpr size_t kFields = 12;
  const auto text = [&](std::string_view name, std::string_view value) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  };
  const auto number = [&](std::string_view name, int64_t value) {
    ctx.reply.bulk(name);
    ctx.reply.integer(value);
  };
  ctx.reply.map(kFields);
  text("id", task.id);
  text("slots", ranges_text(task.slots));
  text("source", task.source);
  text("dest", task.dest);
  text("operation", task.import ? "import" : "migrate");
  text("state", name_of(task.state));
  text("last_error", task.last_error);
  number("retries", static_cast<int64_t>(task.retries));
  const auto time = [&](const char* name, int64_t at_ms) {
    number(name, at_ms < 0 ? at_ms : ctx.server.shown_ms(at_ms));
  };
  time("create_time", task.created_ms);
  time("start_time", task.started_ms);
  time("end_time", task.ended_ms);
  number("write_pause_ms", task.write_pause_ms);
}

void status(CommandContext& ctx, Cluster& cluster) {
  bool all = false;
  std::string_view id;
  if (!read_choice(ctx, &all, &id)) return;
  const TaskTable& tasks = cluster.slot_migration().tasks();
  const auto size = ctx.reply.later();
  size_t count = 0;
  const auto show = [&](const SlotTask& task) {
    if (!all && task.id != id) return;
    reply_task(ctx, task);
    ++count;
  };
  for (auto it = tasks.active().rbegin(); it != tasks.active().rend(); ++it) show(**it);
  for (const SlotTask& task : tasks.archive()) show(task);
  ctx.reply.array_later(size, count);
}

// --- CLUSTER SYNCSLOTS ---------------------------------------------------------------------------

// Null where the client is no node, or a source of Valkey's kind (slot_jobs/).
NodeSession* session_of(CommandContext& ctx) {
  return dynamic_cast<NodeSession*>(ctx.client.node.get());
}

// A connection that carries a stream gets no replies: what is wrong there ends it.
void refuse(CommandContext& ctx, std::string_view error) {
  if (!session_of(ctx)->gets_stream()) return ctx.reply.error(error);
  ctx.server.log().warning("CLUSTER SYNCSLOTS of another node: " + std::string(error) +
                           "; closing the connection");
  ctx.client.close();
}

void sync_slots(CommandContext& ctx, Cluster& cluster) {
  const Arguments words = ctx.args.subspan(4);
  if (words.size() < 2 || words.size() % 2 != 0) return ctx.wrong_arity();
  SlotSet slots;
  if (!read_ranges(ctx, words, &slots)) return;
  if (ctx.args[3].size() != kIdDigits) return ctx.reply.error("ERR Invalid task id");
  const base::Result<> begun =
      cluster.slot_migration().begin_export(*session_of(ctx), ctx.args[3], slots);
  if (!begun) return ctx.reply.error(begun.error());
  ctx.reply.status("RDBCHANNELSYNCSLOTS");
}

void send_snapshot(CommandContext& ctx, Cluster& cluster) {
  if (!cluster.slot_migration().begin_snapshot(*session_of(ctx), ctx.args[3]))
    return ctx.reply.error("ERR No such slot migration task waits for its snapshot");
  ctx.reply.status("SLOTSSNAPSHOT");
}

void acknowledge(CommandContext& ctx, Cluster& cluster) {
  int64_t offset = 0;
  if (!base::parse_int64(ctx.args[4], &offset) || offset < 0)
    return refuse(ctx, "ERR Invalid offset");
  cluster.slot_migration().acknowledged(*session_of(ctx), ctx.args[3],
                                        static_cast<uint64_t>(offset));
}

// Pairs of options and values.
void configure(CommandContext& ctx, Cluster& cluster) {
  const Arguments words = ctx.args.subspan(3);
  if (words.empty() || words.size() % 2 != 0) return ctx.wrong_arity();
  const bool from_master = ctx.client.has(kClientMaster);
  for (size_t i = 0; i < words.size(); i += 2) {
    if (from_master && is_word(words[i], "ASM-TASK")) {
      if (!cluster.slot_migration().master_task_received(words[i + 1]))
        return ctx.reply.error("ERR Invalid slot migration task");
    } else if (!from_master && is_word(words[i], "NODE-ID")) {
      if (cluster.nodes().find(words[i + 1]) == nullptr)
        return refuse(ctx, "ERR Unknown node " + std::string(words[i + 1]));
      session_of(ctx)->node_id = words[i + 1];
    } else if (!is_word(words[i], "SLOT-INFO")) {
      return from_master ? ctx.syntax_error() : refuse(ctx, "ERR syntax error");
    }
  }
  // The replicas of this replica get the request with the rest of the stream.
  if (from_master || !session_of(ctx)->gets_stream()) ctx.reply.ok();
}

// --- DEBUG ---------------------------------------------------------------------------------------

constexpr std::string_view kNoCluster =
    "ERR Debug option only available for cluster mode enabled setup!";

}  // namespace

void cluster_migration(CommandContext& ctx, Cluster& cluster) {
  const std::string_view what = ctx.args[2];
  if (is_word(what, "IMPORT")) return import(ctx, cluster);
  if (is_word(what, "CANCEL")) return cancel(ctx, cluster);
  if (is_word(what, "STATUS")) return status(ctx, cluster);
  ctx.reply.error("ERR unknown argument");
}

void cluster_syncslots(CommandContext& ctx, Cluster& cluster) {
  const std::string_view what = ctx.args[2];
  const size_t size = ctx.args.size();
  const Edition& edition = ctx.server.edition();
  if (session_of(ctx) == nullptr && edition.has(kNever, {9, 0}) && sync_as_valkey(ctx, cluster))
    return;
  if (ctx.client.has(kClientMaster)) {
    if (is_word(what, "CONF")) return configure(ctx, cluster);
    return ctx.syntax_error();
  }
  if (edition.is_valkey()) return ctx.syntax_error();
  if (session_of(ctx) == nullptr) {
    ctx.client.close_after_reply();
    return ctx.reply.error(
        "ERR CLUSTER SYNCSLOTS subcommands are only allowed for internal clients");
  }
  const bool streams = session_of(ctx)->gets_stream();
  if (is_word(what, "CONF")) return configure(ctx, cluster);
  if (!streams && is_word(what, "SYNC") && size >= 5) return sync_slots(ctx, cluster);
  if (!streams && is_word(what, "RDBCHANNEL") && size == 4) return send_snapshot(ctx, cluster);
  if (streams && is_word(what, "ACK") && size == 5) return acknowledge(ctx, cluster);
  if (is_word(what, "FAIL") && size == 4) {
    ctx.server.log().warning("The other node of a slot migration reports: " +
                             std::string(ctx.args[3]));
    return ctx.client.close();
  }
  refuse(ctx, "ERR syntax error");
}

void trimslots(CommandContext& ctx, Cluster& cluster) {
  if (!is_word(ctx.args[1], "RANGES")) return ctx.reply.error("ERR missing ranges argument");
  int64_t count = 0;
  if (!ctx.read_int64(ctx.args[2], &count)) return;
  const Arguments words = ctx.args.subspan(3);
  if (count < 1 || count > store::kKeySlots || words.size() != static_cast<size_t>(count) * 2)
    return ctx.reply.error("ERR invalid number of ranges");
  SlotSet slots;
  if (!read_ranges(ctx, words, &slots)) return;
  SlotMigration& migration = cluster.slot_migration();
  // What the master or the append-only file says is not questioned; a file is loaded in its order.
  if (ctx.client.has(kClientInternal)) {
    migration.trimmer().trim_now(slots);
    return ctx.reply.ok();
  }
  if (!ctx.client.has(kClientMaster)) {
    int served = -1;
    slots.for_each([&](int slot) {
      if (served < 0 && cluster.nodes().owner(slot) == &cluster.myself()) served = slot;
    });
    if (served >= 0) {
      return ctx.reply.error("ERR the slot " + std::to_string(served) + " is served by this node");
    }
  }
  migration.trimmer().schedule(slots, /*propagates=*/false);
  ctx.events.count(1);
  ctx.reply.ok();
}

void debug_asm_failpoint(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  if (!cluster->slot_migration().set_fail_point(ctx.args[2], ctx.args[3]))
    return ctx.reply.error("ERR Failed to set ASM fail point");
  ctx.reply.ok();
}

void debug_asm_trim_method(CommandContext& ctx) {
  using Method = Trimmer::Method;
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr) return ctx.reply.error(kNoCluster);
  Method method;
  if (is_word(ctx.args[2], "DEFAULT")) {
    method = Method::kDefault;
  } else if (is_word(ctx.args[2], "NONE")) {
    method = Method::kNone;
  } else if (is_word(ctx.args[2], "ACTIVE")) {
    method = Method::kActive;
  } else if (is_word(ctx.args[2], "BG")) {
    method = Method::kBackground;
  } else {
    return ctx.reply.error("ERR Failed to set ASM trim method");
  }
  int64_t delay_us = 0;
  if (ctx.args.size() == 4 && !ctx.read_int64(ctx.args[3], &delay_us)) return;
  cluster->slot_migration().trimmer().set_method(method, delay_us);
  ctx.reply.ok();
}

}  // namespace latchkey::cluster
