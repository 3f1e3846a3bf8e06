#include "server/process/process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "server/process/crash_report.h"
#include "server/process/proc_title.h"
#include "unit/catch.h"

namespace latchkey::server {

namespace {

namespace fs = std::filesystem;

struct Fixture {
  Fixture() {
    std::string pattern = fs::temp_directory_path() / "latchkey-process-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    logger.set_file(directory / "log");
  }
  ~Fixture() { fs::remove_all(directory); }

  std::string read(const std::string& name) const {
    std::ifstream file(directory / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Runs `act` in a child and returns how the child ended, as waitpid tells it.
  static int end_of_child(const std::function<void()>& act) {
    const pid_t child = fork();
    if (child == 0) {
      act();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  fs::path directory;
  base::Logger logger;
};

// The signal that ended a child; 0 when it ended by itself.
int signal_of(int status) {
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("A line of the log has the reference's shape", "[process]") {
  Fixture f;
  f.logger.notice("Ready to accept connections tcp");
  f.logger.set_role('S');
  f.logger.warning("oh");
  f.logger.debug("not shown");
  f.logger.logf(base::LogLevel::kWarning, "%d of %s", 5, "six");
  f.logger.signal_line("Received SIGTERM scheduling shutdown...");
  const std::string stamp = " [0-3][0-9] [A-Z][a-z][a-z] [0-9]{4} [0-9:]{8}\\.[0-9]{3} ";
  const std::string pid = std::to_string(getpid());
  CHECK_THAT(f.read("log"),
             Catch::Matchers::Matches(
                 pid + ":M" + stamp + "\\* Ready to accept connections tcp\n" + pid + ":S" + stamp +
                 "# oh\n" + pid + ":S" + stamp + "# 5 of six\n" + pid +
                 ":signal-handler \\([0-9]+\\) Received SIGTERM scheduling shutdown...\n"));
}

TEST_CASE("A log that is taken away is opened anew", "[process]") {
  Fixture f;
  f.logger.notice("one");
  fs::rename(f.directory / "log", f.directory / "old");
  f.logger.notice("two");
  CHECK_THAT(f.read("old"), Catch::Matchers::EndsWith("* one\n"));
  CHECK_THAT(f.read("log"), Catch::Matchers::EndsWith("* two\n"));
  f.logger.set_level(base::LogLevel::kNothing);
  f.logger.warning("three");
  CHECK_THAT(f.read("log"), Catch::Matchers::EndsWith("* two\n"));
}

TEST_CASE("The pid file holds the process id and a line end", "[process]") {
  Fixture f;
  const std::string path = f.directory / "pid";
  write_pidfile(path, f.logger);
  CHECK(f.read("pid") == std::to_string(getpid()) + "\n");
  remove_pidfile(path, f.logger);
  CHECK_FALSE(fs::exists(path));
  write_pidfile("/nonexistent/pid", f.logger);
  CHECK_THAT(f.read("log"),
             Catch::Matchers::EndsWith("Failed to write PID file: No such file or directory\n"));

  ConfigValues values;
  CHECK(pidfile_path(values, false) == "");
  CHECK(pidfile_path(values, true) == "/var/run/redis.pid");
  values.pidfile = "mine";
  CHECK(pidfile_path(values, true) == "mine");
}

TEST_CASE("systemd hears of loading, readiness and stopping", "[process]") {
  Fixture f;
  const std::string path = f.directory / "notify";
  const int receiver = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(bind(receiver, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);

  Supervision supervision(Supervised::kAuto, f.logger);
  CHECK(supervision.active());
  supervision.ready();
  supervision.stopping();
  unsetenv("NOTIFY_SOCKET");

  std::vector<std::string> heard;
  std::array<char, 256> text{};
  for (ssize_t size = 0; (size = recv(receiver, text.data(), text.size(), MSG_DONTWAIT)) > 0;) {
    heard.emplace_back(text.data(), static_cast<size_t>(size));
  }
  close(receiver);
  CHECK(heard == std::vector<std::string>{"STATUS=Redis is loading...\n",
                                          "STATUS=Ready to accept connections\n", "READY=1\n",
                                          "STOPPING=1\n"});
}

TEST_CASE("Supervision that cannot be says so", "[process]") {
  Fixture f;
  CHECK_FALSE(Supervision(Supervised::kSystemd, f.logger).active());
  CHECK_THAT(f.read("log"),
             Catch::Matchers::EndsWith("systemd supervision error: NOTIFY_SOCKET not found!\n"));
  CHECK_FALSE(Supervision(Supervised::kUpstart, f.logger).active());
  CHECK_THAT(f.read("log"), Catch::Matchers::EndsWith(
                                "upstart supervision requested, but UPSTART_JOB not found!\n"));
  CHECK_FALSE(Supervision(Supervised::kAuto, f.logger).active());
}

TEST_CASE("Lists of processors have ranges and steps", "[process]") {
  using List = std::vector<int>;
  CHECK(parse_cpu_list("0,2-5") == List{0, 2, 3, 4, 5});
  CHECK(parse_cpu_list("8-14:2") == List{8, 10, 12, 14});
  CHECK(parse_cpu_list("") == List{});
  CHECK_FALSE(parse_cpu_list("a"));
  CHECK_FALSE(parse_cpu_list("5-2"));
  CHECK_FALSE(parse_cpu_list("1-5:0"));
  CHECK_FALSE(parse_cpu_list("-1"));
}

TEST_CASE("More clients than the system can hold are refused with a number to try", "[process]") {
  CHECK(grow_room_for_clients(1));
  CHECK_THAT(grow_room_for_clients(2000000000).error(),
             Catch::Matchers::StartsWith("The operating system is not able to handle the specified "
                                         "number of clients, try with "));
}

TEST_CASE("The title of the process fills in its template", "[process]") {
  ConfigValues values;
  CHECK(expand_proc_title("{title} {listen-addr} {server-mode}", values, "redis-server") ==
        "redis-server *:6379");
  values.cluster_enabled = true;
  CHECK(expand_proc_title("{title} {listen-addr} {server-mode}", values, "redis-server") ==
        "redis-server *:6379 [cluster]");
  CHECK(expand_proc_title("{{a {port}", values, "") == "{a 6379");
  CHECK_FALSE(expand_proc_title("{nothing}", values, ""));
  CHECK_FALSE(expand_proc_title("{title", values, ""));
}

TEST_CASE("A title takes the place of the arguments and of the environment behind them",
          "[process]") {
  // Three strings that follow one another, and one elsewhere.
  char memory[] = "server\0--port\0A=1\0not its own";
  char elsewhere[] = "B=2";
  char* arguments[] = {memory, memory + 7, nullptr};
  char* variables[] = {memory + 14, elsewhere, nullptr};
  constexpr size_t kRoom = 18;
  char** const own_environment = std::exchange(environ, variables);
  ProcessTitle title(2, arguments);
  environ = own_environment;
  CHECK(std::string(variables[0]) == "A=1");
  CHECK(std::string(variables[1]) == "B=2");
  CHECK(variables[0] != memory + 14);
  const auto shown = [&] { return std::string(memory, kRoom); };
  title.set("latchkey");
  CHECK(shown() == "latchkey" + std::string(kRoom - 8, '\0'));
  title.set("0123456789abcdefg");
  CHECK(shown() == "0123456789abcdefg" + std::string(1, '\0'));
  title.set("0123456789abcdefgh");
  CHECK(shown() == "0123456789abcdefg" + std::string(1, '\0'));
  title.set("");
  CHECK(shown() == std::string(kRoom, '\0'));
  CHECK(std::string(memory + kRoom) == "not its own");
  for (char* variable : {variables[0], variables[1]}) std::free(variable);
}

TEST_CASE("A check that went well is OK, another gives its advice", "[process]") {
  CHECK(format_checks({{"a", std::nullopt}, {"b", "Do this."}}) ==
        "[a]...OK\n[b]...WARNING:\nDo this.\n");
}

TEST_CASE("A crash leaves a report and the signal takes its course", "[process]") {
  Fixture f;
  const int signal = GENERATE(SIGSEGV, SIGABRT);
  const int status = Fixture::end_of_child([&] {
    CrashReporter reporter(f.logger);
    reporter.add_section("INFO OUTPUT", [] { return std::string("uptime:5\n"); });
    raise(signal);
  });
  CHECK(signal_of(status) == signal);
  const std::string log = f.read("log");
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring(
                      "=== REDIS BUG REPORT START: Cut & paste starting from here ==="));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("Redis 8.6.3 crashed by signal: " +
                                                     std::to_string(signal)));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("------ STACK TRACE ------\n"));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("------ STACK TRACE DONE ------\n"));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("------ INFO OUTPUT ------\nuptime:5\n"));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("=== REDIS BUG REPORT END."));
}

TEST_CASE("A failed assertion leaves a report and aborts", "[process]") {
  Fixture f;
  const int status = Fixture::end_of_child([&] {
    CrashReporter reporter(f.logger);
    LK_ASSERT(f.directory.empty());
  });
  CHECK(signal_of(status) == SIGABRT);
  const std::string log = f.read("log");
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("# === ASSERTION FAILED ===\n"));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("'f.directory.empty()' is not true\n"));
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("=== REDIS BUG REPORT END."));
}

TEST_CASE("Without crash-log-enabled a crash is silent", "[process]") {
  Fixture f;
  const int status = Fixture::end_of_child([&] {
    CrashReporter reporter(f.logger);
    reporter.enable(false);
    raise(SIGSEGV);
  });
  CHECK(signal_of(status) == SIGSEGV);
  CHECK(f.read("log").empty());
}

TEST_CASE("What nothing can mend ends in a panic", "[process]") {
  Fixture f;
  const int status = Fixture::end_of_child(
      [&] { CrashReporter(f.logger).panic("DEBUG PANIC called", "debug.cpp", 7); });
  CHECK(signal_of(status) == SIGABRT);
  CHECK_THAT(f.read("log"), Catch::Matchers::ContainsSubstring(
                                "# Guru Meditation: DEBUG PANIC called #debug.cpp:7\n"));
}

}  // namespace latchkey::server
