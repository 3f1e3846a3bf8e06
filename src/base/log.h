// Logger: the server's log, in the format that test harnesses and operators of the reference know:
//
//   PID:ROLE DD Mon YYYY HH:MM:SS.mmm LEVEL message
//
// ROLE is M (master), S (replica), C (a child, or a process still starting) or X (sentinel); LEVEL
// is one of . - * #. On request lines are in one of the formats of Valkey, for programs that
// collect logs, and with other time stamps (its directives log-format and log-timestamp-format).
// Every line is written by opening, appending to and closing the file, so that log rotation can
// simply rename it; without a file, lines go to standard output or standard error. Time stamps use
// the machine's clock and local time zone, whatever Clock the server uses. A line below the level
// costs one comparison. A logger may be used from several threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::base {

enum class LogLevel { kDebug, kVerbose, kNotice, kWarning, kNothing };

// As above; name=value pairs (logfmt); or an object per line. The latter two hold the first 2 KiB
// of a message.
enum class LogFormat : uint8_t { kLegacy, kLogfmt, kJson };
// "23 Nov 2026 14:01:28.613", "2026-11-23T14:01:29.602+00:00", or Unix time in milliseconds.
enum class LogTime : uint8_t { kLegacy, kIso8601, kMilliseconds };

class Logger {
 public:
  // Logs to standard output at kNotice.
  Logger() = default;
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void set_level(LogLevel level) { level_ = level; }
  LogLevel level() const { return level_; }

  // An empty path means the standard stream.
  void set_file(std::string path) { file_ = std::move(path); }
  const std::string& file() const { return file_; }

  // The descriptor for lines without a file: standard output unless it is set.
  void set_standard_stream(int descriptor) { standard_stream_ = descriptor; }
  int standard_stream() const { return standard_stream_; }

  void set_role(char role) { role_ = role; }

  // Returns the text to log in place of `message`: another one that it has written into `room`, or
  // the message itself where that does not fit. Must not allocate. Null: messages are logged as
  // they are.
  using Rewording = std::string_view (*)(std::string_view message, std::span<char> room);
  void set_rewording(Rewording rewording) { rewording_ = rewording; }

  void set_format(LogFormat format, LogTime time) {
    format_ = format;
    time_ = time;
  }

  // Also sends lines to syslog(3) under `ident`; `facility` is a LOG_* facility. The connection to
  // syslog belongs to the process: the last logger that opens it sets its name.
  void open_syslog(std::string ident, int facility);

  bool enabled(LogLevel level) const { return level >= level_ && level_ != LogLevel::kNothing; }

  // Writes one line; a newline is added. Text that cannot be written is dropped. Does not allocate,
  // so that a crash report can use it.
  void log(LogLevel level, std::string_view message);

  void debug(std::string_view message) { log(LogLevel::kDebug, message); }
  void verbose(std::string_view message) { log(LogLevel::kVerbose, message); }
  void notice(std::string_view message) { log(LogLevel::kNotice, message); }
  void warning(std::string_view message) { log(LogLevel::kWarning, message); }

  // As log() with a printf format, up to 1023 bytes; does not format when the level is off.
  void logf(LogLevel level, const char* format, ...) __attribute__((format(printf, 3, 4)));

  // Writes the text without a time stamp, at any level but kNothing: for crash reports and the
  // start-up logo.
  void raw(std::string_view text);

  // Writes a line as the reference's signal handlers do: "PID:signal-handler (SECONDS) message".
  void signal_line(std::string_view message);

  // The descriptor of the log, for use inside a signal handler: the file, opened for appending, or
  // the standard stream. Release it with close_raw(). Async-signal-safe.
  int open_raw() const;
  void close_raw(int descriptor) const;

 private:
  void write(std::string_view first, std::string_view second, std::string_view third) const;

  LogLevel level_ = LogLevel::kNotice;
  char role_ = 'M';
  LogFormat format_ = LogFormat::kLegacy;
  LogTime time_ = LogTime::kLegacy;
  Rewording rewording_ = nullptr;
  int standard_stream_ = 1;  // STDOUT_FILENO
  bool syslog_ = false;
  std::string file_;
  std::string syslog_ident_;
};

}  // namespace latchkey::base
