#include "store/encoding/lzf.h"

#include <liblzf/lzf.h>

#include <limits>

namespace latchkey::store {

namespace {

constexpr size_t kMostBytes = std::numeric_limits<unsigned>::max();

}  // namespace

size_t lzf_compress_into(std::string_view bytes, std::span<char> room) {
  if (bytes.empty() || bytes.size() > kMostBytes || room.empty() || room.size() > kMostBytes)
    return 0;
  return ::lzf_compress(bytes.data(), static_cast<unsigned>(bytes.size()), room.data(),
                        static_cast<unsigned>(room.size()));
}

std::optional<std::string> lzf_compress(std::string_view bytes, size_t most) {
  if (most > kMostBytes) return std::nullopt;
  std::string compressed(most, '\0');
  const size_t size = lzf_compress_into(bytes, compressed);
  if (size == 0) return std::nullopt;
  compressed.resize(size);
  compressed.shrink_to_fit();
  return compressed;
}

bool lzf_decompress(std::string_view compressed, std::span<char> bytes) {
  if (compressed.empty() || bytes.empty() || compressed.size() > kMostBytes ||
      bytes.size() > kMostBytes)
    return false;
  return ::lzf_decompress(compressed.data(), static_cast<unsigned>(compressed.size()), bytes.data(),
                          static_cast<unsigned>(bytes.size())) == bytes.size();
}

}  // namespace latchkey::store
