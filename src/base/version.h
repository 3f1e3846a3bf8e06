// The versions the server reports about itself.
#pragma once

#include <string>

#include "base/own_version.h"

namespace latchkey::base {

// The reference's release whose behaviour and replies Latchkey follows. Files are written in a form
// that Redis 8.0 reads as well (Edition::rdb_version).
inline constexpr const char* kReferenceVersion = "8.6.3";

// Latchkey's own release; the project's meson.build says it, and the build generates own_version.h.
inline constexpr const char* kLatchkeyVersion = LATCHKEY_VERSION;

// At most sixteen hexadecimal digits that distinguish builds of different versions or compilers.
std::string build_id();

// The allocator of the process and its version, such as "jemalloc-5.3.0", or "libc".
std::string allocator_name();

}  // namespace latchkey::base
