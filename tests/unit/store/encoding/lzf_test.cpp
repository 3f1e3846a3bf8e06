#include "store/encoding/lzf.h"

#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::store {

namespace {

// Bytes with repetitions, the more the smaller the alphabet.
std::string some_bytes(base::Random& random, size_t size, uint64_t alphabet) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(alphabet));
  return bytes;
}

}  // namespace

TEST_CASE("What LZF has compressed comes back as it was", "[lzf]") {
  base::Random random(3);
  size_t compressed_ones = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes =
        some_bytes(random, 1 + random.below(3000), uint64_t{1} << (1 + random.below(8)));
    const auto compressed = lzf_compress(bytes, bytes.size());
    if (!compressed) continue;
    ++compressed_ones;
    REQUIRE(compressed->size() <= bytes.size());
    std::string back(bytes.size(), '\0');
    REQUIRE(lzf_decompress(*compressed, back));
    REQUIRE(back == bytes);
  }
  CHECK(compressed_ones > 500);
}

TEST_CASE("LZF does not compress what would not become smaller", "[lzf]") {
  base::Random random(4);
  const std::string noise = some_bytes(random, 1000, 256);
  CHECK_FALSE(lzf_compress(noise, noise.size() - 8));
  CHECK_FALSE(lzf_compress("", 10));
  CHECK_FALSE(lzf_compress(std::string(100, 'x'), 0));
}

TEST_CASE("LZF refuses compressed bytes that are damaged or of another size", "[lzf]") {
  base::Random random(5);
  const std::string bytes = some_bytes(random, 500, 2);
  const auto compressed = lzf_compress(bytes, bytes.size());
  REQUIRE(compressed);
  std::string shorter(bytes.size() - 1, '\0');
  CHECK_FALSE(lzf_decompress(*compressed, shorter));
  std::string longer(bytes.size() + 1, '\0');
  CHECK_FALSE(lzf_decompress(*compressed, longer));
  std::string back(bytes.size(), '\0');
  for (size_t size = 0; size < compressed->size(); ++size) {
    CHECK_FALSE(lzf_decompress(std::string_view(*compressed).substr(0, size), back));
  }
}

}  // namespace latchkey::store
