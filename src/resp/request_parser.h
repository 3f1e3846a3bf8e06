// Parses a connection's bytes into requests, in place and without changing them, so that a blocked
// request can be parsed again.
//
// Accepts RESP arrays of bulk strings, and inline commands (a line of words, with quotes and
// escapes as in a shell). Arguments are views into the caller's buffer; a request that is complete
// in the input costs no copy and no allocation, except inline commands with quotes, whose decoded
// words live in the parser until it is called with empty `arguments`. A request that arrives in
// pieces is not parsed again from its start: the parser remembers its position, as offsets, so the
// caller may move the bytes between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace latchkey::resp {

using ArgumentVector = std::vector<std::string_view>;

class RequestParser {
 public:
  struct Limits {
    size_t max_bulk_size = 512u * 1024 * 1024;
    // Clients that have not authenticated may send at most ten arguments of 16 KiB.
    bool authenticated = true;
    // As Valkey 9.1: what stands in the place of a line break is an error, and quoted parts of an
    // inline command's word may be joined to others.
    bool strict_breaks = false;
    bool joins_quotes = false;
  };
  enum class Status : uint8_t { kRequest, kIncomplete, kError };

  // Parses one request from the front of `input`, which begins where the last complete request
  // ended.
  // kRequest: its arguments were appended to `arguments` (none for an empty request, which must be
  // ignored), and *consumed is its size in bytes.
  // kIncomplete: more bytes are needed; call again with the same bytes and more behind them.
  // kError: the stream is invalid from here on; error() says why. `arguments` is unchanged.
  Status parse(std::span<char> input, const Limits& limits, ArgumentVector& arguments,
               size_t* consumed);

  // "Protocol error: ..." after kError.
  std::string_view error() const { return {error_, error_size_}; }

  // The input size needed before parsing can make progress, so that the caller can make room for a
  // large argument at once. 0: not known.
  size_t wanted_size() const { return wanted_size_; }
  // Bytes of an incomplete request that have already been parsed.
  size_t understood_bytes() const { return position_; }
  // Number of complete arguments in an incomplete request, and their bytes.
  size_t partial_arguments() const { return partial_.size(); }
  size_t partial_bytes() const { return partial_bytes_; }
  // Drops an incomplete request: the next call begins at its first byte again.
  void reset();
  // True between the first and the last byte of an array request.
  bool in_request() const { return remaining_ > 0; }

 private:
  struct Range {
    size_t offset;
    size_t size;
  };
  Status parse_array(std::span<char> input, const Limits& limits, ArgumentVector& arguments,
                     size_t* consumed);
  Status parse_inline(std::span<char> input, const Limits& limits, ArgumentVector& arguments,
                      size_t* consumed);
  enum class Header : uint8_t { kRead, kIncomplete, kFailed };
  // Read a header that is not as short as most are: of a request, with the number of its arguments,
  // and of an argument, with its size in bytes. `next`: behind it.
  [[gnu::noinline]] Header read_count(const char* at, const char* end, int64_t* count,
                                      const char** next);
  [[gnu::noinline]] Header read_bulk_size(const char* at, const char* end, const Limits& limits,
                                          int64_t* size, const char** next);
  Status suspend(size_t position, const char* base, ArgumentVector& arguments, size_t first);
  void remember(size_t offset, size_t size) {
    partial_.push_back({offset, size});
    partial_bytes_ += size;
  }
  Status fail(std::string_view reason);
  Header failed(std::string_view reason) {
    fail(reason);
    return Header::kFailed;
  }

  // State of an incomplete array request.
  size_t position_ = 0;     // bytes already parsed
  int64_t remaining_ = 0;   // arguments to come
  int64_t bulk_size_ = -1;  // of the argument at position_; -1: header not parsed yet
  std::vector<Range> partial_;
  // Decoded inline commands with quotes.
  std::vector<std::unique_ptr<char[]>> decoded_;
  size_t partial_bytes_ = 0;

  size_t wanted_size_ = 0;
  char error_[96];
  size_t error_size_ = 0;
};

// Splits a line into words like inline commands and configuration lines: "double" quotes with \n \r
// \t \b \a \xHH and \c escapes, 'single' quotes with \'; a closing quote must be followed by a
// blank, unless `joins_quotes`: then the word goes on. A NUL ends the line. Decodes in place, which
// changes only quoted words; the words are views into `line`. False when quotes are unbalanced.
bool split_words(std::span<char> line, ArgumentVector& words, bool joins_quotes = false);

}  // namespace latchkey::resp
