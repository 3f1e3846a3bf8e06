#include "simulation/protocol.h"

#include <charconv>
#include <cstdint>
#include <span>

#include "resp/output_buffer.h"
#include "simulation/steps.h"

namespace latchkey::simulation {

namespace {

[[noreturn]] void malformed(std::string_view bytes) {
  throw CheckFailed("this is no reply: " + shown(std::string(bytes.substr(0, 200)), 200));
}

// The number in the first line, behind its first byte.
int64_t number_of(std::string_view bytes, size_t line_end) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(bytes.data() + 1, bytes.data() + line_end, number);
  if (error != std::errc() || end != bytes.data() + line_end || number < -1) malformed(bytes);
  return number;
}

}  // namespace

std::string encode(const Words& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += bulk(word);
  return text;
}

std::string bulk(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
}

std::string integer(int64_t value) {
  return ":" + std::to_string(value) + "\r\n";
}

size_t reply_size(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (std::string_view("+-:$*").find(bytes[0]) == std::string_view::npos) malformed(bytes);
  const size_t line_end = bytes.find("\r\n");
  if (line_end == std::string_view::npos) return 0;
  size_t size = line_end + 2;
  if (bytes[0] == '$') {
    const int64_t length = number_of(bytes, line_end);
    if (length < 0) return size;
    size += static_cast<size_t>(length) + 2;
    if (bytes.size() < size) return 0;
    if (bytes.substr(size - 2, 2) != "\r\n") malformed(bytes);
  } else if (bytes[0] == '*') {
    const int64_t count = number_of(bytes, line_end);
    for (int64_t i = 0; i < count; ++i) {
      const size_t element = reply_size(bytes.substr(size));
      if (element == 0) return 0;
      size += element;
    }
  }
  return size;
}

std::vector<std::string> elements(std::string_view reply) {
  std::vector<std::string> parts;
  std::string_view rest = reply.substr(reply.find("\r\n") + 2);
  while (!rest.empty()) {
    const size_t size = reply_size(rest);
    parts.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return parts;
}

std::string content(std::string_view reply) {
  const size_t line_end = reply.find("\r\n");
  if (reply[0] != '$') return std::string(reply.substr(1, line_end - 1));
  const std::string_view rest = reply.substr(line_end + 2);
  return std::string(rest.substr(0, rest.empty() ? 0 : rest.size() - 2));
}

}  // namespace latchkey::simulation
