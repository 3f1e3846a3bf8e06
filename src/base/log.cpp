#include "base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "base/time_units.h"

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

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kVerbose:
      return "info";
    case LogLevel::kNotice:
      return "notice";
    default:
      return "warning";
  }
}

std::string_view role_name(char role) {
  switch (role) {
    case 'M':
      return "primary";
    case 'S':
      return "replica";
    case 'X':
      return "sentinel";
    default:
      return "RDB/AOF";
  }
}

// Nothing here or in Logger::log allocates, so that a line can be written when the heap is broken.
using Stamp = std::array<char, kLongestStamp>;

std::string_view printed(const Stamp& text, int size) {
  return {text.data(), std::min(static_cast<size_t>(size), text.size() - 1)};
}

std::string_view format_time(LogTime format, Stamp& text) {
  timeval now{};
  gettimeofday(&now, nullptr);
  const int milliseconds = static_cast<int>(now.tv_usec / kUsPerMs);
  if (format == LogTime::kMilliseconds) {
    return printed(text, snprintf(text.data(), text.size(), "%lld%03d",
                                  static_cast<long long>(now.tv_sec), milliseconds));
  }
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  Stamp date{};
  if (format == LogTime::kLegacy) {
    strftime(date.data(), date.size(), "%d %b %Y %H:%M:%S", &parts);
    return printed(text, snprintf(text.data(), text.size(), "%s.%03d", date.data(), milliseconds));
  }
  strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> zone{};  // "+hhmm"
  strftime(zone.data(), zone.size(), "%z", &parts);
  return printed(text, snprintf(text.data(), text.size(), "%s.%03d%.3s:%s", date.data(),
                                milliseconds, zone.data(), zone.data() + 3));
}

// "PID:ROLE TIME LEVEL ".
std::string_view format_stamp(char role, LogLevel level, LogTime format, Stamp& text) {
  Stamp time{};
  const std::string_view told = format_time(format, time);
  return printed(
      text, snprintf(text.data(), text.size(), "%d:%c %.*s %c ", static_cast<int>(getpid()), role,
                     static_cast<int>(told.size()), told.data(), level_mark(level)));
}

constexpr size_t kLongestStructuredLine = 2048;

// A line of name=value pairs or a JSON object, as much of the message as fits.
class StructuredLine {
 public:
  explicit StructuredLine(bool json) : json_(json) {}

  std::string_view format(char role, LogLevel level, LogTime time, std::string_view message) {
    Stamp number{};
    Stamp told{};
    const int digits = snprintf(number.data(), number.size(), "%d", static_cast<int>(getpid()));
    if (json_) append("{");
    name("pid");
    append(printed(number, digits));
    word("role", role_name(role), json_);
    word("timestamp", format_time(time, told), true);
    word("level", level_name(level), json_);
    next_name("message");
    append("\"");
    for (const char byte : message) {
      if (size_ + kRoomAfterMessage > text_.size()) break;
      append_escaped(byte);
    }
    append(json_ ? "\"}" : "\"");
    return {text_.data(), size_};
  }

 private:
  // An escaped byte, the end of the line.
  static constexpr size_t kRoomAfterMessage = 8;

  void append(std::string_view text) {
    const size_t count = std::min(text.size(), text_.size() - size_);
    std::copy_n(text.data(), count, text_.data() + size_);
    size_ += count;
  }
  void name(std::string_view text) {
    append(json_ ? "\"" : "");
    append(text);
    append(json_ ? "\":" : "=");
  }
  void next_name(std::string_view text) {
    append(json_ ? "," : " ");
    name(text);
  }
  void word(std::string_view text, std::string_view value, bool quoted) {
    next_name(text);
    if (quoted) append("\"");
    append(value);
    if (quoted) append("\"");
  }
  // In pairs a quote becomes an apostrophe and a line break a blank, as in Valkey.
  void append_escaped(char byte) {
    const auto code = static_cast<unsigned char>(byte);
    if (!json_) {
      const char plain = byte == '"' ? '\'' : byte == '\n' || byte == '\r' ? ' ' : byte;
      return append({&plain, 1});
    }
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    const size_t found = kEscaped.find(byte);
    if (found != std::string_view::npos) {
      append("\\");
      append(kLetters.substr(found, 1));
    } else if (code < ' ') {
      std::array<char, 8> unicode{};
      const int length = snprintf(unicode.data(), unicode.size(), "\\u%04x", code);
      append({unicode.data(), static_cast<size_t>(length)});
    } else {
      append({&byte, 1});
    }
  }

  bool json_;
  size_t size_ = 0;
  std::array<char, kLongestStructuredLine> text_;
};

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
  std::array<char, kMaxFormatted> room;
  if (rewording_ != nullptr) message = rewording_(message, room);
  if (format_ == LogFormat::kLegacy) {
    Stamp stamp{};
    write(format_stamp(role_, level, time_, stamp), message, "\n");
  } else {
    StructuredLine line(format_ == LogFormat::kJson);
    write(line.format(role_, level, time_, message), "\n", {});
  }
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
