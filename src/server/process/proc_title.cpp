#include "server/process/proc_title.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace latchkey::server {

namespace {

std::string listen_address(const ConfigValues& values) {
  const int port = values.port != 0 ? values.port : values.tls_port;
  if (port == 0 && !values.unixsocket.empty()) return values.unixsocket;
  // The reference shows "*" for a wildcard as well as for no address at all.
  std::string address = values.bind.empty() ? "*" : values.bind.front();
  if (address.starts_with('-')) address.erase(0, 1);
  const bool ipv6 = address.find(':') != std::string::npos;
  return (ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port);
}

std::optional<std::string> variable(std::string_view name, const ConfigValues& values,
                                    std::string_view title, std::string_view config_file) {
  if (name == "title") return std::string(title);
  if (name == "listen-addr") return listen_address(values);
  if (name == "server-mode") {
    if (values.sentinel_mode) return "[sentinel]";
    return values.cluster_enabled ? "[cluster]" : "";
  }
  if (name == "port") return std::to_string(values.port);
  if (name == "tls-port") return std::to_string(values.tls_port);
  if (name == "unixsocket") return values.unixsocket;
  if (name == "config-file") return std::string(config_file);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> expand_proc_title(std::string_view pattern, const ConfigValues& values,
                                             std::string_view title, std::string_view config_file) {
  std::string expanded;
  while (!pattern.empty()) {
    const size_t open = pattern.find('{');
    expanded.append(pattern.substr(0, open));
    if (open == std::string_view::npos) break;
    pattern.remove_prefix(open + 1);
    if (pattern.starts_with('{')) {
      expanded.push_back('{');
      pattern.remove_prefix(1);
      continue;
    }
    const size_t close = pattern.find('}');
    if (close == std::string_view::npos) return std::nullopt;
    const auto value = variable(pattern.substr(0, close), values, title, config_file);
    if (!value) return std::nullopt;
    expanded.append(*value);
    pattern.remove_prefix(close + 1);
  }
  const size_t first = expanded.find_first_not_of(' ');
  if (first == std::string::npos) return std::string();
  return expanded.substr(first, expanded.find_last_not_of(' ') - first + 1);
}

ProcessTitle::ProcessTitle(int argc, char** argv) {
  if (argc == 0) return;
  begin_ = argv[0];
  char* end = begin_;
  // Only strings that follow one another in memory: a program may have replaced some before.
  const auto extend = [&](char* text) {
    if (text == end) end += strlen(text) + 1;
  };
  for (int i = 0; i < argc; ++i) extend(argv[i]);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    extend(*variable);
    *variable = strdup(*variable);
  }
  size_ = static_cast<size_t>(end - begin_);
}

void ProcessTitle::set(std::string_view title) {
  if (size_ == 0) return;
  const size_t shown = std::min(title.size(), size_ - 1);
  memcpy(begin_, title.data(), shown);
  memset(begin_ + shown, 0, size_ - shown);
}

}  // namespace latchkey::server
