#include "server/process/readiness.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text/hex.h"

namespace latchkey::server {

namespace {

using base::LogLevel;

std::string percent_encoded(std::string_view text, std::string_view also_allowed) {
  const auto is_plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").find(c) != std::string_view::npos ||
           also_allowed.find(c) != std::string_view::npos;
  };
  std::string encoded;
  for (const char c : text) {
    if (is_plain(c)) {
      encoded.push_back(c);
    } else {
      encoded.push_back('%');
      base::append_hex(&encoded, static_cast<uint8_t>(c));
    }
  }
  return encoded;
}

// The address to connect to for one to listen on.
std::string host_of(std::string_view address) {
  if (address == "*" || address == "0.0.0.0") return "127.0.0.1";
  if (address == "::*" || address == "::") return "[::1]";
  if (address.find(':') != std::string_view::npos) return "[" + percent_encoded(address, ":") + "]";
  return percent_encoded(address, "");
}

std::string absolute(const Config& config, const std::string& path) {
  return path.starts_with('/') ? path : config.directory().current() + "/" + path;
}

bool is_writable(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
}

}  // namespace

std::string url_of(std::string_view address, const ConfigValues& values) {
  if (address.empty()) return "unix://" + percent_encoded(values.unixsocket, "/");
  if (values.port == 0)
    return "rediss://" + host_of(address) + ":" + std::to_string(values.tls_port);
  return "redis://" + host_of(address) + ":" + std::to_string(values.port);
}

base::Result<void, ConfigError> Readiness::prepare(const Config& config) {
  const auto refuse = [](std::string message) {
    return base::fail_with(ConfigError::of(ConfigError::Kind::kWhole, std::move(message)));
  };
  config_ = &config;
  const int descriptor = config.values().ready_fd;
  if (descriptor >= 0 && descriptor <= STDERR_FILENO)
    return refuse("ready-fd must be above 2: the first three descriptors are the standard streams");
  if (descriptor >= 0 && !is_writable(descriptor))
    return refuse("ready-fd " + std::to_string(descriptor) + " is not open for writing");
  if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (config.values().port_file.empty()) return {};
  port_file_ = absolute(config, config.values().port_file);
  if (unlink(port_file_.c_str()) == 0 || errno == ENOENT) return {};
  return refuse("port-file: the old " + port_file_ + " cannot be removed: " + strerror(errno));
}

bool Readiness::announce(std::string_view address) {
  const ConfigValues& values = config_->values();
  const std::string url = url_of(address, values);
  if (!port_file_.empty() && !write_port_file(address)) return false;
  if (values.ready_fd >= 0) {
    write_url(values.ready_fd, url, "ready-fd");
    close(values.ready_fd);
  }
  if (values.print_url) {
    write_url(STDOUT_FILENO, url, "print-url");
    // The reader sees the end of the stream.
    const base::Descriptor null("/dev/null", O_WRONLY);
    if (null.is_open()) dup2(null.number(), STDOUT_FILENO);
  }
  return true;
}

void Readiness::moved(std::string_view address) {
  if (!written_.empty()) write_port_file(address);
}

void Readiness::withdraw() {
  if (written_.empty() || base::read_file(port_file_) != written_) return;
  unlink(port_file_.c_str());
}

// The file is not synced: it says nothing that is true after a crash.
bool Readiness::write_port_file(std::string_view address) {
  const ConfigValues& values = config_->values();
  const int port = address.empty() ? 0 : values.port != 0 ? values.port : values.tls_port;
  std::string text = "port=" + std::to_string(port) + "\nurl=" + url_of(address, values) + "\n";
  const std::string temporary = port_file_ + "." + std::to_string(getpid()) + ".tmp";
  if (base::write_file(temporary, text) && rename(temporary.c_str(), port_file_.c_str()) == 0) {
    written_ = std::move(text);
    return true;
  }
  log_.logf(LogLevel::kWarning, "port-file: %s cannot be written: %s", port_file_.c_str(),
            strerror(errno));
  unlink(temporary.c_str());
  return false;
}

void Readiness::write_url(int descriptor, const std::string& url, const char* directive) {
  if (base::write_all(descriptor, url + "\n")) return;
  log_.logf(LogLevel::kWarning, "%s: the URL cannot be written: %s", directive, strerror(errno));
}

}  // namespace latchkey::server
