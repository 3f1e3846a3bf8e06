#include "server/observe/memory_report.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/time_units.h"
#include "server/client/client_info.h"
#include "server/command/slot_gate.h"
#include "server/server.h"
#include "store/deadline_wheel.h"

namespace latchkey::server {

namespace {

double ratio(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What the kernel and the allocator say of the process. Asking costs ten microseconds, so they are
// asked again only after a tenth of a second.
struct ProcessMemory {
  size_t resident = 0;
  AllocatorFigures allocator;
};

ProcessMemory sampled_process_memory() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kMaxAge = std::chrono::milliseconds(100);
  thread_local ProcessMemory sample;
  thread_local std::optional<Clock::time_point> sampled_at;
  const Clock::time_point now = Clock::now();
  if (!sampled_at || now - *sampled_at > kMaxAge) {
    sample = {resident_memory(), allocator_figures()};
    sampled_at = now;
  }
  return sample;
}

}  // namespace

size_t MemoryReport::overhead() const {
  size_t bytes =
      startup + clients + buffers + scripts.all_interpreter_bytes() + scripts.all_sources_bytes();
  for (const DatabaseMemory& database : databases)
    bytes += database.table_bytes + database.deadlines_bytes;
  return bytes;
}

double MemoryReport::dataset_percent() const {
  return used > startup ? std::min(100.0, 100 * ratio(dataset(), used - startup)) : 0;
}

double MemoryReport::peak_percent() const {
  return 100 * ratio(used, peak);
}
double MemoryReport::allocator_fragmentation() const {
  return ratio(allocator.active, allocator.allocated);
}
double MemoryReport::allocator_resident_ratio() const {
  return ratio(allocator.resident, allocator.active);
}
double MemoryReport::resident_overhead_ratio() const {
  return ratio(resident, allocator.resident);
}
double MemoryReport::fragmentation() const {
  return ratio(resident, used);
}

MemoryReport measure_memory(Server& server) {
  MemoryReport report;
  report.used = server.used_memory();
  server.stats().note_memory(report.used, server.clock().wall_us() / base::kUsPerSecond);
  report.peak = server.stats().peak_memory;
  report.startup = server.startup_memory();
  const ProcessMemory process = sampled_process_memory();
  report.resident = process.resident;
  report.allocator = process.allocator;
  report.scripts = server.figures().scripts();
  // Replicas are told with all that waits for them, as ReplicationFigures has it.
  server.clients().for_each([&](Client& client) {
    report.clients += client.has(kClientReplica) ? memory_usage(client) : own_memory_usage(client);
  });
  const ReplicationFigures replication = server.figures().replication();
  const SlotGate* const node = server.slot_gate();
  report.buffers = replication.backlog_memory + replication.full_sync_buffer +
                   (node != nullptr ? node->link_figures().bytes : 0) +
                   server.figures().persistence().aof.buffer_memory;
  for (int i = 0; i < server.database_count(); ++i) {
    const store::Keyspace& database = server.database(i);
    if (database.empty()) continue;
    DatabaseMemory& memory = report.databases.emplace_back();
    memory.index = i;
    memory.keys = database.size();
    memory.table_bytes = database.table().bucket_bytes();
    // The keyspace's pointer to the wheel is there with and without deadlines.
    memory.deadlines_bytes = sizeof(std::unique_ptr<store::DeadlineWheel>);
    if (database.volatile_size() > 0) {
      memory.deadlines_bytes +=
          sizeof(store::DeadlineWheel) + database.volatile_size() * sizeof(store::DeadlineNode);
    }
    report.keys += memory.keys;
  }
  return report;
}

}  // namespace latchkey::server
