// Writes replies in RESP2 or RESP3 (https://redis.io/docs/latest/develop/reference/protocol-spec/)
// into an OutputBuffer.
//
// Types that RESP2 lacks are written as their RESP2 counterparts: maps and sets as arrays, doubles
// and verbatim text as bulk strings, booleans as integers, nulls as null bulk strings or null
// arrays.
//
// Aggregates are written as a header with their size, followed by that many elements (maps: pairs).
// If the number is known only at the end, use the *_later functions. Costs are those of copying the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/blob.h"
#include "resp/output_buffer.h"

namespace latchkey::resp {

class ReplyBuilder {
 public:
  // An aggregate whose header is written after its elements.
  struct Later {
    size_t mark;
  };

  // Blobs of at least this size are appended by reference.
  static constexpr size_t kShareThreshold = 16 * 1024;

  explicit ReplyBuilder(OutputBuffer& out) : out_(&out) {}

  OutputBuffer& out() { return *out_; }
  // Writes to another buffer from here on. Marks of the former buffer are invalid, unless its
  // contents were moved to the new one.
  void set_out(OutputBuffer& out) { out_ = &out; }
  // 2 or 3.
  int protocol() const { return protocol_; }
  void set_protocol(int protocol) { protocol_ = protocol; }
  bool is_resp3() const { return protocol_ == 3; }

  // number() writes 17 significant digits, as servers before Redis 7.2 did, instead of the shortest
  // text that reads back as the number.
  void use_17_digits() { uses_17_digits_ = true; }

  void ok() { raw("+OK\r\n"); }
  // "+text"; the text must not contain line breaks.
  void status(std::string_view text);
  // "-text": code and message ("ERR no such key"). Line breaks become spaces. A text that already
  // begins with '-' gets no second one.
  void error(std::string_view text);
  void integer(int64_t value);
  void boolean(bool value);
  void number(double value);
  // A number by its digits.
  void number(std::string_view digits);
  // Decimal digits of any length.
  void big_number(std::string_view digits);
  void bulk(std::string_view bytes);
  void bulk(int64_t value);
  // By reference if the blob has at least kShareThreshold bytes, unless the output copies all.
  void bulk(base::Blob* blob);
  // One string of the blobs' bytes, each by reference as above.
  void bulk(std::span<const base::BlobRef> blobs);
  // Text with a three-letter format, "txt" or "mkd".
  void verbatim(std::string_view format, std::string_view text);
  void null();
  void null_array();
  void empty_array() { raw("*0\r\n"); }

  void array(size_t size) { header('*', size); }
  void map(size_t pairs) { protocol_ == 3 ? header('%', pairs) : header('*', pairs * 2); }
  void set(size_t size) { header(protocol_ == 3 ? '~' : '*', size); }
  // An array of `size` out-of-band elements; a plain array in RESP2.
  void push(size_t size) { header(protocol_ == 3 ? '>' : '*', size); }
  // Pairs that precede a reply; RESP3 only.
  void attribute(size_t pairs) { header('|', pairs); }

  Later later();
  void array_later(Later later, size_t size) { header_later(later, '*', size); }
  void map_later(Later later, size_t pairs) {
    protocol_ == 3 ? header_later(later, '%', pairs) : header_later(later, '*', pairs * 2);
  }
  void set_later(Later later, size_t size) {
    header_later(later, protocol_ == 3 ? '~' : '*', size);
  }

  // Appends bytes that are already RESP.
  void raw(std::string_view bytes) { out_->append(bytes); }
  // The same for a part of a blob, by reference as bulk() has it. Bytes of the buffer's own must
  // come before the part and behind it.
  void raw(base::Blob* blob, std::string_view part);

  // Number of errors written since construction, and the mark of the last one (OutputBuffer::mark).
  uint64_t error_count() const { return error_count_; }
  size_t last_error_mark() const { return last_error_mark_; }
  // Resets the number of errors to an earlier error_count(), because the later ones were handled.
  void forget_errors_since(uint64_t error_count) { error_count_ = error_count; }

 private:
  static constexpr size_t kLaterSize = 16;
  bool copies(const base::Blob& blob) const {
    return blob.size() < kShareThreshold || out_->copies_all();
  }
  void header(char type, size_t size);
  void header_later(Later later, char type, size_t size);

  OutputBuffer* out_;
  int protocol_ = 2;
  bool uses_17_digits_ = false;
  uint64_t error_count_ = 0;
  size_t last_error_mark_ = 0;
};

}  // namespace latchkey::resp
