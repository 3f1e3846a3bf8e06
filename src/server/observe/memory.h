// Memory of the process, as the allocator counts it, and of one of several servers in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/heap_account.h"

namespace latchkey::server {

// Bytes in use by the process, or by one server alone. refresh() asks the allocator for the total;
// used() adds the bytes allocated and freed since by the thread that constructed the meter, which
// costs a few loads, and by background threads, as of the last note_others().
//
// refresh() costs microseconds while other threads are idle. But the allocator locks all its bins
// for it, so that a thread that frees millions of objects meanwhile delays it by milliseconds.
//
// A server is billed for what the thread allocates and frees from a call of its bill() to the next
// call of another's. All meters are of one thread.
class MemoryMeter {
 public:
  // Until the first refresh() it takes what this thread has allocated for all there is: the
  // allocator's statistics cost a tenth of a start.
  MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  // Counts from here on only what this server is billed for, `start` bytes to begin with, less
  // what `freed_elsewhere` says that other threads have freed of it. Where the allocator does not
  // count by thread, it goes on to count the process.
  void count_own(size_t start, std::function<size_t()> freed_elsewhere);
  void bill() { account_.bill(); }
  void refresh();
  // Counts what background threads have allocated and freed until now (base/heap_use.h).
  void note_others();
  // Called at each tick: one of both. The allocator's statistics are spared a server that has been
  // idle for a second, and one whose background threads are at work, though not longer than a
  // minute: threads of libraries are in none but those statistics.
  void tick();
  size_t used() const;

 private:
  size_t own() const;

  base::HeapAccount account_;
  size_t total_ = 0;
  uint64_t balance_at_refresh_ = 0;
  uint64_t others_at_refresh_ = 0;  // balance of background threads
  uint64_t others_ = 0;             // the same when it was last noted
  int idle_refreshes_ = 0;          // since a balance has last changed
  int spared_refreshes_ = 0;        // one after the other, because background threads were at work
  bool counts_own_ = false;
  std::function<size_t()> freed_elsewhere_;
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
// Has the allocator keep the free pages of what was large as it keeps others, for ten seconds,
// until it gives them back. Otherwise each value of 8 MiB is written to fresh pages, which takes
// three times as long as copying it. Called once, before memory is taken in earnest.
void keep_large_free_pages();
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
