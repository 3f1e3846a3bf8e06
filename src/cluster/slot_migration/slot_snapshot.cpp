#include "cluster/slot_migration/slot_snapshot.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

#include "persist/aof/aof_dataset.h"
#include "persist/rdb/dump_payload.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "store/slot_index.h"

namespace latchkey::cluster {

namespace {

// Larger collections are written as several requests, so that none is large.
constexpr size_t kMaxElementsInDump = 512;

void write_request(persist::ByteSink& sink, std::initializer_list<std::string_view> words) {
  sink.write("*" + std::to_string(words.size()) + "\r\n");
  for (const std::string_view word : words) {
    sink.write("$" + std::to_string(word.size()) + "\r\n");
    sink.write(word);
    sink.write("\r\n");
  }
}

void write_functions(persist::ByteSink& sink, server::Server& server) {
  if (server.functions() == nullptr) return;
  server.functions()->for_each_code([&](std::string_view code) {
    write_request(sink, {"FUNCTION", "LOAD", "REPLACE", code});
  });
}

// "<slot>:<keys>:<keys with a deadline>", by which the other node can make room.
void write_slot_info(persist::ByteSink& sink, const store::SlotIndex& index, int slot) {
  size_t with_deadline = 0;
  index.for_each(slot,
                 [&](const store::Entry& entry) { with_deadline += entry.has_deadline() ? 1 : 0; });
  write_request(sink, {"CLUSTER", "SYNCSLOTS", "CONF", "SLOT-INFO",
                       std::to_string(slot) + ":" + std::to_string(index.in(slot)) + ":" +
                           std::to_string(with_deadline)});
}

void write_key(persist::ByteSink& sink, server::Server& server, const store::Entry& entry) {
  const bool large = !entry.is_string() && entry.element_count() > kMaxElementsInDump;
  const int version = server.edition().rdb_version();
  if (entry.is_string() || large) return persist::write_key_as_requests(sink, entry, version);
  const int64_t deadline_ms = entry.has_deadline() ? entry.deadline_ms() : 0;
  write_request(sink,
                {"RESTORE", entry.key(), std::to_string(deadline_ms),
                 persist::make_dump(entry, server.settings().rdbcompression, version), "ABSTTL"});
}

}  // namespace

bool write_slot_snapshot(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key) {
  write_functions(sink, server);
  for (const auto& database : server.databases()) {
    // Redis has the first one only, and expects it to be selected.
    if (database->index() != 0 && database->empty()) continue;
    write_request(sink, {"SELECT", std::to_string(database->index())});
    const store::SlotIndex& index = *database->slot_index();
    slots.for_each([&](int slot) {
      if (index.in(slot) == 0 || !sink.ok()) return;
      write_slot_info(sink, index, slot);
      index.for_each(slot, [&](const store::Entry& entry) {
        if (!sink.ok()) return;
        write_key(sink, server, entry);
        after_key();
      });
    });
  }
  write_request(sink, {"CLUSTER", "SYNCSLOTS", "SNAPSHOT-EOF"});
  return sink.flush();
}

bool write_slot_requests(persist::ByteSink& sink, server::Server& server, const SlotSet& slots,
                         const std::function<void()>& after_key) {
  for (const auto& database : server.databases()) {
    bool selected = false;
    const store::SlotIndex& index = *database->slot_index();
    slots.for_each([&](int slot) {
      if (index.in(slot) == 0 || !sink.ok()) return;
      if (!std::exchange(selected, true))
        write_request(sink, {"SELECT", std::to_string(database->index())});
      index.for_each(slot, [&](const store::Entry& entry) {
        if (!sink.ok()) return;
        persist::write_key_as_requests(sink, entry, server.edition().rdb_version());
        after_key();
      });
    });
  }
  return sink.flush();
}

}  // namespace latchkey::cluster
