// The versions the server reports about itself.
#pragma once

#include <string>

namespace latchkey::base {

// The release whose behaviour, replies and file formats are followed.
inline constexpr const char* kReferenceVersion = "8.0.2";

// Latchkey's own release.
inline constexpr const char* kLatchkeyVersion = "0.1.0";

// Sixteen or fewer hexadecimal digits that tell builds of different versions or compilers apart.
std::string build_id();

// The allocator the process runs on and its version, as "jemalloc-5.3.0", or "libc".
std::string allocator_name();

}  // namespace latchkey::base
