// Writes and reads the lengths, strings and numbers of RDB (rdb_format.h).
//
// Reading never trusts a length: memory is allocated as the bytes arrive. Both sides keep their
// compression buffers from one string to the next, so that a short string costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_format.h"

namespace latchkey::persist {

class RdbWriter {
 public:
  // `compress`: whether to compress strings if that makes them shorter (rdbcompression).
  // `version`: of the format; values are written in a layout that it has.
  RdbWriter(ByteSink& sink, bool compress, int version = kRdbVersion)
      : sink_(sink), compress_(compress), version_(version) {}

  int version() const { return version_; }
  // Values that are tied to other keys are written without these ties: their keys may have other
  // names where they are read.
  void leave_out_links() { leaves_out_links_ = true; }
  bool leaves_out_links() const { return leaves_out_links_; }

  ByteSink& sink() { return sink_; }
  bool ok() const { return sink_.ok(); }

  void byte(uint8_t byte) { sink_.write_byte(byte); }
  void opcode(RdbOpcode opcode) { byte(static_cast<uint8_t>(opcode)); }
  void type(RdbType type) { byte(static_cast<uint8_t>(type)); }
  void length(uint64_t length);
  // Writes the shortest form: a number if the text is one of up to 32 bits, else compressed or
  // plain.
  void string(std::string_view text);
  // The same for the bytes of a listpack or a similar encoding.
  void blob(std::span<const char> bytes) { string({bytes.data(), bytes.size()}); }
  // Writes the decimal text of the number as a string.
  void integer(int64_t value);
  // Writes a string that is already compressed (store/encoding/lzf.h), and its uncompressed size.
  void compressed_string(std::string_view compressed, size_t full_size);
  // 8 bytes, little endian.
  void milliseconds(int64_t value) { sink_.write_number(value); }
  void binary_double(double value) { sink_.write_number(value); }
  void raw(const void* bytes, size_t size) { sink_.write({static_cast<const char*>(bytes), size}); }

 private:
  // Writes the number and returns true if it fits one of the integer forms.
  bool short_integer(int64_t value);
  bool string_compressed(std::string_view text);

  ByteSink& sink_;
  bool compress_;
  int version_;
  bool leaves_out_links_ = false;
  std::string room_;
};

// All functions return false when the bytes end or are invalid; error() then says which.
class RdbReader {
 public:
  explicit RdbReader(ByteSource& source) : source_(source) {}

  ByteSource& source() { return source_; }
  // Of the format that is read.
  void set_version(int version) { version_ = version; }
  int version() const { return version_; }
  // What is wrong with the bytes, or that they end. Empty until a function fails.
  const std::string& error() const { return error_; }
  // Stores the first error. Always false.
  bool fail(std::string reason);

  bool byte(uint8_t* byte) { return source_.read_byte(byte) || short_read(); }
  bool raw(void* to, size_t size) { return source_.read(to, size) || short_read(); }
  bool length(uint64_t* length);
  // The view is valid until the next call.
  bool string(std::string_view* text) { return string_or_blob(text, nullptr); }
  // The same; a text of kLong or more is the bytes of a blob made for it, with a shorter one *blob
  // is empty. Without `blob` it is as string().
  static constexpr uint64_t kLong = 64 << 10;
  bool string_or_blob(std::string_view* text, base::BlobRef* blob);
  bool milliseconds(int64_t* value) { return raw(value, sizeof *value); }
  bool binary_double(double* value) { return raw(value, sizeof *value); }
  // Reads a score as text after a length byte; three values of that byte mean -inf, inf and NaN.
  bool text_double(double* value);
  bool skip_string();

 private:
  bool short_read();
  // Reads a length or, if *is_form, a StringForm into *number. error() is set whenever it returns
  // false.
  bool length_or_form(uint64_t* number, bool* is_form);
  bool integer_string(StringForm form, std::string_view* text);
  bool compressed_string(std::string_view* text, base::BlobRef* blob);

  ByteSource& source_;
  int version_ = kRdbVersion;
  std::string error_;
  std::string room_;  // for strings that do not lie in the source's buffer
  std::string full_;  // for decompressed strings
  char integer_text_[24];
};

}  // namespace latchkey::persist
