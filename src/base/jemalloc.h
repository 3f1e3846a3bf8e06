// jemalloc's own functions; null where another allocator (a sanitizer's) is linked.
#pragma once

#include <cstddef>

extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));
// What an allocation of that size takes, which is not 0; `flags`: 0.
extern "C" size_t nallocx(size_t size, int flags) __attribute__((weak));
