#include "base/digest/crc64.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::base {

TEST_CASE("CRC-64 gives the published check value", "[crc64]") {
  CHECK(crc64(0, "123456789") == 0xE9C6D914C4B8D9CA);
  CHECK(crc64(0, "") == 0);
}

TEST_CASE("CRC-64 of parts in turn is that of the whole", "[crc64]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * 37));
  const uint64_t whole = crc64(0, text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view = text;
    CHECK(crc64(crc64(0, view.substr(0, cut)), view.substr(cut)) == whole);
  }
}

}  // namespace latchkey::base
