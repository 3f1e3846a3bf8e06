// LZF, the quick and modest compression of list nodes (and of strings in RDB files), by liblzf.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::store {

// The bytes compressed, or nothing when that would take more than `most` bytes. O(bytes).
std::optional<std::string> lzf_compress(std::string_view bytes, size_t most);

// The same into room that is there; gives how many bytes it took, 0 when there is too little of it.
size_t lzf_compress_into(std::string_view bytes, std::span<char> room);

// Fills `bytes` from what lzf_compress() gave. False when `compressed`, which may be any bytes, is
// not exactly so many compressed; `bytes` may then hold anything.
bool lzf_decompress(std::string_view compressed, std::span<char> bytes);

}  // namespace latchkey::store
