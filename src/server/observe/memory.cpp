#include "server/observe/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

// jemalloc's control interface; absent where another allocator (a sanitizer's) is linked.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));
extern "C" void malloc_stats_print(void (*write)(void*, const char*), void* argument,
                                   const char* options) __attribute__((weak));
// AddressSanitizer's allocator, which mallinfo2() does not count.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

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
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

MemoryMeter::MemoryMeter() {
  if (!read_control("thread.allocatedp", &allocated_) ||
      !read_control("thread.deallocatedp", &freed_)) {
    allocated_ = freed_ = nullptr;
  }
  refresh();
}

void MemoryMeter::refresh() {
  total_ = allocator_figures().allocated;
  if (allocated_ != nullptr) balance_at_refresh_ = *allocated_ - *freed_;
}

size_t MemoryMeter::used() const {
  if (allocated_ == nullptr) return total_;
  return total_ + (*allocated_ - *freed_ - balance_at_refresh_);
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
