#include "sentinel/hello.h"

#include <algorithm>
#include <array>

#include "base/text/number.h"
#include "sentinel/address.h"

namespace latchkey::sentinel {

namespace {

constexpr size_t kFields = 8;
constexpr size_t kLongestHost = 255;

std::optional<std::array<std::string_view, kFields>> split(std::string_view text) {
  std::array<std::string_view, kFields> fields;
  for (size_t i = 0; i < kFields; ++i) {
    const size_t comma = text.find(',');
    // Only the last field is not followed by a comma.
    if ((comma == std::string_view::npos) != (i + 1 == kFields)) return std::nullopt;
    fields[i] = text.substr(0, comma);
    if (comma != std::string_view::npos) text.remove_prefix(comma + 1);
  }
  return fields;
}

bool read_port(std::string_view text, int* port) {
  int64_t number = 0;
  if (!base::parse_int64(text, &number) || number == 0 || !is_port(number)) return false;
  *port = static_cast<int>(number);
  return true;
}

bool read_epoch(std::string_view text, uint64_t* epoch) {
  return base::parse_uint64(text, epoch) && *epoch <= kMaxReceivedEpoch;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kLongestHost &&
         std::all_of(text.begin(), text.end(), [](char byte) { return byte > ' ' && byte < 127; });
}

}  // namespace

std::string format_hello(const Hello& hello) {
  return hello.ip + ',' + std::to_string(hello.port) + ',' + hello.id + ',' +
         std::to_string(hello.current_epoch) + ',' + hello.master_name + ',' + hello.master_host +
         ',' + std::to_string(hello.master_port) + ',' + std::to_string(hello.master_config_epoch);
}

bool is_id(std::string_view text) {
  constexpr size_t kDigits = 40;
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char byte) {
           return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
                  (byte >= 'A' && byte <= 'F');
         });
}

std::optional<Hello> parse_hello(std::string_view text) {
  const auto fields = split(text);
  if (!fields) return std::nullopt;
  const auto& [ip, port, id, epoch, name, host, master_port, config_epoch] = *fields;
  Hello hello;
  if (!is_host(ip) || !read_port(port, &hello.port) || !is_id(id) ||
      !read_epoch(epoch, &hello.current_epoch) || name.empty() || !is_host(host) ||
      !read_port(master_port, &hello.master_port) ||
      !read_epoch(config_epoch, &hello.master_config_epoch)) {
    return std::nullopt;
  }
  hello.ip = ip;
  hello.id = id;
  hello.master_name = name;
  hello.master_host = host;
  return hello;
}

}  // namespace latchkey::sentinel
