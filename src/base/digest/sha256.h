// SHA-256 (FIPS 180-4), for stored passwords of users.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey::base {

inline constexpr size_t kSha256Bytes = 32;
inline constexpr size_t kSha256Digits = 2 * kSha256Bytes;

std::array<uint8_t, kSha256Bytes> sha256(std::string_view bytes);

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace latchkey::base
