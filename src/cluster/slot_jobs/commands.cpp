#include "cluster/slot_jobs/commands.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.h"
#include "base/text/up_to_nul.h"
#include "base/time_units.h"
#include "cluster/cluster.h"
#include "cluster/slot_jobs/slot_jobs.h"
#include "cluster/slot_migration/task.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

namespace {

// Reads pairs of slots, as many as there are, and checks that they are in order and do not overlap.
// False when an error has been sent.
bool read_ranges(CommandContext& ctx, ArgReader& reader, SlotSet* slots) {
  std::vector<std::pair<int, int>> ranges;
  int64_t number = 0;
  while (reader.more() && base::parse_int64(reader.peek(), &number)) {
    int first = 0;
    int last = 0;
    if (reader.left() < 2) return ctx.refuse("ERR No end slot for final slot range");
    if (!parse_slot(reader.next(), &first) || !parse_slot(reader.next(), &last))
      return ctx.refuse("ERR Invalid or out of range slot");
    const auto text = [](std::pair<int, int> range) {
      return std::to_string(range.first) + "-" + std::to_string(range.second);
    };
    if (first > last)
      return ctx.refuse("ERR Start slot number " + std::to_string(first) +
                        " is greater than end slot number " + std::to_string(last) + ".");
    for (const auto& other : ranges) {
      if (first > other.second || last < other.first) continue;
      return ctx.refuse("ERR Slot range " + text({first, last}) + " overlaps with previous range " +
                        text(other) + ".");
    }
    ranges.emplace_back(first, last);
    for (int slot = first; slot <= last; ++slot) slots->add(slot);
  }
  if (!ranges.empty()) return true;
  return ctx.refuse("ERR No slot ranges specified");
}

// --- CLUSTER MIGRATESLOTS ------------------------------------------------------------------------

struct WantedJob {
  SlotSet slots;
  const Node* target = nullptr;
};

// Whether these slots can leave. The error is a reply, from "ERR " on.
base::Result<> check_slots(Cluster& cluster, const SlotSet& slots) {
  // Slots that are moved by hand come first, whichever they are.
  if (!cluster.nodes().migrating().empty())
    return base::fail("ERR Slots are being manually migrated");
  if (!cluster.nodes().importing().empty())
    return base::fail("ERR Slots are being manually imported");
  const Node* owner = nullptr;
  base::Result<> result;
  slots.for_each([&](int slot) {
    const Node* const next = cluster.nodes().owner(slot);
    if (!result) return;
    if (next == nullptr)
      result = base::fail("ERR Slot " + std::to_string(slot) + " has no node served.");
    if (owner != nullptr && next != nullptr && next != owner)
      result = base::fail("ERR Requested slots span multiple shards");
    owner = next;
  });
  if (!result) return result;
  if (owner != &cluster.myself()) return base::fail("ERR Slots are not served by this node.");
  if (cluster.slot_migration().tasks().find_overlapping(slots) != nullptr)
    return base::fail("ERR Slots are being manually migrated");
  slots.for_each([&](int slot) {
    SlotSet one;
    one.add(slot);
    if (result && cluster.slot_jobs().moves_any(one))
      result = base::fail("ERR I am already migrating slot " + std::to_string(slot) + ".");
  });
  return result;
}

// The node that an argument names. Null when an error has been sent.
const Node* read_target(CommandContext& ctx, Cluster& cluster, std::string_view id) {
  if (id.size() != kIdDigits)
    return ctx.refuse("ERR Invalid node name: " + std::string(id), nullptr);
  const Node* const node = cluster.nodes().find(id);
  if (node == nullptr) {
    ctx.reply.error("ERR Unknown node name: " + std::string(id));
  } else if (node == &cluster.myself()) {
    return ctx.refuse("ERR Target node can not be this node.", nullptr);
  }
  return node;
}

// False when an error has been sent.
bool read_job(CommandContext& ctx, Cluster& cluster, ArgReader& reader, WantedJob* job) {
  // valkey-cli 9.1 sends the word with a NUL behind it, which Valkey does not see.
  if (!reader.more() || !is_word(base::up_to_nul(reader.next()), "SLOTSRANGE")) {
    ctx.syntax_error();
    return false;
  }
  if (!read_ranges(ctx, reader, &job->slots)) return false;
  if (const base::Result<> checked = check_slots(cluster, job->slots); !checked)
    return ctx.refuse(checked.error());
  std::string_view id;
  if (!reader.word("NODE", &id)) {
    ctx.syntax_error();
    return false;
  }
  job->target = read_target(ctx, cluster, id);
  return job->target != nullptr;
}

// --- CLUSTER GETSLOTMIGRATIONS -------------------------------------------------------------------

void reply_job(CommandContext& ctx, const SlotJob& job, size_t remaining_bytes) {
  const auto text = [&](std::string_view name, std::string_view value) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  };
  const auto number = [&](std::string_view name, int64_t value) {
    ctx.reply.bulk(name);
    ctx.reply.integer(value);
  };
  const bool with_nodes = !job.source.empty();
  ctx.reply.map(with_nodes ? 12 : 10);
  text("name", job.name);
  text("operation", job.exports ? "EXPORT" : "IMPORT");
  text("slot_ranges", ranges_text(job.slots));
  if (with_nodes) {
    text("target_node", job.target);
    text("source_node", job.source);
  }
  const auto time = [&](const char* name, int64_t at_ms) {
    number(name, at_ms == 0 ? 0 : ctx.server.shown_ms(at_ms) / base::kMsPerSecond);
  };
  time("create_time", job.created_ms);
  time("last_update_time", job.updated_ms);
  time("last_ack_time", job.last_contact_ms);
  text("state", name_of(job.state));
  text("message", job.message);
  number("cow_size", static_cast<int64_t>(job.copied_bytes));
  number("remaining_repl_size", static_cast<int64_t>(remaining_bytes));
}

