#include "base/digest/crc64.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
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

TEST_CASE("All forms of CRC-64 give the same, whatever the size and the address", "[crc64]") {
  Random random(3);
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes += static_cast<char>(random.below(256));
  const std::vector<Crc64Form> forms = runnable_crc64_forms();
  for (size_t size = 0; size < 600; ++size) {
    const size_t offset = random.below(bytes.size() - size);
    // Nothing around the bytes, so that sanitizers see what is read beyond.
    const std::vector<char> alone(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(offset + size));
    const uint64_t before = random.next();
    const uint64_t expected = forms.front()(before, std::string_view(bytes).substr(offset, size));
    for (const Crc64Form form : forms)
      REQUIRE(form(before, std::string_view(alone.data(), size)) == expected);
  }
}

}  // namespace latchkey::base
