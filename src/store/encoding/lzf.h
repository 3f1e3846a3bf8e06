// LZF, the quick and modest compression of list nodes, and of strings in RDB files
// (http://oldhome.schmorp.de/marc/liblzf.html describes the format):
//
//     000LLLLL, bytes          L + 1 bytes that stand for themselves
//     LLLooooo oooooooo        L + 2 bytes (L < 7) from o + 1 bytes before on
//     111ooooo L oooooooo      L + 9 bytes from o + 1 bytes before on
//
// liblzf compresses, so that DUMP gives the bytes that the reference gives. Restoring is our own:
// loading a dataset of small collections spends a fifth of its time there with the library.
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
