#include "cluster/slot_stats.h"

#include <string_view>

#include "replication/replication.h"
#include "server/client/client.h"
#include "server/client/pubsub.h"
#include "server/command/command_table.h"
#include "server/command/dispatcher.h"
#include "server/command/slot_gate.h"
#include "server/server.h"

namespace latchkey::cluster {

using namespace server;

SlotStats::SlotStats(Server& server)
    : server_(server),
      memory_allowed_((server.settings().cluster_slot_stats_enabled & kSlotStatsMemory) != 0) {
  reset();
  server_.hooks().stats_reset.add([this] { reset(); });
  server_.config().on_change({"cluster-slot-stats-enabled"}, [this]() -> base::Result<> {
    const bool memory = (server_.settings().cluster_slot_stats_enabled & kSlotStatsMemory) != 0;
    if (memory && !memory_allowed_)
      return base::fail("memory tracking cannot be enabled at runtime");
    memory_allowed_ = memory;
    follow_settings();
    return {};
  });
  follow_settings();
}

void SlotStats::follow_settings() {
  const bool wanted =
      (server_.settings().cluster_slot_stats_enabled & (kSlotStatsCpu | kSlotStatsNetwork)) != 0;
  if (wanted == counts_) return;
  counts_ = wanted;
  if (wanted) {
    server_.dispatcher().meters().add(*this);
  } else {
    server_.dispatcher().meters().remove(*this);
  }
}

std::vector<uint64_t> SlotStats::measure_memory() const {
  std::vector<uint64_t> bytes(store::kKeySlots);
  for (int i = 0; i < server_.database_count(); ++i) {
    server_.database(i).table().for_each([&](const store::Entry* entry) {
      bytes[static_cast<size_t>(store::key_slot(entry->key()))] += entry->memory_usage();
    });
  }
  return bytes;
}

void SlotStats::slots_changed(const SlotSet& slots) {
  if (slots == slots_) return;
  for (int slot = 0; slot < store::kKeySlots; ++slot) {
    if (!slots.has(slot) || !slots_.has(slot)) figures_[static_cast<size_t>(slot)] = {};
  }
  slots_ = slots;
}

int SlotStats::joined(int one, int other) {
  if (one == other || other == kNoSlot) return one;
  return one == kNoSlot ? other : kSeveral;
}

int SlotStats::slot_of(const MeteredCall& call) {
  found_.clear();
  find_slotted_words({call.command, call.args}, &found_);
  int slot = kNoSlot;
  for (const KeyReference& word : found_)
    slot = joined(slot, store::key_slot(call.args[word.position]));
  return slot;
}

void SlotStats::called(const MeteredCall& call) {
  const int slot = slot_of(call);
  if (call.nested) {
    nested_slot_ = joined(nested_slot_, slot);
    if (!call.in_script) nested_bytes_ += request_bytes(call.args);
    return;
  }
  // EXEC stands for MULTI too.
  static constexpr std::string_view kMulti[] = {"MULTI"};
  uint64_t bytes_in = request_bytes(call.args) + nested_bytes_;
  if (call.command.has(server::kRunsQueued)) bytes_in += request_bytes(kMulti);
  const int whole = joined(slot, nested_slot_);
  nested_slot_ = kNoSlot;
  nested_bytes_ = 0;
  if (whole >= 0) count(call, whole, bytes_in);
}

void SlotStats::count(const MeteredCall& call, int slot, uint64_t bytes_in) {
  Figures& figures = figures_[static_cast<size_t>(slot)];
  figures.ticks += call.ticks;
  figures.bytes_in += bytes_in;
  // A master reads no replies.
  if (!call.sender.has(kClientMaster)) figures.bytes_out += call.reply_bytes;
  if (const auto* const replication = server_.find_layer<replication::Replication>())
    figures.bytes_out += call.stream_bytes * replication->replicas().size();
  if (call.command.full_name != "spublish") return;
  const std::string_view message[] = {"smessage", call.args[1], call.args[2]};
  const size_t listeners = server_.pubsub().listeners(TopicKind::kShardChannel, call.args[1]);
  figures.bytes_out += request_bytes(message) * listeners;
}

}  // namespace latchkey::cluster
