#include "persist/rdb/rdb_primitives.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text/number.h"
#include "store/encoding/lzf.h"

namespace latchkey::persist {

static_assert(std::endian::native == std::endian::little, "numbers are written as they stand");

namespace {

constexpr uint8_t kShortLength = 0;
constexpr uint8_t kMiddleLength = 1;
constexpr uint8_t kForm = 3;
constexpr uint8_t kLength32 = 0x80;
constexpr uint8_t kLength64 = 0x81;

// Shorter strings are not worth compressing, and compression must save this many bytes.
constexpr size_t kShortestCompressed = 21;
constexpr size_t kMinSaved = 4;
// The highest possible ratio of decompressed to compressed bytes: the longest reference has three
// bytes and stands for 264.
constexpr uint64_t kMaxExpansion = 88;

template <typename T>
T byte_swapped(T value) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
  return static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
}

}  // namespace

// --- Writing ------------------------------------------------------------------------------------

void RdbWriter::length(uint64_t length) {
  if (length < 1u << 6) return byte(static_cast<uint8_t>(length));
  if (length < 1u << 14) {
    byte(static_cast<uint8_t>(kMiddleLength << 6 | length >> 8));
    return byte(static_cast<uint8_t>(length));
  }
  if (length <= std::numeric_limits<uint32_t>::max()) {
    byte(kLength32);
    const auto big_endian = byte_swapped(static_cast<uint32_t>(length));
    return raw(&big_endian, sizeof big_endian);
  }
  byte(kLength64);
  const auto big_endian = byte_swapped(length);
  raw(&big_endian, sizeof big_endian);
}

bool RdbWriter::short_integer(int64_t value) {
  const auto put = [this](StringForm form, auto number) {
    char bytes[1 + sizeof number];
    bytes[0] = static_cast<char>(kForm << 6 | static_cast<uint8_t>(form));
    std::memcpy(bytes + 1, &number, sizeof number);
    raw(bytes, sizeof bytes);
    return true;
  };
  if (std::in_range<int8_t>(value)) return put(StringForm::kInt8, static_cast<int8_t>(value));
  if (std::in_range<int16_t>(value)) return put(StringForm::kInt16, static_cast<int16_t>(value));
  if (std::in_range<int32_t>(value)) return put(StringForm::kInt32, static_cast<int32_t>(value));
  return false;
}

void RdbWriter::integer(int64_t value) {
  if (short_integer(value)) return;
  char text[base::kMaxInt64Text];
  const size_t size = base::format_int64(value, text);
  length(size);
  raw(text, size);
}

void RdbWriter::string(std::string_view text) {
  constexpr size_t kLongestShortInteger = 11;
  int64_t value;
  if (text.size() <= kLongestShortInteger && base::parse_int64(text, &value) &&
      short_integer(value))
    return;
  if (compress_ && text.size() >= kShortestCompressed && string_compressed(text)) return;
  length(text.size());
  sink_.write(text);
}

bool RdbWriter::string_compressed(std::string_view text) {
  const size_t most = text.size() - kMinSaved;
  if (room_.size() < most) room_.resize(most);
  const size_t size = store::lzf_compress_into(text, {room_.data(), most});
  if (size == 0) return false;
  compressed_string({room_.data(), size}, text.size());
  return true;
}

void RdbWriter::compressed_string(std::string_view compressed, size_t full_size) {
  byte(kForm << 6 | static_cast<uint8_t>(StringForm::kLzf));
  length(compressed.size());
  length(full_size);
  sink_.write(compressed);
}

// --- Reading ------------------------------------------------------------------------------------

bool RdbReader::fail(std::string reason) {
  if (error_.empty()) error_ = std::move(reason);
  return false;
}

bool RdbReader::short_read() {
  return fail(source_.error() == ByteSource::Error::kShort ? "Unexpected EOF reading RDB file"
                                                           : "Reading failed");
}