// --- CLUSTER SYNCSLOTS ---------------------------------------------------------------------------

// Options of ESTABLISH in any order; SLOTSRANGE takes the rest of the numbers. False when an error
// has been sent.
bool read_establishment(CommandContext& ctx, SlotJobs::Establishment* wanted) {
  bool has_slots = false;
  for (ArgReader reader(ctx.args, 3); reader.more();) {
    if ((wanted->source.empty() && reader.word("SOURCE", &wanted->source)) ||
        (wanted->name.empty() && reader.word("NAME", &wanted->name)))
      continue;
    if (has_slots || !reader.word("SLOTSRANGE")) {
      ctx.syntax_error();
      return false;
    }
    if (!read_ranges(ctx, reader, &wanted->slots)) return false;
    has_slots = true;
  }
  if (has_slots && wanted->source.size() == kIdDigits && wanted->name.size() == kIdDigits)
    return true;
  ctx.syntax_error();
  return false;
}

void establish(CommandContext& ctx, Cluster& cluster) {
  SlotJobs::Establishment wanted;
  if (!read_establishment(ctx, &wanted)) return;
  if (ctx.client.has(kClientMaster)) {
    cluster.slot_jobs().master_job_began(wanted);
    return ctx.reply.ok();
  }
  const base::Result<> established = cluster.slot_jobs().establish(ctx.client, wanted);
  if (!established) return ctx.reply.error("ERR " + established.error());
  ctx.reply.ok();
}

// The master says how a job has ended.
void finish(CommandContext& ctx, Cluster& cluster) {
  std::string_view name;
  std::string_view state;
  std::string_view message;
  for (ArgReader reader(ctx.args, 3); reader.more();) {
    if (reader.word("NAME", &name) || reader.word("STATE", &state) ||
        reader.word("MESSAGE", &message))
      continue;
    return ctx.syntax_error();
  }
  const bool success = is_word(state, "SUCCESS");
  if (name.size() != kIdDigits || (!success && !is_word(state, "FAILED")))
    return ctx.syntax_error();
  if (!ctx.client.has(kClientMaster)) return ctx.reply.error("ERR No such slot migration job");
  // A former master ended its jobs when its replica took over, so it may not know this one.
  cluster.slot_jobs().master_job_ended(name, success, message);
  ctx.reply.ok();
}

}  // namespace

void cluster_migrateslots(CommandContext& ctx, Cluster& cluster) {
  if (cluster.myself().is_replica())
    return ctx.reply.error("ERR Slot migration can only be used on primary nodes.");
  std::vector<WantedJob> wanted;
  for (ArgReader reader(ctx.args, 2); reader.more();) {
    WantedJob job;
    if (!read_job(ctx, cluster, reader, &job)) return;
    for (const WantedJob& other : wanted) {
      bool common = false;
      job.slots.for_each([&](int slot) { common |= other.slots.has(slot); });
      if (common) return ctx.reply.error("ERR Slot ranges in migrations overlap");
    }
    wanted.push_back(std::move(job));
  }
  for (const WantedJob& job : wanted) cluster.slot_jobs().send(job.slots, *job.target);
  ctx.reply.ok();
}

void cluster_getslotmigrations(CommandContext& ctx, Cluster& cluster) {
  const SlotJobs& jobs = cluster.slot_jobs();
  ctx.reply.array(jobs.jobs().all().size());
  for (const auto& job : jobs.jobs().all()) reply_job(ctx, *job, jobs.waiting_bytes(*job));
}

void cluster_cancelslotmigrations(CommandContext& ctx, Cluster& cluster) {
  if (cluster.slot_jobs().cancel_all() == 0) return ctx.reply.error("ERR No migrations ongoing");
  ctx.reply.ok();
}

void debug_slotmigration(CommandContext& ctx) {
  Cluster* const cluster = ctx.server.find_layer<Cluster>();
  if (cluster == nullptr)
    return ctx.reply.error("ERR Debug option only available for cluster mode enabled setup!");
  int64_t on = 0;
  if (!ctx.read_int64_in(ctx.args[3], 0, 1, &on)) return;
  if (is_word(ctx.args[2], "PREVENT-PAUSE")) {
    cluster->slot_jobs().prevented.pause = on != 0;
  } else if (is_word(ctx.args[2], "PREVENT-FAILOVER")) {
    cluster->slot_jobs().prevented.failover = on != 0;
  } else {
    return ctx.syntax_error();
  }
  ctx.reply.ok();
}

bool sync_as_valkey(CommandContext& ctx, Cluster& cluster) {
  static constexpr std::string_view kOfStream[] = {
      "ACK", "SNAPSHOT-EOF", "REQUEST-PAUSE", "PAUSED", "REQUEST-FAILOVER", "FAILOVER-GRANTED"};
  const std::string_view what = ctx.args[2];
  if (is_word(what, "ESTABLISH")) {
    establish(ctx, cluster);
    return true;
  }
  if (is_word(what, "FINISH")) {
    finish(ctx, cluster);
    return true;
  }
  const auto* const known =
      std::find_if(std::begin(kOfStream), std::end(kOfStream),
                   [what](std::string_view word) { return is_word(what, word); });
  if (known == std::end(kOfStream)) return false;
  // What a master's stream says of its own connection to the source is no matter here.
  if (ctx.client.has(kClientMaster)) {
    ctx.reply.ok();
  } else {
    ctx.reply.error("ERR CLUSTER SYNCSLOTS " + std::string(*known) +
                    " should only be used by slot migration clients");
  }
  return true;
}

}  // namespace latchkey::cluster
