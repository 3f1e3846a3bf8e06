// redis-check-aof: what it says, what it returns, and what it does to files.
#include "persist/check_aof.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "unit/catch.h"
#include "unit/persist/aof/aof_directory_fixture.h"

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

}  // namespace latchkey::tests
