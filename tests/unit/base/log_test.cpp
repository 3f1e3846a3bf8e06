#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

using namespace latchkey;
using base::LogFormat;
using base::Logger;
using base::LogTime;
using Catch::Matchers::Matches;

namespace {

// What the logger writes of one message.
std::string line_of(LogFormat format, LogTime time, std::string_view message,
                    base::LogLevel level = base::LogLevel::kNotice, char role = 'M') {
  const tests::TemporaryDirectory directory;
  const std::string path = directory.path() / "log";
  Logger log;
  log.set_file(path);
  log.set_role(role);
  log.set_format(format, time);
  log.log(level, message);
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("A log line begins with the process, its role, the time and the level") {
  CHECK_THAT(line_of(LogFormat::kLegacy, LogTime::kLegacy, "a \"message\""),
             Matches("[0-9]+:M [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8}\\.[0-9]{3} \\* "
                     "a \"message\"\n"));
}

TEST_CASE("The time of a log line can be in the form of ISO 8601, or milliseconds") {
  CHECK_THAT(
      line_of(LogFormat::kLegacy, LogTime::kIso8601, "x"),
      Matches("[0-9]+:M [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} "
              "\\* x\n"));
  CHECK_THAT(line_of(LogFormat::kLegacy, LogTime::kMilliseconds, "x"),
             Matches("[0-9]+:M [0-9]{13} \\* x\n"));
}

TEST_CASE("A log line can be pairs of names and values") {
  CHECK_THAT(line_of(LogFormat::kLogfmt, LogTime::kMilliseconds, "a \"b\"\nc",
                     base::LogLevel::kWarning, 'S'),
             Matches("pid=[0-9]+ role=replica timestamp=\"[0-9]{13}\" level=warning "
                     "message=\"a 'b' c\"\n"));
}

TEST_CASE("A log line can be a JSON object") {
  CHECK_THAT(
      line_of(LogFormat::kJson, LogTime::kMilliseconds, "a \"b\"\\\n\x01", base::LogLevel::kWarning,
              'C'),
      Matches("\\{\"pid\":[0-9]+,\"role\":\"RDB/AOF\",\"timestamp\":\"[0-9]{13}\","
              "\"level\":\"warning\",\"message\":\"a \\\\\"b\\\\\"\\\\\\\\\\\\n\\\\u0001\"\\}\n"));
}

TEST_CASE("A long message is cut in a structured line, which stays one") {
  for (const char byte : {'a', '"', '\x01'}) {
    const std::string line =
        line_of(LogFormat::kJson, LogTime::kIso8601, std::string(10'000, byte));
    CHECK(line.size() < 2100);
    CHECK(line.ends_with("\"}\n"));
    CHECK(line.find('\n') == line.size() - 1);
  }
}

TEST_CASE("Each level has its mark, and each its name in a structured line") {
  using base::LogLevel;
  struct Level {
    LogLevel level;
    char mark;
    std::string name;
  };
  for (const Level& each :
       {Level{LogLevel::kDebug, '.', "debug"}, Level{LogLevel::kVerbose, '-', "info"},
        Level{LogLevel::kNotice, '*', "notice"}, Level{LogLevel::kWarning, '#', "warning"}}) {
    const tests::TemporaryDirectory directory;
    Logger log;
    log.set_level(LogLevel::kDebug);
    log.set_file(directory.path() / "log");
    log.set_role('X');
    log.set_format(LogFormat::kLegacy, LogTime::kMilliseconds);
    log.log(each.level, "x");
    log.set_format(LogFormat::kLogfmt, LogTime::kMilliseconds);
    log.log(each.level, "x");
    CHECK_THAT(directory.read("log"),
               Matches("[0-9]+:X [0-9]{13} \\" + std::string(1, each.mark) +
                       " x\npid=[0-9]+ role=sentinel timestamp=\"[0-9]{13}\" level=" + each.name +
                       " message=\"x\"\n"));
  }
}

TEST_CASE("A level is written from its own on, and nothing at all below that") {
  using base::LogLevel;
  const LogLevel levels[] = {LogLevel::kDebug, LogLevel::kVerbose, LogLevel::kNotice,
                             LogLevel::kWarning};
  for (const LogLevel least : levels) {
    const tests::TemporaryDirectory directory;
    Logger log;
    log.set_level(least);
    log.set_file(directory.path() / "log");
    for (const LogLevel level : levels) {
      const size_t before = directory.read("log").size();
      log.log(level, "x");
      CHECK((directory.read("log").size() > before) == (level >= least));
      CHECK(log.enabled(level) == (level >= least));
    }
  }
}
