// Lengths, strings and numbers of RDB (rdb_format.h), written and read.
//
// Reading never trusts a length: memory is taken as the bytes arrive. Both sides keep what they
// need for compression from one string to the next, so that a short string costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "persist/byte_stream.h"
#include "persist/rdb_format.h"

namespace latchkey::persist {

class RdbWriter {
 public:
  // `compress`: whether strings are, where it makes them shorter (rdbcompression).
  RdbWriter(ByteSink& sink, bool compress) : sink_(sink), compress_(compress) {}

  ByteSink& sink() { return sink_; }
  bool ok() const { return sink_.ok(); }

  void byte(uint8_t byte) { sink_.write_byte(byte); }
  void opcode(RdbOpcode opcode) { byte(static_cast<uint8_t>(opcode)); }
  void type(RdbType type) { byte(static_cast<uint8_t>(type)); }
  void length(uint64_t length);
  // In the shortest form: as a number where it is one of up to 32 bits, compressed, or as it is.
  void string(std::string_view text);
  // The same of a listpack's bytes and the like.
  void blob(std::span<const char> bytes) { string({bytes.data(), bytes.size()}); }
  // The number's text.
  void integer(int64_t value);
  // A string that has been compressed already (store/encoding/lzf.h), and its size in full.
  void compressed_string(std::string_view compressed, size_t full_size);
  // 8 bytes, little endian.
  void milliseconds(int64_t value) { raw(&value, sizeof value); }
  void binary_double(double value) { raw(&value, sizeof value); }
  void raw(const void* bytes, size_t size) { sink_.write({static_cast<const char*>(bytes), size}); }

 private:
  // Whether the number fits the forms that have no text; then it is written.
  bool short_integer(int64_t value);
  bool string_compressed(std::string_view text);

  ByteSink& sink_;
  bool compress_;
  std::string room_;
};

// All functions return false when the bytes end or are not what they should be; error() tells which
// for the latter.
class RdbReader {
 public:
  explicit RdbReader(ByteSource& source) : source_(source) {}

  ByteSource& source() { return source_; }
  // What is wrong with the bytes, or that they end. Empty while all is well.
  const std::string& error() const { return error_; }
  // Notes the first thing that is wrong. Always false.
  bool fail(std::string reason);

  bool byte(uint8_t* byte) { return source_.read_byte(byte) || short_read(); }
  bool raw(void* to, size_t size) { return source_.read(to, size) || short_read(); }
  bool length(uint64_t* length);
  // A view that lasts until the next call.
  bool string(std::string_view* text);
  bool milliseconds(int64_t* value) { return raw(value, sizeof *value); }
  bool binary_double(double* value) { return raw(value, sizeof *value); }
  // A score as text behind a byte of length, three of whose values mean others. May be no number.
  bool text_double(double* value);
  bool skip_string();

 private:
  bool short_read();
  // False, with nothing noted, is not returned: `is_form` tells what the number is.
  bool length_or_form(uint64_t* number, bool* is_form);
  bool integer_string(StringForm form, std::string_view* text);
  bool compressed_string(std::string_view* text);

  ByteSource& source_;
  std::string error_;
  std::string room_;  // of strings that do not stand in the source's buffer
  std::string full_;  // of strings that were compressed
  char integer_text_[24];
};

}  // namespace latchkey::persist