bool RdbReader::length_or_form(uint64_t* number, bool* is_form) {
  uint8_t first;
  if (!byte(&first)) return false;
  const uint8_t kind = first >> 6;
  *is_form = kind == kForm;
  *number = first & 0x3f;
  if (kind == kShortLength || kind == kForm) return true;
  if (kind == kMiddleLength) {
    uint8_t second;
    if (!byte(&second)) return false;
    *number = *number << 8 | second;
    return true;
  }
  if (first == kLength32) {
    uint32_t big_endian;
    if (!raw(&big_endian, sizeof big_endian)) return false;
    *number = byte_swapped(big_endian);
    return true;
  }
  if (first == kLength64) {
    uint64_t big_endian;
    if (!raw(&big_endian, sizeof big_endian)) return false;
    *number = byte_swapped(big_endian);
    return true;
  }
  return fail("Unknown length encoding " + std::to_string(first) + " in rdbLoadLen()");
}

bool RdbReader::length(uint64_t* length) {
  bool is_form;
  if (!length_or_form(length, &is_form)) return false;
  return !is_form || fail("A string stands where a length should");
}

bool RdbReader::integer_string(StringForm form, std::string_view* text) {
  int64_t value = 0;
  const auto read_as = [&]<typename T>(T number) {
    if (!raw(&number, sizeof number)) return false;
    value = number;
    return true;
  };
  const bool is_read = form == StringForm::kInt8    ? read_as(int8_t{})
                       : form == StringForm::kInt16 ? read_as(int16_t{})
                                                    : read_as(int32_t{});
  if (!is_read) return false;
  *text = {integer_text_, base::format_int64(value, integer_text_)};
  return true;
}

bool RdbReader::compressed_string(std::string_view* text, base::BlobRef* blob) {
  uint64_t compressed_size;
  uint64_t full_size;
  if (!length(&compressed_size) || !length(&full_size)) return false;
  std::string_view compressed;
  if (!source_.read_view(compressed_size, room_, &compressed)) return short_read();
  if (compressed.empty() || full_size / kMaxExpansion > compressed_size)
    return fail("Invalid LZF compressed string");
  std::span<char> full;
  if (blob != nullptr && full_size >= kLong) {
    *blob = base::BlobRef::create(full_size);
    full = {blob->get()->data(), full_size};
  } else {
    full_.resize(full_size);
    full = full_;
  }
  if (!store::lzf_decompress(compressed, full)) return fail("Invalid LZF compressed string");
  *text = {full.data(), full.size()};
  return true;
}

bool RdbReader::string_or_blob(std::string_view* text, base::BlobRef* blob) {
  if (blob != nullptr) *blob = {};
  uint64_t number;
  bool is_form;
  if (!length_or_form(&number, &is_form)) return false;
  if (!is_form && blob != nullptr && number >= kLong) {
    if (!source_.read_blob(number, blob)) return short_read();
    *text = blob->view();
    return true;
  }
  if (!is_form) return source_.read_view(number, room_, text) || short_read();
  if (number > static_cast<uint8_t>(StringForm::kLzf))
    return fail("Unknown RDB string encoding type " + std::to_string(number));
  const auto form = static_cast<StringForm>(number);
  return form == StringForm::kLzf ? compressed_string(text, blob) : integer_string(form, text);
}

bool RdbReader::skip_string() {
  std::string_view text;
  return string(&text);
}

bool RdbReader::text_double(double* value) {
  constexpr uint8_t kNegativeInfinity = 255;
  constexpr uint8_t kInfinity = 254;
  constexpr uint8_t kNotANumber = 253;
  uint8_t size;
  if (!byte(&size)) return false;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  switch (size) {
    case kNegativeInfinity:
      *value = -kInfinite;
      return true;
    case kInfinity:
      *value = kInfinite;
      return true;
    case kNotANumber:
      *value = std::nan("");
      return true;
    default:
      break;
  }
  char text[kNotANumber];
  if (!raw(text, size)) return false;
  return base::parse_rounded_double({text, size}, value) || fail("A score is no number");
}

}  // namespace latchkey::persist
