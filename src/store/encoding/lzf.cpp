#include "store/encoding/lzf.h"

#include <liblzf/lzf.h>

#include <cstring>
#include <limits>

namespace latchkey::store {

namespace {

constexpr size_t kMaxBytes = std::numeric_limits<unsigned>::max();
constexpr size_t kMaxLiterals = 32;
// The control byte of a reference: the shift of its length, and the length that means that another
// byte is added.
constexpr unsigned kLengthShift = 5;
constexpr unsigned kLongLength = 7;

// Copies within the decompressed bytes; source and destination may overlap.
void repeat(char* to, size_t distance, size_t length, size_t room) {
  constexpr size_t kStep = 16;
  const char* from = to - distance;
  if (distance >= kStep && room >= length + kStep) {
    for (size_t i = 0; i < length; i += kStep) std::memcpy(to + i, from + i, kStep);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

}  // namespace

size_t lzf_compress_into(std::string_view bytes, std::span<char> room) {
  if (bytes.empty() || bytes.size() > kMaxBytes || room.empty() || room.size() > kMaxBytes)
    return 0;
  return ::lzf_compress(bytes.data(), static_cast<unsigned>(bytes.size()), room.data(),
                        static_cast<unsigned>(room.size()));
}

std::optional<std::string> lzf_compress(std::string_view bytes, size_t most) {
  if (most > kMaxBytes) return std::nullopt;
  std::string compressed(most, '\0');
  const size_t size = lzf_compress_into(bytes, compressed);
  if (size == 0) return std::nullopt;
  compressed.resize(size);
  compressed.shrink_to_fit();
  return compressed;
}

bool lzf_decompress(std::string_view compressed, std::span<char> bytes) {
  if (compressed.empty() || bytes.empty()) return false;
  const char* in = compressed.data();
  const char* const in_end = in + compressed.size();
  char* out = bytes.data();
  char* const out_end = out + bytes.size();
  const auto next = [&in] { return static_cast<unsigned char>(*in++); };
  while (in < in_end) {
    const size_t control = next();
    const auto room = static_cast<size_t>(out_end - out);
    if (control < kMaxLiterals) {
      const size_t count = control + 1;
      const auto left = static_cast<size_t>(in_end - in);
      if (left < count || room < count) return false;
      // Copying kMaxLiterals bytes is one instruction; the surplus is overwritten later.
      if (left >= kMaxLiterals && room >= kMaxLiterals) {
        std::memcpy(out, in, kMaxLiterals);
      } else {
        std::memcpy(out, in, count);
      }
      in += count;
      out += count;
      continue;
    }
    size_t length = control >> kLengthShift;
    if (in_end - in < (length == kLongLength ? 2 : 1)) return false;
    if (length == kLongLength) length += next();
    length += 2;
    const size_t distance = ((control & 0x1f) << 8 | next()) + 1;
    if (distance > static_cast<size_t>(out - bytes.data()) || length > room) return false;
    repeat(out, distance, length, room);
    out += length;
  }
  return out == out_end;
}

}  // namespace latchkey::store
