#include "persist/leftovers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"

namespace latchkey::tests {

namespace {

using persist::writer_of_temporary;

// The id of a process that is no more.
pid_t gone() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

}  // namespace

TEST_CASE("A temporary file tells by its name which process wrote it", "[leftovers]") {
  CHECK(writer_of_temporary("temp-12.rdb") == 12);
  CHECK(writer_of_temporary("temp-1700000000.12.rdb") == 12);
  CHECK(writer_of_temporary("temp-rewriteaof-12.aof") == 12);
  CHECK(writer_of_temporary("temp-rewriteaof-bg-12.aof") == 12);
  CHECK(writer_of_temporary("temp-4194304.rdb") == 4194304);
  for (const std::string name : {"dump.rdb",
                                 "temp-.rdb",
                                 "temp-x.rdb",
                                 "temp-0.rdb",
                                 "temp--12.rdb",
                                 "temp-012.rdb",
                                 "temp-12.rdb.old",
                                 "temp-12",
                                 "temp-1700000000.12",
                                 "temp-rewriteaof-12",
                                 "temp-rewriteaof-bg-12",
                                 "xtemp-12.rdb",
                                 "temp-12.aof",
                                 "temp-rewriteaof-12.rdb",
                                 "temp-a.12.rdb",
                                 "temp-1.2.3.rdb",
                                 "temp-.12.rdb",
                                 "temp-12..rdb",
                                 "temp-rewriteaof-bg-.aof",
                                 "temp-rewriteaof-1.2.aof",
                                 "temp-99999999999.rdb",
                                 "temp-4194305.rdb",
                                 "temp-20240101.rdb",
                                 "temp-1700000000.20240101.rdb",
                                 "temp-rewriteaof-20240101.aof",
                                 "temp-appendonly.aof.manifest",
                                 "temp-appendonly.aof.incr",
                                 "appendonly.aof.1.base.rdb",
                                 "temp- 12.rdb",
                                 ""}) {
    INFO(name);
    CHECK_FALSE(writer_of_temporary(name));
  }
}

TEST_CASE("At start the temporary files of processes that have gone are removed", "[leftovers]") {
  TemporaryDirectory directory;
  ServerFixture server({}, directory.setting());
  const std::string pid = std::to_string(gone());
  const std::string names[] = {"temp-" + pid + ".rdb", "temp-1700000000." + pid + ".rdb",
                               "temp-rewriteaof-" + pid + ".aof",
                               "temp-rewriteaof-bg-" + pid + ".aof"};
  for (const std::string& name : names) directory.write(name, "half");
  persist::remove_leftovers(server.server);
  for (const std::string& name : names) {
    INFO(name);
    CHECK_FALSE(directory.exists(name));
  }
}

TEST_CASE("A process that has ended is gone though nobody has asked how", "[leftovers]") {
  TemporaryDirectory directory;
  ServerFixture server({}, directory.setting());
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  const std::string name = "temp-" + std::to_string(pid) + ".rdb";
  directory.write(name, "half");
  persist::remove_leftovers(server.server);
  CHECK_FALSE(directory.exists(name));
  waitpid(pid, nullptr, 0);
}

TEST_CASE("A file that bears this process's own number is another's that had it before",
          "[leftovers]") {
  TemporaryDirectory directory;
  ServerFixture server({}, directory.setting());
  const std::string name = "temp-" + std::to_string(getpid()) + ".rdb";
  directory.write(name, "half");
  persist::remove_leftovers(server.server);
  CHECK_FALSE(directory.exists(name));
}

TEST_CASE("Files of processes that live, other files, directories and links stay", "[leftovers]") {
  TemporaryDirectory directory;
  ServerFixture server({}, directory.setting());
  const std::string alive = "temp-" + std::to_string(getppid()) + ".rdb";
  const std::string pid = std::to_string(gone());
  directory.write(alive, "half");
  directory.write("dump.rdb", "all");
  directory.write("temp-" + pid + ".rdb.bak", "all");
  directory.write("temp-rewriteaof-" + pid + ".aof/file", "all");
  std::filesystem::create_symlink("dump.rdb", directory.path() / ("temp-" + pid + ".rdb"));
  persist::remove_leftovers(server.server);
  CHECK(directory.exists(alive));
  CHECK(directory.exists("dump.rdb"));
  CHECK(directory.exists("temp-" + pid + ".rdb"));
  CHECK(directory.exists("temp-" + pid + ".rdb.bak"));
  CHECK(directory.exists("temp-rewriteaof-" + pid + ".aof/file"));
}

TEST_CASE("Files that the configuration names stay, whatever they are called", "[leftovers]") {
  TemporaryDirectory directory;
  const std::string pid = std::to_string(gone());
  const std::string dataset = "temp-" + pid + ".rdb";
  const std::string preloaded = "temp-1700000000." + pid + ".rdb";
  const std::string old_aof = "temp-rewriteaof-" + pid + ".aof";
  const std::string users = "temp-rewriteaof-bg-" + pid + ".aof";
  const std::string leftover = "temp-1700000001." + pid + ".rdb";
  for (const std::string& name : {dataset, preloaded, old_aof, users, leftover})
    directory.write(name, "all");
  std::string settings = directory.setting() + "aclfile " + (directory.path() / users).string() +
                         "\nappendfilename " + old_aof + "\n";
  SECTION("by their names") {
    settings += "dbfilename " + dataset + "\npreload-file rdb:" + preloaded + "\n";
  }
  SECTION("by links and paths") {
    std::filesystem::create_symlink(dataset, directory.path() / "dump.rdb");
    settings += "preload-file rdb:" + (directory.path() / preloaded).string() + "\n";
  }
  ServerFixture server({}, settings);
  persist::remove_leftovers(server.server);
  for (const std::string& name : {dataset, preloaded, old_aof, users}) {
    INFO(name);
    CHECK(directory.exists(name));
  }
  CHECK_FALSE(directory.exists(leftover));
}

}  // namespace latchkey::tests
