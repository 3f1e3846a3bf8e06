#include "persist/rdb/rdb_primitives.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "persist/rdb/byte_stream.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"

namespace latchkey::persist {

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

template <typename Write>
std::string written(Write&& write) {
  std::string bytes;
  StringSink sink(bytes);
  RdbWriter writer(sink, /*compress=*/false);
  write(writer);
  sink.flush();
  return bytes;
}

bool is_length(std::string_view bytes) {
  MemorySource source(bytes);
  RdbReader reader(source);
  uint64_t length = 0;
  return reader.length(&length);
}

}  // namespace

TEST_CASE("A length takes as few bytes as it can, and reads back", "[rdb]") {
  struct Length {
    uint64_t value;
    size_t bytes;
  };
  for (const Length& length : {Length{0, 1}, Length{63, 1}, Length{64, 2}, Length{16'383, 2},
                               Length{16'384, 5}, Length{0xffff'ffff, 5}, Length{0x1'0000'0000, 9},
                               Length{std::numeric_limits<uint64_t>::max(), 9}}) {
    INFO(length.value);
    const std::string bytes = written([&](RdbWriter& writer) { writer.length(length.value); });
    CHECK(bytes.size() == length.bytes);
    MemorySource source(bytes);
    RdbReader reader(source);
    uint64_t read = ~length.value;
    REQUIRE(reader.length(&read));
    CHECK(read == length.value);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
      CHECK_FALSE(is_length(std::string_view(bytes).substr(0, cut)));
  }
}

TEST_CASE("What begins no length is refused", "[rdb]") {
  const std::string rest(16, '\0');
  for (int first = 0; first < 256; ++first) {
    INFO(first);
    // 0x80 and 0x81 announce 32 and 64 bits; two bits that are set announce a form of string.
    CHECK(is_length(tests::byte(first) + rest) == (first <= 0x81));
  }
}

TEST_CASE("A number takes as few bytes as it can, and reads back as text", "[rdb]") {
  struct Number {
    int64_t value;
    size_t bytes;
  };
  for (const Number& number :
       {Number{0, 2}, Number{127, 2}, Number{-128, 2}, Number{128, 3}, Number{-129, 3},
        Number{32'767, 3}, Number{-32'768, 3}, Number{32'768, 5}, Number{-32'769, 5},
        Number{2'147'483'647, 5}, Number{-2'147'483'648, 5}, Number{2'147'483'648, 11},
        Number{-2'147'483'649, 12}, Number{kMax, 20}, Number{kMin, 21}}) {
    const std::string text = std::to_string(number.value);
    INFO(text);
    const std::string bytes = written([&](RdbWriter& writer) { writer.integer(number.value); });
    CHECK(bytes.size() == number.bytes);
    CHECK(written([&](RdbWriter& writer) { writer.string(text); }) == bytes);
    MemorySource source(bytes);
    RdbReader reader(source);
    std::string_view read;
    REQUIRE(reader.string(&read));
    CHECK(read == text);
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      MemorySource part(std::string_view(bytes).substr(0, cut));
      RdbReader reader_of_part(part);
      CHECK_FALSE(reader_of_part.string(&read));
    }
  }
}

TEST_CASE("A long string is read into a blob, compressed or not, and is the same without one",
          "[rdb]") {
  std::string noise(RdbReader::kLong, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i >> 3 ^ i * 31 >> 5);
  for (const std::string& text :
       {std::string("short"), std::string("17"), std::string(RdbReader::kLong - 1, 'x'),
        std::string(RdbReader::kLong, 'x'), std::string(5 * RdbReader::kLong, 'x'), noise}) {
    INFO(text.size());
    std::string bytes;
    StringSink sink(bytes);
    RdbWriter writer(sink, /*compress=*/true);
    writer.string(text);
    sink.flush();
    MemorySource source(bytes);
    RdbReader reader(source);
    std::string_view read;
    base::BlobRef blob = base::BlobRef::create(1);
    REQUIRE(reader.string_or_blob(&read, &blob));
    CHECK(read == text);
    CHECK(bool(blob) == (text.size() >= RdbReader::kLong));
    if (blob) CHECK(blob.view() == text);
    MemorySource again(bytes);
    RdbReader plain(again);
    REQUIRE(plain.string(&read));
    CHECK(read == text);
    MemorySource part(std::string_view(bytes).substr(0, bytes.size() - 1));
    RdbReader reader_of_part(part);
    CHECK_FALSE(reader_of_part.string_or_blob(&read, &blob));
  }
}

}  // namespace latchkey::persist
