// Settings that take effect as soon as CONFIG SET changes them.
#include "server/config/live_settings.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "server/process/crash_report.h"
#include "server/process/loop_watchdog.h"
#include "server/process/proc_title.h"
#include "server/process/process.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"
#include "unit/testing/tested_server.h"

namespace latchkey::tests {

namespace {

struct LiveServer : TestedServer {
  LiveServer() : TestedServer("enable-debug-command yes\n"), client(*this) {
    log.set_file(directory.path() / "log");
  }
  std::string set(std::string_view directive, std::string_view value) {
    return client.run_words({"CONFIG", "SET", directive, value});
  }
  std::string get(const std::string& directive) {
    const std::string reply = client.run("CONFIG GET " + directive);
    const size_t at = reply.find("\r\n", reply.find(directive) + directive.size() + 2) + 2;
    return reply.substr(at, reply.size() - at - 2);
  }
  // What is logged of a warning.
  std::string warned(const std::string& text) {
    client.run("DEBUG LOG " + text);
    const std::string all = directory.read("log");
    const size_t end = all.rfind('\n', all.size() - 2);
    return all.substr(end == std::string::npos ? 0 : end + 1);
  }
  TemporaryDirectory directory;
  TestClient client;
};

std::string failed(const std::string& name, const std::string& reason) {
  return error("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + reason);
}

}  // namespace

TEST_CASE("The level and the format of the log change at once", "[live settings]") {
  LiveServer server;
  CHECK(server.set("loglevel", "warning") == kOk);
  CHECK(server.warned("one").ends_with(" # DEBUG LOG: one\n"));
  CHECK(server.set("log-format", "logfmt") == kOk);
  const std::string fields = server.warned("two");
  CHECK(fields.starts_with("pid="));
  CHECK(fields.find("message=\"DEBUG LOG: two\"") != std::string::npos);
  CHECK(server.set("log-format", "legacy") == kOk);
  CHECK(server.set("log-timestamp-format", "milliseconds") == kOk);
  const std::string numbered = server.warned("three");
  const size_t start = numbered.find(' ') + 1;
  CHECK(numbered.substr(start, 13).find_first_not_of("0123456789") == std::string::npos);
  CHECK(server.set("loglevel", "nothing") == kOk);
  CHECK(server.warned("four") == numbered);
}

TEST_CASE("A maxmemory below what is used is told of, and taken", "[live settings]") {
  LiveServer server;
  server.set("loglevel", "warning");
  CHECK(server.set("maxmemory", "1000") == kOk);
  const std::string log = server.directory.read("log");
  CHECK(log.find("WARNING: the new maxmemory value set via CONFIG SET (1000) is smaller than the "
                 "current memory usage (") != std::string::npos);
  CHECK(server.set("maxmemory", "0") == kOk);
  CHECK(server.directory.read("log") == log);
}

TEST_CASE("Settings that cannot be followed stay as they were", "[live settings]") {
  LiveServer server;
  CHECK(server.set("locale-collate", "no_SUCH.locale") ==
        failed("locale-collate", "Invalid locale name"));
  CHECK(server.get("locale-collate") == "");
  CHECK(server.set("locale-collate", "C") == kOk);
  CHECK(server.set("key-memory-histograms", "yes") ==
        failed("key-memory-histograms", "memory tracking cannot be enabled at runtime"));
  CHECK(server.get("key-memory-histograms") == "no");
}

TEST_CASE("Settings of the process change its title, and leave alone what is off",
          "[live settings]") {
  // The arguments of a process, which its title takes the place of.
  char memory[] = "server\0--port\0";
  char* arguments[] = {memory, memory + 7, nullptr};
  char* variables[] = {nullptr};
  char** const own_environment = std::exchange(environ, variables);
  server::ProcessTitle title(2, arguments);
  environ = own_environment;
  LiveServer server;
  server::CrashReporter crash_reporter(server.log);
  server::LoopWatchdog watchdog(server.log);
  server::OomScore oom_score;
  server::register_process_settings(server.server, {.crash_reporter = &crash_reporter,
                                                    .watchdog = &watchdog,
                                                    .oom_score = &oom_score,
                                                    .title = &title,
                                                    .program = "prog"});
  CHECK(server.set("proc-title-template", "{title} x") == kOk);
  CHECK(std::string(memory) == "prog x");
  CHECK(server.set("proc-title-template", "{nothing}").starts_with("-ERR CONFIG SET failed"));
  CHECK(std::string(memory) == "prog x");
  CHECK(server.set("hz", "20") == kOk);
  CHECK(server.get("watchdog-period") == "0");
  CHECK(server.set("oom-score-adj-values", "0 100 200") == kOk);
  server.tick();
}

}  // namespace latchkey::tests
