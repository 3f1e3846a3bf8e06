// LZF, a fast compression with a modest ratio, for list nodes and for strings in RDB files
// (http://oldhome.schmorp.de/marc/liblzf.html describes the format):
//
//     000LLLLL, bytes          L + 1 literal bytes
//     LLLooooo oooooooo        L + 2 bytes (L < 7) copied from o + 1 bytes before
//     111ooooo L oooooooo      L + 9 bytes copied from o + 1 bytes before
//
// liblzf compresses, so that DUMP returns the bytes that the reference returns. Decompression is
// our own code: with the library, it takes a fifth of the time of loading a dataset of small
// collections.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::store {

// The compressed bytes, or nothing when they would be more than `most` bytes. O(bytes).
std::optional<std::string> lzf_compress(std::string_view bytes, size_t most);

// As lzf_compress(), but writes into `room`; returns the compressed size, 0 if `room` is too small.
size_t lzf_compress_into(std::string_view bytes, std::span<char> room);

// Decompresses into `bytes`. Returns false when `compressed`, which may be any bytes, does not
// decompress to exactly bytes.size() bytes; the contents of `bytes` are then undefined.
bool lzf_decompress(std::string_view compressed, std::span<char> bytes);

}  // namespace latchkey::store
