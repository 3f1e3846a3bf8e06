#include "base/text/escape.h"

#include "base/text/hex.h"
#include "base/text/text.h"

namespace latchkey::base {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = lower_case(c);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return -1;
}

char plain_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// The escape letter for a byte, or 0 when there is none.
char escape_letter(char c) {
  switch (c) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\b':
      return 'b';
    case '\a':
      return 'a';
    case '"':
    case '\\':
      return c;
    default:
      return 0;
  }
}

}  // namespace

char take_escape(std::string_view& text) {
  if (text.size() >= 4 && text[1] == 'x' && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0) {
    const int value = hex_digit(text[2]) * 16 + hex_digit(text[3]);
    text.remove_prefix(4);
    return static_cast<char>(value);
  }
  const char escaped = plain_escape(text[1]);
  text.remove_prefix(2);
  return escaped;
}

void append_quoted(std::string* out, std::string_view text) {
  *out += '"';
  for (const char c : text) {
    if (const char letter = escape_letter(c); letter != 0) {
      out->append({'\\', letter});
    } else if (c >= ' ' && c <= '~') {
      *out += c;
    } else {
      out->append("\\x");
      append_hex(out, static_cast<uint8_t>(c));
    }
  }
  *out += '"';
}

}  // namespace latchkey::base
