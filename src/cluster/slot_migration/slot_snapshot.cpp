#include "cluster/slot_migration/slot_snapshot.h"

#include <cstring>
#include <string>
#include <utility>

#include "persist/aof/aof_dataset.h"
#include "persist/aof/request_writer.h"
#include "persist/background_child.h"
#include "persist/key_delay.h"
#include "persist/rdb/dump_payload.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

using persist::RequestWriter;

namespace {

// Larger collections are written as several requests, so that none is large.
constexpr size_t kMaxElementsInDump = 512;

void write_functions(RequestWriter& writer, server::Server& server) {
  if (server.functions() == nullptr) return;
  server.functions()->for_each_code([&](std::string_view code) {
    writer.request({"FUNCTION", "LOAD", "REPLACE", code});
  });
}

// "<slot>:<keys>:<keys with a deadline>", by which the other node can make room.
void write_slot_info(RequestWriter& writer, const store::SlotIndex& index, int slot) {
  size_t with_deadline = 0;
  index.for_each(slot,
                 [&](const store::Entry& entry) { with_deadline += entry.has_deadline() ? 1 : 0; });
  writer.request({"CLUSTER", "SYNCSLOTS", "CONF", "SLOT-INFO",
                  std::to_string(slot) + ":" + std::to_string(index.in(slot)) + ":" +
                      std::to_string(with_deadline)});
}

void write_key(RequestWriter& writer, server::Server& server, const store::Entry& entry) {
  const bool large = !entry.is_string() && entry.element_count() > kMaxElementsInDump;
  const int version = server.edition().rdb_version();
  if (entry.is_string() || large)
    return persist::write_key_as_requests(writer.sink(), entry, version);
  const int64_t deadline_ms = entry.has_deadline() ? entry.deadline_ms() : 0;
  writer.request({"RESTORE", entry.key(), std::to_string(deadline_ms),
                  persist::make_dump(entry, server.settings().rdbcompression, version), "ABSTTL"});
}

}  // namespace

bool write_slot_snapshot(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key) {
  RequestWriter writer(sink);
  write_functions(writer, server);
  for (const auto& database : server.databases()) {
    // Redis has the first one only, and expects it to be selected.
    if (database->index() != 0 && database->empty()) continue;
    writer.request({"SELECT", std::to_string(database->index())});
    const store::SlotIndex& index = *database->slot_index();
    slots.for_each([&](int slot) {
      if (index.in(slot) == 0 || !sink.ok()) return;
      write_slot_info(writer, index, slot);
      index.for_each(slot, [&](const store::Entry& entry) {
        if (!sink.ok()) return;
        write_key(writer, server, entry);
        after_key();
      });
    });
  }
  writer.request({"CLUSTER", "SYNCSLOTS", "SNAPSHOT-EOF"});
  return sink.flush();
}

bool write_slot_requests(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key) {
  RequestWriter writer(sink);
  for (const auto& database : server.databases()) {
    bool selected = false;
    const store::SlotIndex& index = *database->slot_index();
    slots.for_each([&](int slot) {
      if (index.in(slot) == 0 || !sink.ok()) return;
      if (!std::exchange(selected, true))
        writer.request({"SELECT", std::to_string(database->index())});
      index.for_each(slot, [&](const store::Entry& entry) {
        if (!sink.ok()) return;
        persist::write_key_as_requests(sink, entry, server.edition().rdb_version());
        after_key();
      });
    });
  }
  return sink.flush();
}

bool send_slots(SlotWriter& write, persist::ByteSink& sink, server::Server& server,
                const SlotSet& slots, persist::ChildProgress& progress) {
  const int delay_us = server.settings().rdb_key_save_delay;
  if (delay_us > 0) progress.expect_slow_keys();
  uint64_t keys = 0;
  const auto after_key = [&] {
    progress.key_written();
    // What has been written so far is not kept back meanwhile.
    if (delay_us > 0) sink.flush();
    persist::delay_key(delay_us, ++keys);
  };
  if (write(sink, server, slots, after_key)) return true;
  server.log().warning("Write error sending the snapshot of slots: " +
                       std::string(strerror(sink.error())));
  return false;
}

}  // namespace latchkey::cluster
