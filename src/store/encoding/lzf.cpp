#include "store/encoding/lzf.h"

#include <liblzf/lzf.h>

#include <limits>

namespace latchkey::store {

namespace {

constexpr size_t kMostBytes = std::numeric_limits<unsigned>::max();

}  // namespace

std::optional<std::string> lzf_compress(std::string_view bytes, size_t most) {
  if (bytes.empty() || bytes.size() > kMostBytes || most == 0 || most > kMostBytes)
    return std::nullopt;
  std::string compressed(most, '\0');
  const unsigned size = ::lzf_compress(bytes.data(), static_cast<unsigned>(bytes.size()),
                                       compressed.data(), static_cast<unsigned>(compressed.size()));
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
