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
