#include "testing/reply_text.h"

#include <algorithm>
#include <cstdint>

#include "base/text/escape.h"
#include "base/text/number.h"

namespace latchkey::testing {

namespace {

constexpr size_t kMaxShownBytes = 64;

// `size`: of the whole text, of which there may be less.
std::string quoted(std::string_view text, int64_t size) {
  const auto whole = static_cast<size_t>(size);
  std::string shown;
  base::append_quoted(&shown, text.substr(0, std::min(whole, kMaxShownBytes)));
  if (whole > kMaxShownBytes)
    shown += "... (" + std::to_string(whole - kMaxShownBytes) + " more bytes)";
  return shown;
}

// `line`: the header behind its type; `rest`: what follows it.
std::string bulk_text(std::string_view line, std::string_view rest, bool is_verbatim) {
  constexpr size_t kFormatBytes = 4;
  int64_t size = 0;
  if (!base::parse_int64(line, &size) || size < 0) return "(nil)";
  if (!is_verbatim) return quoted(rest, size);
  rest.remove_prefix(std::min(kFormatBytes, rest.size()));
  return quoted(rest, std::max<int64_t>(size - static_cast<int64_t>(kFormatBytes), 0));
}

std::string aggregate_text(std::string_view name, std::string_view line) {
  if (line == "-1") return "(nil)";
  return "(" + std::string(name) + ") " + std::string(line);
}

}  // namespace

std::string short_reply(std::string_view reply) {
  if (reply.empty()) return "(none)";
  const char type = reply.front();
  const size_t end = std::min(reply.find("\r\n"), reply.size());
  const std::string_view line = reply.substr(1, end - 1);
  const std::string_view rest = reply.substr(std::min(end + 2, reply.size()));
  const std::string shown(line.substr(0, kMaxShownBytes));
  switch (type) {
    case '+':
      return shown;
    case '-':
      return "(error) " + shown;
    case ':':
      return "(integer) " + shown;
    case '$':
    case '=':
      return bulk_text(line, rest, type == '=');
    case '*':
      return aggregate_text("array", line);
    case '%':
      return aggregate_text("map", line);
    case '~':
      return aggregate_text("set", line);
    case '>':
      return aggregate_text("push", line);
    case '|':
      return aggregate_text("attribute", line);
    case '_':
      return "(nil)";
    case '#':
      return line == "t" ? "(true)" : "(false)";
    case ',':
      return "(double) " + shown;
    default:
      return "(big number) " + shown;
  }
}

}  // namespace latchkey::testing
