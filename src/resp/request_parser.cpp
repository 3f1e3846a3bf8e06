#include "resp/request_parser.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>

#include "base/text/escape.h"
#include "base/text/number.h"

namespace latchkey::resp {

namespace {

constexpr size_t kMaxLine = 64 * 1024;
constexpr int64_t kMaxUnauthenticatedArguments = 10;
constexpr int64_t kMaxUnauthenticatedBulk = 16 * 1024;
constexpr std::string_view kNoBreak = "invalid CRLF in request";

enum class Line : uint8_t { kComplete, kIncomplete };

// The first `wanted` in the line that extends to `end`, or null. As in the reference, lines are
// text, so bytes behind a NUL are not searched, and a stream that is not the protocol exceeds the
// line limit.
const char* find_in_line(const char* start, const char* end, char wanted) {
  const auto* found =
      static_cast<const char*>(std::memchr(start, wanted, static_cast<size_t>(end - start)));
  if (found == nullptr || std::memchr(start, '\0', static_cast<size_t>(found - start)) != nullptr)
    return nullptr;
  return found;
}

// Takes the text between `start` and the next "\r\n"; sets *next behind that.
Line take_line(const char* start, const char* end, std::string_view* line, const char** next) {
  const char* stop = find_in_line(start, end, '\r');
  if (stop == nullptr || stop + 1 >= end) return Line::kIncomplete;
  *line = {start, static_cast<size_t>(stop - start)};
  *next = stop + 2;
  return Line::kComplete;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Nearly all headers are a type byte, one or two digits and a line break: "$3", "*2", "$64". This
// reads them without a search. -1: a longer header, or an incomplete one.
int64_t short_header(const char* at, const char* end, const char** next) {
  if (end - at < 5 || !is_digit(at[1])) return -1;
  if (at[2] == '\r') {
    *next = at + 4;
    return at[1] - '0';
  }
  if (at[1] == '0' || !is_digit(at[2]) || at[3] != '\r') return -1;
  *next = at + 5;
  return (at[1] - '0') * 10 + (at[2] - '0');
}

// Characters that end an unquoted word; characters that may surround words.
bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_blank(char c) {
  return ends_word(c) || c == '\v' || c == '\f';
}

}  // namespace

bool split_words(std::span<char> line, ArgumentVector& words, bool joins_quotes) {
  char* in = line.data();
  char* end = std::find(in, in + line.size(), '\0');
  for (;;) {
    while (in < end && is_blank(*in)) ++in;
    if (in == end) return true;
    char* word = in;
    char* out = in;
    char quote = 0;
    while (in < end || quote != 0) {
      if (in == end) return false;
      const char c = *in;
      if (quote == '"' && c == '\\' && in + 1 < end) {
        std::string_view rest(in, static_cast<size_t>(end - in));
        *out++ = base::take_escape(rest);
        in = end - rest.size();
      } else if (quote == '\'' && c == '\\' && in + 1 < end && in[1] == '\'') {
        *out++ = '\'';
        in += 2;
      } else if (quote != 0 && c == quote) {
        ++in;
        quote = 0;
        if (joins_quotes) continue;
        if (in < end && !is_blank(*in)) return false;
        break;
      } else if (quote == 0 && ends_word(c)) {
        break;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
        ++in;
      } else {
        *out++ = c;
        ++in;
      }
    }
    words.emplace_back(word, static_cast<size_t>(out - word));
  }
}

// Every request comes through here: one call, with what it calls inlined.
[[gnu::flatten]] RequestParser::Status RequestParser::parse(std::span<char> input,
                                                            const Limits& limits,
                                                            ArgumentVector& arguments,
                                                            size_t* consumed) {
  if (input.empty()) return Status::kIncomplete;
  const size_t first = arguments.size();
  if (first == 0) decoded_.clear();
  const Status status = remaining_ > 0 || input.front() == '*'
                            ? parse_array(input, limits, arguments, consumed)
                            : parse_inline(input, limits, arguments, consumed);
  if (status == Status::kError) arguments.resize(first);
  return status;
}

RequestParser::Header RequestParser::read_count(const char* at, const char* end, int64_t* count,
                                                const char** next) {
  std::string_view line;
  if (take_line(at + 1, end, &line, next) == Line::kIncomplete)
    return static_cast<size_t>(end - at) > kMaxLine ? failed("too big mbulk count string")
                                                    : Header::kIncomplete;
  if (!base::parse_int64(line, count) || *count > INT_MAX)
    return failed("invalid multibulk length");
  return Header::kRead;
}

RequestParser::Header RequestParser::read_bulk_size(const char* at, const char* end,
                                                    const Limits& limits, int64_t* size,
                                                    const char** next) {
  std::string_view line;
  if (take_line(at, end, &line, next) == Line::kIncomplete)
    return static_cast<size_t>(end - at) > kMaxLine ? failed("too big bulk count string")
                                                    : Header::kIncomplete;
  if (*at != '$') return failed(std::string("expected '$', got '") + *at + "'");
  if (!base::parse_int64(line.substr(1), size) || *size < 0 ||
      static_cast<uint64_t>(*size) > limits.max_bulk_size)
    return failed("invalid bulk length");
  return Header::kRead;
}

RequestParser::Status RequestParser::parse_array(std::span<char> input, const Limits& limits,
                                                 ArgumentVector& arguments, size_t* consumed) {
  const char* base = input.data();
  const char* end = base + input.size();
  const char* at = base + position_;
  const size_t first = arguments.size();
  // Arguments go directly to the caller; those of a request that arrived in pieces are kept until
  // it is complete.
  const bool resuming = remaining_ > 0;
  wanted_size_ = 0;

  if (!resuming) {
    const char* next = nullptr;
    int64_t count = short_header(at, end, &next);
    if (count < 0) [[unlikely]] {
      // Variables of their own: the others stay in registers.
      int64_t long_count = 0;
      const char* behind = nullptr;
      const Header header = read_count(at, end, &long_count, &behind);
      if (header != Header::kRead)
        return header == Header::kFailed ? Status::kError : Status::kIncomplete;
      count = long_count;
      next = behind;
    }
    if (limits.strict_breaks && next[-1] != '\n') return fail(kNoBreak);
    if (count > kMaxUnauthenticatedArguments && !limits.authenticated)
      return fail("unauthenticated multibulk length");
    if (count <= 0) {
      *consumed = static_cast<size_t>(next - base);
      return Status::kRequest;
    }
    remaining_ = count;
    at = next;
  }

  while (remaining_ > 0) {
    if (bulk_size_ < 0) {
      const char* next = nullptr;
      int64_t size = at < end && *at == '$' ? short_header(at, end, &next) : -1;
      if (size < 0) [[unlikely]] {
        int64_t long_size = 0;
        const char* behind = nullptr;
        const Header header = read_bulk_size(at, end, limits, &long_size, &behind);
        if (header == Header::kFailed) return Status::kError;
        if (header == Header::kIncomplete) break;
        size = long_size;
        next = behind;
      }
      if (limits.strict_breaks && next[-1] != '\n') return fail(kNoBreak);
      if (size > kMaxUnauthenticatedBulk && !limits.authenticated)
        return fail("unauthenticated bulk length");
      bulk_size_ = size;
      at = next;
    }
    const auto size = static_cast<size_t>(bulk_size_);
    if (static_cast<size_t>(end - at) < size + 2) {
      wanted_size_ = static_cast<size_t>(at - base) + size + 2;
      break;
    }
    if (limits.strict_breaks && (at[size] != '\r' || at[size + 1] != '\n')) return fail(kNoBreak);
    if (resuming) {
      remember(static_cast<size_t>(at - base), size);
    } else {
      arguments.emplace_back(at, size);
    }
    at += size + 2;
    bulk_size_ = -1;
    --remaining_;
  }
  const auto position = static_cast<size_t>(at - base);
  if (remaining_ > 0) return suspend(position, base, arguments, first);
  for (const Range& range : partial_) arguments.emplace_back(base + range.offset, range.size);
  *consumed = position;
  reset();
  return Status::kRequest;
}

RequestParser::Status RequestParser::suspend(size_t position, const char* base,
                                             ArgumentVector& arguments, size_t first) {
  position_ = position;
  for (size_t i = first; i < arguments.size(); ++i) {
    remember(static_cast<size_t>(arguments[i].data() - base), arguments[i].size());
  }
  arguments.resize(first);
  return Status::kIncomplete;
}

RequestParser::Status RequestParser::parse_inline(std::span<char> input, const Limits& limits,
                                                  ArgumentVector& arguments, size_t* consumed) {
  const char* newline = find_in_line(input.data(), input.data() + input.size(), '\n');
  if (newline == nullptr) {
    if (input.size() > kMaxLine) return fail("too big inline request");
    return Status::kIncomplete;
  }
  auto size = static_cast<size_t>(newline - input.data());
  *consumed = size + 1;
  if (size > 0 && input[size - 1] == '\r') --size;
  std::span<char> line = input.first(size);
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  if (std::any_of(line.begin(), line.end(), is_quote)) {
    auto copy = std::make_unique_for_overwrite<char[]>(size);
    std::copy(line.begin(), line.end(), copy.get());
    line = {copy.get(), size};
    decoded_.push_back(std::move(copy));
  }
  if (!split_words(line, arguments, limits.joins_quotes))
    return fail("unbalanced quotes in request");
  return Status::kRequest;
}

void RequestParser::reset() {
  position_ = 0;
  remaining_ = 0;
  bulk_size_ = -1;
  wanted_size_ = 0;
  partial_bytes_ = 0;
  if (partial_.capacity() != 0) std::vector<Range>().swap(partial_);
}

RequestParser::Status RequestParser::fail(std::string_view reason) {
  constexpr std::string_view kPrefix = "Protocol error: ";
  reset();
  const size_t size = std::min(reason.size(), sizeof(error_) - kPrefix.size());
  std::memcpy(error_, kPrefix.data(), kPrefix.size());
  std::memcpy(error_ + kPrefix.size(), reason.data(), size);
  error_size_ = kPrefix.size() + size;
  return Status::kError;
}

}  // namespace latchkey::resp
