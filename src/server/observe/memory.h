// Memory of the process, as the allocator counts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace latchkey::server {

// Bytes in use by the process. refresh() asks the allocator for the total, which costs
// microseconds; used() adds the bytes allocated and freed since by the thread that constructed the
// meter, which costs a few loads.
class MemoryMeter {
 public:
  MemoryMeter();
  void refresh();
  size_t used() const;

 private:
  size_t total_ = 0;
  const uint64_t* allocated_ = nullptr;  // the allocator's counters of this thread
  const uint64_t* freed_ = nullptr;
  uint64_t balance_at_refresh_ = 0;
};

struct AllocatorFigures {
  size_t allocated = 0;  // bytes handed out
  size_t active = 0;     // bytes in pages that hold any of them
  size_t resident = 0;   // bytes of those pages, and the allocator's own, in memory
  size_t muzzy = 0;      // bytes of pages that the kernel may take back
};
// Costs some microseconds: the allocator updates its figures.
AllocatorFigures allocator_figures();

// Gives free pages back to the kernel. False when the allocator cannot.
bool purge_allocator();
// The allocator's own report, as text; empty when it has none.
std::string allocator_report();
// Has the allocator give pages back from a thread of its own, or not. False when it cannot.
bool set_allocator_background_thread(bool on);
// Reads the number that mallctl() knows by that name ("arenas.page"), after setting it to `wanted`;
// or runs the action of that name, whose number is 0. Returns 0 or an errno: ENOENT when there is
// no such name.
int allocator_number(const std::string& name, std::optional<uint64_t> wanted, uint64_t* value);

// Resident set of the process in bytes, as the kernel counts it.
size_t resident_memory();
// Memory of the machine in bytes.
size_t system_memory();

}  // namespace latchkey::server
