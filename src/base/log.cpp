#include "base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace latchkey::base {

namespace {

constexpr size_t kLongestStamp = 96;
constexpr size_t kLongestSyslogMessage = 1024;

char level_mark(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return '.';
    case LogLevel::kVerbose:
      return '-';
    case LogLevel::kNotice:
      return '*';
    default:
      return '#';
  }
}

int syslog_priority(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return LOG_DEBUG;
    case LogLevel::kVerbose:
      return LOG_INFO;
    case LogLevel::kNotice:
      return LOG_NOTICE;
    default:
      return LOG_WARNING;
  }
}

std::string stamp(char role, LogLevel level) {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  std::array<char, kLongestStamp> date{};
  strftime(date.data(), date.size(), "%d %b %Y %H:%M:%S", &parts);
  std::array<char, kLongestStamp> text{};
  const int size =
      snprintf(text.data(), text.size(), "%d:%c %s.%03d %c ", static_cast<int>(getpid()), role,
               date.data(), static_cast<int>(now.tv_usec / 1000), level_mark(level));
  return {text.data(), static_cast<size_t>(size)};
}

}  // namespace

Logger::~Logger() {
  if (syslog_) closelog();
}

void Logger::open_syslog(std::string ident, int facility) {
  if (syslog_) closelog();
  // openlog keeps the pointer, so the name lives as long as the logger.
  syslog_ident_ = std::move(ident);
  openlog(syslog_ident_.c_str(), LOG_PID | LOG_NDELAY | LOG_NOWAIT, facility);
  syslog_ = true;
}

void Logger::log(LogLevel level, std::string_view message) {
  if (!enabled(level)) return;
  std::string line = stamp(role_, level);
  line.append(message).push_back('\n');
  write(line);
  if (syslog_) {
    const auto shown = message.substr(0, kLongestSyslogMessage);
    syslog(syslog_priority(level), "%.*s", static_cast<int>(shown.size()), shown.data());
  }
}

void Logger::logf(LogLevel level, const char* format, ...) {
  if (!enabled(level)) return;
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int size = vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  log(level, text);
}

void Logger::raw(std::string_view text) {
  if (level_ != LogLevel::kNothing) write(text);
}

int Logger::open_raw() const {
  if (file_.empty()) return STDOUT_FILENO;
  return open(file_.c_str(), O_APPEND | O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
}

void Logger::close_raw(int descriptor) const {
  if (!file_.empty() && descriptor >= 0) close(descriptor);
}

void Logger::write(std::string_view text) const {
  const int descriptor = open_raw();
  if (descriptor < 0) return;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  close_raw(descriptor);
}

}  // namespace latchkey::base
