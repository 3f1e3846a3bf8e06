#include "base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace latchkey::base {

namespace {

constexpr size_t kLongestStamp = 96;
constexpr size_t kLongestSyslogMessage = 1024;
constexpr size_t kMaxFormatted = 1024;

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

using Stamp = std::array<char, kLongestStamp>;

// "PID:ROLE DD Mon YYYY HH:MM:SS.mmm LEVEL ". Nothing here or in Logger::log allocates, so that a
// line can be written when the heap is broken.
std::string_view format_stamp(char role, LogLevel level, Stamp& text) {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  Stamp date{};
  strftime(date.data(), date.size(), "%d %b %Y %H:%M:%S", &parts);
  const int size =
      snprintf(text.data(), text.size(), "%d:%c %s.%03d %c ", static_cast<int>(getpid()), role,
               date.data(), static_cast<int>(now.tv_usec / 1000), level_mark(level));
  return {text.data(), std::min(static_cast<size_t>(size), text.size() - 1)};
}

}  // namespace

Logger::~Logger() {
  if (syslog_) closelog();
}

void Logger::open_syslog(std::string ident, int facility) {
  if (syslog_) closelog();
  // openlog() keeps the pointer, so the name must live as long as the logger.
  syslog_ident_ = std::move(ident);
  openlog(syslog_ident_.c_str(), LOG_PID | LOG_NDELAY | LOG_NOWAIT, facility);
  syslog_ = true;
}

void Logger::log(LogLevel level, std::string_view message) {
  if (!enabled(level)) return;
  Stamp stamp{};
  write(format_stamp(role_, level, stamp), message, "\n");
  if (syslog_) {
    const auto shown = message.substr(0, kLongestSyslogMessage);
    syslog(syslog_priority(level), "%.*s", static_cast<int>(shown.size()), shown.data());
  }
}

void Logger::logf(LogLevel level, const char* format, ...) {
  if (!enabled(level)) return;
  std::array<char, kMaxFormatted> text{};
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  if (size >= 0) log(level, {text.data(), std::min(static_cast<size_t>(size), text.size() - 1)});
}

void Logger::raw(std::string_view text) {
  if (level_ != LogLevel::kNothing) write(text, {}, {});
}

void Logger::signal_line(std::string_view message) {
  if (level_ == LogLevel::kNothing) return;
  Stamp stamp{};
  const int size = snprintf(stamp.data(), stamp.size(), "%d:signal-handler (%lld) ",
                            static_cast<int>(getpid()), static_cast<long long>(time(nullptr)));
  write({stamp.data(), static_cast<size_t>(size)}, message, "\n");
}

int Logger::open_raw() const {
  if (file_.empty()) return standard_stream_;
  return open(file_.c_str(), O_APPEND | O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
}

void Logger::close_raw(int descriptor) const {
  if (!file_.empty() && descriptor >= 0) close(descriptor);
}

void Logger::write(std::string_view first, std::string_view second, std::string_view third) const {
  const int descriptor = open_raw();
  if (descriptor < 0) return;
  const auto piece = [](std::string_view text) {
    return iovec{const_cast<char*>(text.data()), text.size()};
  };
  // One system call, so that lines of several processes do not mix. A full disk loses the line.
  std::array<iovec, 3> pieces = {piece(first), piece(second), piece(third)};
  while (writev(descriptor, pieces.data(), static_cast<int>(pieces.size())) < 0 && errno == EINTR) {
  }
  close_raw(descriptor);
}

}  // namespace latchkey::base
