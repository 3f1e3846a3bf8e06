// CRC-64 with the polynomial 0xAD93D23594C935A9 of David T. Jones ("Improving the efficiency and
// quality of hash and checksum algorithms"), reflected, no final complement: the checksum of DUMP
// payloads and RDB files. Eight bytes a step, about one to two gigabytes a second.
#pragma once

#include <cstdint>
#include <string_view>

namespace latchkey::base {

// The checksum of the bytes that gave `crc` (0 at the start) followed by `bytes`. crc64(0,
// "123456789") is 0xE9C6D914C4B8D9CA.
uint64_t crc64(uint64_t crc, std::string_view bytes);

}  // namespace latchkey::base
