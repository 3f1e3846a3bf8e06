#include "server/observe/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/jemalloc.h"

extern "C" void malloc_stats_print(void (*write)(void*, const char*), void* argument,
                                   const char* options) __attribute__((weak));
// AddressSanitizer's allocator, which mallinfo2() does not count.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));
// What jemalloc reads when it starts. No arena of its own for what is large; the arena that is
// there by then has its own bound (keep_large_free_pages()). And free pages are taken again however
// many of them are together: left to itself jemalloc takes none for less than a 64th of them, so
// what many clients need for a moment and give back together would be new pages each time, which
// cost more than all else (PUBLISH to 200 clients 0.55 us each, with them 0.10).
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "oversize_threshold:0,lg_extent_max_active_fit:20";
}
// Weak, so that a static program with jemalloc is not linked with the C library's allocator for
// this function alone: the two define the same names.
#pragma weak mallinfo2

namespace latchkey::server {

namespace {

// 4096 is MALLCTL_ARENAS_ALL: all arenas together.
constexpr const char* kAllArenasMuzzyPages = "stats.arenas.4096.pmuzzy";
constexpr const char* kAllArenasCachedBytes = "stats.arenas.4096.tcache_bytes";

template <typename T>
bool read_control(const char* name, T* value) {
  size_t size = sizeof(T);
  return mallctl != nullptr && mallctl(name, value, &size, nullptr, 0) == 0;
}

size_t libc_allocated() {
  if (__sanitizer_get_current_allocated_bytes != nullptr)
    return __sanitizer_get_current_allocated_bytes();
  if (mallinfo2 == nullptr) return 0;
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

MemoryMeter::MemoryMeter() {
  if (!account_.thread().is_known()) {
    refresh();
    return;
  }
  balance_at_refresh_ = account_.thread().balance();
  others_at_refresh_ = others_ = base::BackgroundHeapUse::balance();
  // A thread that has freed what others had allocated may be below zero.
  total_ = static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(balance_at_refresh_), 0));
}

void MemoryMeter::count_own(size_t start, std::function<size_t()> freed_elsewhere) {
  if (!account_.thread().is_known()) return;
  counts_own_ = true;
  account_.set_balance(start);
  freed_elsewhere_ = std::move(freed_elsewhere);
}

void MemoryMeter::refresh() {
  if (counts_own_) return;
  total_ = allocator_figures().allocated;
  balance_at_refresh_ = account_.thread().balance();
  others_at_refresh_ = others_ = base::BackgroundHeapUse::balance();
}

void MemoryMeter::note_others() {
  if (!account_.thread().is_known()) return refresh();
  others_ = base::BackgroundHeapUse::balance();
}

void MemoryMeter::tick() {
  // Of ten a second.
  constexpr int kIdleRefreshes = 10;
  constexpr int kMostSpared = 600;
  if (counts_own_) return;
  const uint64_t others_before = std::exchange(others_, base::BackgroundHeapUse::balance());
  const bool others_work = others_ != others_before;
  if (others_work || !account_.thread().is_known() ||
      account_.thread().balance() != balance_at_refresh_)
    idle_refreshes_ = 0;
  if (others_work && ++spared_refreshes_ <= kMostSpared) return;
  spared_refreshes_ = 0;
  if (idle_refreshes_ == kIdleRefreshes) return;
  ++idle_refreshes_;
  refresh();
}

size_t MemoryMeter::own() const {
  // What it frees without having been billed for it may bring the sum below zero.
  const auto bytes = static_cast<int64_t>(account_.balance() - freed_elsewhere_());
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

size_t MemoryMeter::used() const {
  if (counts_own_) return own();
  return total_ + (account_.thread().balance() - balance_at_refresh_) +
         (others_ - others_at_refresh_);
}

AllocatorFigures allocator_figures() {
  AllocatorFigures figures;
  uint64_t epoch = 1;
  size_t size = sizeof(epoch);
  if (mallctl == nullptr || mallctl("epoch", &epoch, &size, &epoch, size) != 0) {
    figures.allocated = libc_allocated();
    figures.active = figures.allocated;
    figures.resident = resident_memory();
    return figures;
  }
  read_control("stats.allocated", &figures.allocated);
  // Freed memory in a thread's cache is counted by the allocator as allocated.
  size_t cached = 0;
  if (read_control(kAllArenasCachedBytes, &cached))
    figures.allocated -= std::min(cached, figures.allocated);
  read_control("stats.active", &figures.active);
  read_control("stats.resident", &figures.resident);
  size_t muzzy_pages = 0;
  if (read_control(kAllArenasMuzzyPages, &muzzy_pages)) {
    figures.muzzy = muzzy_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }
  return figures;
}

bool purge_allocator() {
  return mallctl != nullptr && mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0) == 0;
}

void keep_large_free_pages() {
  size_t none = size_t{1} << 40;
  if (mallctl != nullptr)
    mallctl("arena.0.oversize_threshold", nullptr, nullptr, &none, sizeof(none));
}

std::string allocator_report() {
  std::string report;
  if (malloc_stats_print == nullptr) return report;
  malloc_stats_print(
      [](void* text, const char* part) { static_cast<std::string*>(text)->append(part); }, &report,
      nullptr);
  return report;
}

bool set_allocator_background_thread(bool on) {
  return mallctl != nullptr && mallctl("background_thread", nullptr, nullptr, &on, sizeof(on)) == 0;
}

int allocator_number(const std::string& name, std::optional<uint64_t> wanted, uint64_t* value) {
  if (mallctl == nullptr) return ENOENT;
  // Numbers have different sizes, and mallctl() wants the exact one.
  int error = EINVAL;
  for (size_t size = sizeof(uint64_t); size > 0 && error == EINVAL; size /= 2) {
    size_t old_size = size;
    *value = 0;
    error = mallctl(name.c_str(), value, &old_size, wanted ? &*wanted : nullptr, wanted ? size : 0);
  }
  // A control that acts takes no number and gives none.
  if (error == EPERM && !wanted) error = mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
  return error;
}

size_t resident_memory() {
  size_t pages_total = 0;
  size_t pages_resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%zu %zu", &pages_total, &pages_resident) != 2) pages_resident = 0;
    std::fclose(file);
  }
  return pages_resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t system_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace latchkey::server
