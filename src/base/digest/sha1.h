// SHA-1 (FIPS 180-4), for the names of scripts. Not for uses where collisions would be an attack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::base {

inline constexpr size_t kSha1Bytes = 20;

std::array<uint8_t, kSha1Bytes> sha1(std::string_view bytes);

// The digest as 40 lower-case hexadecimal digits.
std::string sha1_hex(std::string_view bytes);

}  // namespace latchkey::base
