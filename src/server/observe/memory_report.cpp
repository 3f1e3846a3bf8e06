#include "server/observe/memory_report.h"

#include <algorithm>
#include <cmath>

#include "server/client/client_info.h"
#include "server/server.h"
#include "store/deadline_wheel.h"

namespace latchkey::server {

namespace {

double ratio(size_t part, size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

size_t MemoryReport::overhead() const {
  size_t bytes = startup + clients + scripts.all_interpreter_bytes() + scripts.all_sources_bytes();
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
  server.stats().note_memory(report.used, server.machine_ms() / 1000);
  report.peak = server.stats().peak_memory;
  report.startup = server.startup_memory();
  report.resident = resident_memory();
  report.allocator = allocator_figures();
  report.scripts = server.script_figures();
  server.clients().for_each([&](Client& client) { report.clients += memory_usage(client); });
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
