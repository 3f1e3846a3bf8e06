// Bytes are restored as if they were compressed, and compressed and restored: no byte beyond the
// room is touched, and they come back as they were.

#include <memory>
#include <string>

#include "base/assert.h"
#include "store/encoding/lzf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latchkey::store;
  if (size < 2) return 0;
  const size_t number = data[0] | size_t{data[1]} << 8;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  // Room of its own, so that a byte too far is seen.
  const auto room = std::make_unique<char[]>(number);
  (void)lzf_decompress(bytes, {room.get(), number});
  if (const size_t used = lzf_compress_into(bytes, {room.get(), number}); used != 0) {
    std::string back(bytes.size(), '\0');
    LK_ASSERT(lzf_decompress({room.get(), used}, back));
    LK_ASSERT(back == bytes);
  }
  return 0;
}
