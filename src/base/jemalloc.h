// jemalloc's control interface; null where another allocator (a sanitizer's) is linked.
#pragma once

#include <cstddef>

extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));
