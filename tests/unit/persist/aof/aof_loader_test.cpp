#include "persist/aof/aof_loader.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "commands/groups.h"
#include "persist/loading.h"
#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"

namespace latchkey::tests {

namespace {

using persist::AofLoader;
using Result = persist::AofLoader::Result;

struct Loading {
  explicit Loading(const std::string& settings = {})
      : server({}, directory.setting() + settings), client(server), loader(server.server) {
    commands::add_all(server.server.commands());
    server.log.set_level(base::LogLevel::kNotice);
    server.log.set_file(directory.path() / "log");
  }
  Result load(std::string_view bytes, bool is_last = true) {
    directory.write("file", bytes);
    persist::LoadingFigures figures;
    persist::LoadingScope scope(server.server, figures, bytes.size());
    return loader.load(
        {.name = "file", .path = (directory.path() / "file").string(), .is_last = is_last}, scope);
  }
  bool logged(std::string_view text) const {
    return directory.read("log").find(text) != std::string::npos;
  }

  TemporaryDirectory directory;
  ServerFixture server;
  TestClient client;
  AofLoader loader;
};

const std::string kSetA = request({"SET", "a", "1"});
const std::string kSetB = request({"SET", "b", "2"});

}  // namespace

TEST_CASE("Requests of an append-only file are run in order, each file from database 0") {
  Loading l;
  CHECK(l.load(kSetA + request({"SELECT", "3"}) + request({"INCRBY", "n", "7"})) == Result::kDone);
  CHECK(l.load(kSetB) == Result::kDone);
  CHECK(l.client.run("MGET a b") == bulks({"1", "2"}));
  CHECK(l.server.database(3).size() == 1);
  CHECK(l.server.server.stats().commands_processed == 1);
}

TEST_CASE("Annotations of an append-only file are passed over") {
  Loading l;
  CHECK(l.load("#TS:1628217470\r\n" + kSetA + "#TS:1628217471\r\n# more\n" + kSetB) ==
        Result::kDone);
  CHECK(l.client.run("MGET a b") == bulks({"1", "2"}));
}

TEST_CASE("An empty append-only file is nothing") {
  Loading l;
  CHECK(l.load("") == Result::kEmpty);
}

TEST_CASE("Nothing expires while requests are run") {
  Loading l;
  CHECK(l.load(request({"RPUSH", "list", "foo"}) + request({"PEXPIREAT", "list", "1000"}) +
               request({"RPUSH", "list", "bar"})) == Result::kDone);
  CHECK(l.server.database().size() == 1);
  CHECK(l.client.run("LLEN list") == integer(0));
}

TEST_CASE("A transaction is run when its end has been read") {
  Loading l;
  const std::string whole = request({"MULTI"}) + kSetA + kSetB + request({"EXEC"});
  CHECK(l.load(whole) == Result::kDone);
  CHECK(l.client.run("MGET a b") == bulks({"1", "2"}));
}

TEST_CASE("An append-only file that was cut short loses its last request, wherever the cut is") {
  const std::string first = kSetA;
  for (const std::string& rest : {kSetB, request({"MULTI"}) + kSetB + kSetB + request({"EXEC"}),
                                  std::string("#TS:1628\r\n")}) {
    for (size_t left = 1; left < rest.size(); ++left) {
      Loading l;
      INFO(rest << " up to " << left);
      CHECK(l.load(first + rest.substr(0, left)) == Result::kTruncated);
      CHECK(l.directory.read("file") == first);
      CHECK(l.client.run("MGET a b") == array({bulk("1"), std::string(kNull)}));
    }
  }
}

TEST_CASE("The log says where an append-only file was cut") {
  Loading l;
  CHECK(l.load(kSetA + request({"MULTI"}) + kSetB) == Result::kTruncated);
  CHECK(l.logged("Revert incomplete MULTI/EXEC transaction in AOF file file"));
  CHECK(l.logged("!!! Warning: short read while loading the AOF file file!!!"));
  CHECK(l.logged("!!! Truncating the AOF file at offset " + std::to_string(kSetA.size()) + " !!!"));
  CHECK(l.logged("AOF file loaded anyway because aof-load-truncated is enabled"));
}

TEST_CASE("aof-load-truncated no refuses a file that was cut short, and leaves it alone") {
  Loading l("aof-load-truncated no");
  const std::string bytes = kSetA + kSetB.substr(0, 9);
  CHECK(l.load(bytes) == Result::kFailed);
  CHECK(l.directory.read("file") == bytes);
  CHECK(l.logged("Unexpected end of file reading the append only file file. You can: "));
}

TEST_CASE("A file that others follow is not cut") {
  Loading l;
  const std::string bytes = kSetA + kSetB.substr(0, 9);
  CHECK(l.load(bytes, /*is_last=*/false) == Result::kFailed);
  CHECK(l.directory.read("file") == bytes);
  CHECK(l.logged("Fatal error: the truncated file is not the last file"));
}

TEST_CASE("What is no request ends loading, with the place in the log") {
  for (const std::string& bad : {std::string("!!!"), std::string("*0\r\n"), std::string("*x\r\n"),
                                 std::string("*1\r\n!3\r\n"), std::string("*1\r\n$-1\r\n"),
                                 std::string("*1\n$3\nGET\n"), std::string("*1\r\n$3\r\nGETxx"),
                                 std::string("*99999999999999999999\r\n"), request({"SET", "a"})}) {
    Loading l;
    INFO(bad);
    CHECK(l.load(kSetA + bad + kSetB) == Result::kFailed);
    CHECK(l.logged("it can be up to offset " + std::to_string(kSetA.size())));
    CHECK(
        l.logged("Bad file format reading the append only file file: make a backup of your AOF "
                 "file, then use ./redis-check-aof --fix <filename.manifest>"));
  }
}

TEST_CASE("aof-load-corrupt-tail-max-size cuts a tail that is no request, up to that size") {
  const std::string tail = "*3\r\n$3\r\nSET\r\nwhat" + kSetB;
  const std::string least = "aof-load-corrupt-tail-max-size " + std::to_string(tail.size()) + "\n";
  const bool is_last = GENERATE(true, false);
  {
    Loading l(least);
    CHECK(l.load(kSetA + tail, is_last) == Result::kTruncated);
    CHECK(l.directory.read("file") == kSetA);
    CHECK(l.logged("loaded anyway because aof-load-corrupt-tail-max-size is enabled"));
    CHECK(l.client.run("MGET a b") == array({bulk("1"), std::string(kNull)}));
  }
  Loading l(least);
  CHECK(l.load(kSetA + tail + "x", is_last) == Result::kFailed);
  CHECK(l.directory.read("file") == kSetA + tail + "x");
  CHECK(l.logged("'aof-load-corrupt-tail-max-size' configuration option to " +
                 std::to_string(tail.size() + 1) + " and"));
}

TEST_CASE("A corrupt tail within a transaction takes the transaction with it") {
  Loading l("aof-load-corrupt-tail-max-size 4096\n");
  CHECK(l.load(kSetA + request({"MULTI"}) + kSetB + "!!!") == Result::kTruncated);
  CHECK(l.directory.read("file") == kSetA);
  CHECK(l.client.run("MGET a b") == array({bulk("1"), std::string(kNull)}));
}

TEST_CASE("A size beyond the file costs no memory") {
  Loading l;
  CHECK(l.load(kSetA + "*1\r\n$999999999999999\r\nabc") == Result::kTruncated);
  CHECK(l.load(kSetA + "*999999999999\r\n$3\r\nabc\r\n") == Result::kTruncated);
}

TEST_CASE("A command that is not known ends loading") {
  Loading l;
  CHECK(l.load(kSetA + request({"BLA", "foo"}) + kSetB) == Result::kFailed);
  CHECK(l.logged("Unknown command 'BLA' reading the append only file file"));
  CHECK(l.client.run("MGET a b") == array({bulk("1"), std::string(kNull)}));
}

TEST_CASE("Valkey tells why a request cannot be loaded") {
  Loading l("emulate \"valkey 9.1\"\n");
  const auto refused = [&l](const std::string& request, std::string_view why) {
    CHECK(l.load(request) == Result::kFailed);
    CHECK(l.logged("Error reading the append only file file, error: " + std::string(why)));
  };
  refused(request({"BLA", "foo"}), "unknown command 'BLA', with args beginning with: 'foo'");
  refused(request({"SET", "a"}), "wrong number of arguments for 'set' command");
  refused(request({"OBJECT", "what"}), "unknown subcommand 'what'. Try OBJECT HELP.");
}

TEST_CASE("An error of a request that is loaded is counted and logged, and loading goes on") {
  Loading l;
  CHECK(l.load(kSetA + request({"RPUSH", "a", "x"}) + kSetB) == Result::kDone);
  CHECK(l.client.run("MGET a b") == bulks({"1", "2"}));
  CHECK(l.server.server.stats().unexpected_error_replies == 1);
  CHECK_THAT(l.client.run("INFO errorstats"),
             Catch::Matchers::ContainsSubstring("errorstat_WRONGTYPE:count=1"));
  CHECK(
      l.logged("== CRITICAL == This server is sending an error to its AOF-loading-client: "
               "'-WRONGTYPE Operation against a key holding the wrong kind of value' after "
               "processing the command 'rpush'"));
}

TEST_CASE("propagation-error-behavior panic ends the server at an error of an append-only file") {
  for (const std::string behaviour : {"panic-on-replicas", "panic"}) {
    Loading l("propagation-error-behavior " + behaviour + "\n");
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGABRT, SIG_DFL);  // Catch2 would report a failure
      l.load(kSetA + request({"RPUSH", "a", "x"}));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) == (behaviour == "panic"));
  }
}

}  // namespace latchkey::tests
