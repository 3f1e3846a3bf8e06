// redis-check-aof: what it says, what it returns, and what it does to files.
#include "persist/check_aof.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"
#include "unit/persist/rdb/rdb_bytes.h"

namespace latchkey::tests {

namespace {

using Catch::Contains;

// Has one of the standard streams come from, or go to, a file.
class Redirected {
 public:
  Redirected(int stream, const std::string& path) : stream_(stream), before_(dup(stream)) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    dup2(file, stream);
    close(file);
  }
  ~Redirected() {
    std::fflush(stdout);
    dup2(before_, stream_);
    close(before_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int stream_;
  int before_;
};

struct Checked {
  int status;
  std::string output;
};

// `answer`: the letter that the user types when asked.
Checked check(const TemporaryDirectory& directory, std::vector<std::string> arguments,
              const std::string& answer = "n") {
  arguments.insert(arguments.begin(), "redis-check-aof");
  directory.write("answer", answer);
  std::fflush(stdout);
  std::clearerr(stdin);
  const std::string output = directory.path() / "output";
  ::unlink(output.c_str());
  int status = 0;
  {
    const Redirected in(STDIN_FILENO, directory.path() / "answer");
    const Redirected out(STDOUT_FILENO, output);
    status = persist::run_check_aof(arguments);
  }
  return {status, directory.read("output")};
}

std::string stamped(int second) {
  const std::string text = std::to_string(second);
  return "#TS:" + text + "\r\n" + request({"SET", "at", text});
}

const std::string kRequest = request({"SET", "name", "value"});
const std::string kCut = kRequest.substr(0, kRequest.size() - 4);
const std::string kManifest =
    "file base seq 1 type b\nfile first seq 1 type i\nfile last seq 2 type i\n";

}  // namespace

TEST_CASE("The tool that checks append-only files tells its version", "[check-aof]") {
  const TemporaryDirectory directory;
  for (const char* const word : {"-v", "--version"}) {
    const Checked checked = check(directory, {word});
    CHECK(checked.status == 0);
    CHECK_THAT(checked.output, Contains("redis-check-aof v="));
  }
}

TEST_CASE("A file of an older server is its own last file, which is cut when the user agrees",
          "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  directory.write("file", kRequest + kCut);
  Checked checked = check(directory, {path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("is not valid. Use the --fix option to try fixing it."));
  CHECK(directory.read("file") == kRequest + kCut);
  checked = check(directory, {"--fix", path}, "n");
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("Continue? [y/N]: Aborting..."));
  CHECK(directory.read("file") == kRequest + kCut);
  checked = check(directory, {"--fix", path}, "y");
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("This will shrink the AOF " + path + " from " +
                                      std::to_string(kRequest.size() + kCut.size()) + " bytes"));
  CHECK_THAT(checked.output, Contains("Successfully truncated AOF " + path + "\n"));
  CHECK(directory.read("file") == kRequest);
  checked = check(directory, {"--fix", path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("AOF " + path + " is valid"));
}

TEST_CASE("A file of an older server is cut at a time", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  const std::string whole = stamped(10) + stamped(20) + stamped(30);
  directory.write("file", whole);
  Checked checked = check(directory, {"--truncate-to-timestamp", "30", path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("Truncate nothing in AOF " + path + " to timestamp 30"));
  CHECK(directory.read("file") == whole);
  checked = check(directory, {"--truncate-to-timestamp", "20", path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("Successfully truncated AOF " + path + " to timestamp 20"));
  CHECK(directory.read("file") == stamped(10) + stamped(20));
  checked = check(directory, {"--truncate-to-timestamp", "9", path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("has nothing before timestamp 9"));
  CHECK(directory.read("file") == stamped(10) + stamped(20));
}

TEST_CASE("Of the files of a manifest only the last is cut", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "manifest";
  directory.write("manifest", kManifest);
  const std::vector<std::string> names = {"base", "first", "last"};
  for (const std::string& name : names) directory.write(name, kRequest);
  Checked checked = check(directory, {path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("All AOF files and manifest are valid"));
  for (const std::string& name : names) {
    CAPTURE(name);
    directory.write(name, kRequest + kCut);
    checked = check(directory, {"--fix", path}, "y");
    const bool is_last = name == "last";
    CHECK(checked.status == (is_last ? 0 : 1));
    CHECK((checked.output.find("because it is not the last file") == std::string::npos) == is_last);
    CHECK(directory.read(name) == (is_last ? kRequest : kRequest + kCut));
    directory.write(name, stamped(10) + stamped(20));
    checked = check(directory, {"--truncate-to-timestamp", "10", path});
    CHECK(checked.status == (is_last ? 0 : 1));
    CHECK(directory.read(name) == (is_last ? stamped(10) : stamped(10) + stamped(20)));
    directory.write(name, kRequest);
  }
}

TEST_CASE("A transaction without an end is cut whole", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  directory.write("file", kRequest + request({"MULTI"}) + kRequest);
  Checked checked = check(directory, {path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("Reached EOF before reading EXEC for MULTI"));
  checked = check(directory, {"--fix", path}, "y");
  CHECK(checked.status == 0);
  CHECK(directory.read("file") == kRequest);
  directory.write("file", request({"MULTI"}) + kRequest + request({"EXEC"}) + kRequest);
  CHECK(check(directory, {path}).status == 0);
}

TEST_CASE("Arguments that mean nothing are answered with the usage", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  directory.write("file", kRequest);
  const auto usage = [&](const std::vector<std::string>& arguments) {
    const Checked checked = check(directory, arguments);
    return checked.status == 1 && checked.output.starts_with("Usage: redis-check-aof [--fix|");
  };
  CHECK(usage({}));
  CHECK(usage({"--mend", path}));
  CHECK(usage({"--fix", "10", path}));
  CHECK(usage({"--fix", "10", path, path}));
  for (const char* timestamp : {"", "ten", "10x", "99999999999999999999"}) {
    CAPTURE(timestamp);
    const Checked checked = check(directory, {"--truncate-to-timestamp", timestamp, path});
    CHECK(checked.status == 1);
    CHECK(checked.output == "Invalid timestamp, aborting...\n");
  }
  const Checked missing = check(directory, {path + "-missing"});
  CHECK(missing.status == 1);
  CHECK_THAT(missing.output, Contains("No such file or directory"));
}

TEST_CASE("What is not a request is told with its place and what was expected", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  // What the tool says besides that it starts, of a file that is intact for so many bytes.
  const auto told = [&](const std::string& rest, const std::string& before = kRequest) {
    directory.write("file", before + rest);
    const Checked checked = check(directory, {path});
    CHECK(checked.status == 1);
    CHECK_THAT(checked.output, Contains("AOF analyzed: filename=" + path +
                                        ", size=" + std::to_string(before.size() + rest.size()) +
                                        ", ok_up_to=" + std::to_string(before.size()) + ", "));
    CHECK_THAT(checked.output, Contains("diff=" + std::to_string(rest.size()) + "\n"));
    CHECK_THAT(checked.output,
               Contains("AOF " + path + " is not valid. Use the --fix option to try fixing it.\n"));
    return checked.output;
  };
  REQUIRE(kRequest.size() == 34);
  CHECK_THAT(told("!"), Contains("AOF " + path + " format error\n"));
  CHECK_THAT(told("*1\r\n+PING\r\n"),
             Contains("0x              26: Expected prefix '$', got: '+'\n"));
  CHECK_THAT(told("*1x\r\n"), Contains("0x              22: Expected \\r\\n, got: 780d\n"));
  CHECK_THAT(told("*1\n"), Contains("0x              22: Expected \\r\\n, got: 0a00\n"));
  CHECK_THAT(told("*1"), Contains("0x              22: Expected \\r\\n, got: 0000\n"));
  CHECK_THAT(
      told("*1\r\n$-1\r\n"),
      Contains("0x              26: Expected to read string of -1 bytes, which is not in the "
               "suitable range\n"));
  CHECK_THAT(told("*1\r\n$9223372036854775806\r\n"),
             Contains("Expected to read string of 9223372036854775806 bytes, which is not in"));
  CHECK_THAT(
      told("*1\r\n$9223372036854775805\r\n"),
      Contains("0x              3c: Expected to read 9223372036854775807 bytes, got 0 bytes"));
  CHECK_THAT(told("*1\r\n$4\r\nPING\r"),
             Contains("0x              2a: Expected to read 6 bytes, got 5 bytes\n"));
  CHECK_THAT(told("*1\r\n$4\r\nPINGab"),
             Contains("0x              2a: Expected \\r\\n, got: 6162\n"));
  const std::string name = "AOF " + path;
  CHECK_THAT(told(request({"multi"}) + kRequest + request({"MULTI"})),
             Contains("Unexpected MULTI in " + name + "\n"));
  CHECK_THAT(told(request({"Exec"})), Contains("Unexpected EXEC in " + name + "\n"));
  // Not the names of these commands.
  directory.write("file", request({"MULTIPLE"}) + request({"EXE"}) + request({"EXECUTE"}));
  CHECK(check(directory, {path}).status == 0);
}

TEST_CASE("Lines are counted by the ends of words, and nothing is missing at the end",
          "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  directory.write("file", kRequest + kRequest);
  Checked checked = check(directory, {path});
  CHECK(checked.output == "Start checking Old-Style AOF\nAOF analyzed: filename=" + path +
                              ", size=68, ok_up_to=68, ok_up_to_line=15, diff=0\nAOF " + path +
                              " is valid\n");
  directory.write("file", "");
  checked = check(directory, {path});
  CHECK(checked.status == 0);
  CHECK(checked.output == "Start checking Old-Style AOF\nAOF " + path + " is empty\n");
}

TEST_CASE("A preamble is checked as a file of its kind, and the rest as requests", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  const std::string preamble = rdb_file(byte(0) + rdb_string("a") + rdb_string("b"));
  directory.write("file", preamble + kRequest);
  Checked checked = check(directory, {path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("[offset 0] Checking RDB file " + path + "\n"));
  CHECK_THAT(checked.output, Contains("[info] 1 keys read\n"));
  CHECK_THAT(checked.output, Contains("RDB preamble is OK, proceeding with AOF tail...\n"
                                      "AOF analyzed: filename=" +
                                      path + ", size=57, ok_up_to=57, ok_up_to_line=8, diff=0\n"));
  // Places are those of the file.
  directory.write("file", preamble + kRequest + "*1\n");
  checked = check(directory, {"--fix", path}, "Y");
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("0x              39: Expected \\r\\n, got: 0a00\n"));
  CHECK_THAT(checked.output,
             Contains("from 60 bytes, with 3 bytes, to 57 bytes\nContinue? [y/N]: "));
  CHECK(directory.read("file") == preamble + kRequest);

  directory.write("file", rdb_file(byte(150)) + kRequest);
  checked = check(directory, {"--fix", path}, "y");
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("RDB preamble of AOF file is not sane, aborting.\n"));
  // Too short to begin with one.
  directory.write("file", "REDIS00");
  checked = check(directory, {path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("AOF " + path + " format error\n"));
}

TEST_CASE("Of a manifest's files one with a preamble, one that is empty, one that is missing",
          "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "manifest";
  directory.write("manifest", "# what a person wrote\n" + kManifest);
  directory.write("base", rdb_file(byte(0) + rdb_string("a") + rdb_string("b")));
  directory.write("first", "");
  directory.write("last", kRequest);
  Checked checked = check(directory, {path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("Start checking Multi Part AOF\n"
                                      "Start to check BASE AOF (RDB format).\n"));
  CHECK_THAT(checked.output, Contains("BASE AOF base is valid\nStart to check INCR files.\n"
                                      "INCR AOF first is empty\n"));
  CHECK_THAT(checked.output, Contains("INCR AOF last is valid\n"
                                      "All AOF files and manifest are valid\n"));
  std::filesystem::remove(directory.path() / "first");
  checked = check(directory, {path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("Cannot open file " + (directory.path() / "first").string() +
                                      ": No such file or directory, aborting...\n"));
  std::filesystem::remove(directory.path() / "base");
  checked = check(directory, {path});
  CHECK(checked.status == 1);
  CHECK_THAT(checked.output, Contains("Cannot open file " + (directory.path() / "base").string() +
                                      ": No such file or directory\n"));
  directory.write("manifest", "file base seq 0 type b\n");
  checked = check(directory, {path});
  CHECK(checked.status == 1);
}

TEST_CASE("Annotations that are no timestamps are refused when they are asked for", "[check-aof]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  for (const char* annotation : {"#TS:ten\r\n", "#TS:10\n", "#TS:99999999999999999999\r\n"}) {
    CAPTURE(annotation);
    directory.write("file", kRequest + annotation + kRequest);
    CHECK(check(directory, {path}).status == 0);
    const Checked checked = check(directory, {"--truncate-to-timestamp", "5", path});
    CHECK(checked.status == 1);
    CHECK_THAT(checked.output, Contains("Invalid timestamp annotation\n"));
  }
  directory.write("file", kRequest + "#TX:10\r\n" + kRequest);
  const Checked checked = check(directory, {"--truncate-to-timestamp", "5", path});
  CHECK(checked.status == 0);
  CHECK_THAT(checked.output, Contains("Truncate nothing in AOF " + path + " to timestamp 5\nAOF " +
                                      path + " is valid\n"));
}

}  // namespace latchkey::tests
