// Port numbers of TCP.
#pragma once

#include <cstdint>

namespace latchkey::base {

inline constexpr int64_t kLastPort = 65535;

}  // namespace latchkey::base
