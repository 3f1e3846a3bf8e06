#include "server/observe/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::server {

namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr uint64_t kMegabyte = 1024 * 1024;

ProgressFigures bytes(uint64_t done, uint64_t total, int64_t elapsed_us) {
  return {"Loading", ProgressUnit::kBytes, done, total, elapsed_us};
}

}  // namespace

TEST_CASE("A line of progress has percentage, amounts, rate and time left", "[progress]") {
  CHECK(progress_line(bytes(25 * kMegabyte, 100 * kMegabyte, kSecond)) ==
        "Loading: 25 %, 25.00M of 100.00M, 25.00M/s, 3 s left");
  CHECK(progress_line({"Saving", ProgressUnit::kKeys, 300, 400, 3 * kSecond}) ==
        "Saving: 75 %, 300 keys of 400 keys, 100 keys/s, 1 s left");
  CHECK(progress_line(bytes(0, 100, kSecond)) == "Loading: 0 %, 0B of 100B, 0B/s");
  CHECK(progress_line(bytes(100, 100, kSecond)) ==
        "Loading: 100 %, 100B of 100B, 100B/s, 0 s left");
}

TEST_CASE("Without a total that holds only the amount and the rate are told", "[progress]") {
  CHECK(progress_line(bytes(kMegabyte, 0, 2 * kSecond)) == "Loading: 1.00M, 512.00K/s");
  CHECK(progress_line(bytes(kMegabyte, kMegabyte - 1, kSecond)) == "Loading: 1.00M, 1.00M/s");
  CHECK(progress_bar(bytes(kMegabyte, 0, kSecond), 80) == "Loading  1.00M  1.00M/s");
}

TEST_CASE("A bar fills the line", "[progress]") {
  const std::string bar = progress_bar(bytes(50, 100, kSecond), 60);
  CHECK(bar.size() == 59);
  CHECK(bar.starts_with("Loading [####"));
  CHECK(bar.ends_with(" ] 50 %  50B/s  1 s left"));
  // There is no room for one in a narrow terminal.
  CHECK(progress_bar(bytes(50, 100, kSecond), 20) == "Loading 50 %  50B/s  1 s left");
}

TEST_CASE("Progress is told once a second, and not of what is quick", "[progress]") {
  tests::TemporaryDirectory directory;
  base::Logger log;
  log.set_file(directory.path() / "log");
  {
    Progress progress(&log, -1, "Loading", ProgressUnit::kBytes, 100, 5 * kSecond);
    progress.at(10, 5 * kSecond + 999'999);
    CHECK(directory.read("log").empty());
    progress.at(20, 6 * kSecond);
    progress.at(30, 6 * kSecond + 1);
    progress.at(40, 7 * kSecond);
  }
  const std::string text = directory.read("log");
  CHECK(text.find("Loading: 20 %") != std::string::npos);
  CHECK(text.find("Loading: 30 %") == std::string::npos);
  CHECK(text.find("Loading: 40 %") != std::string::npos);
}

TEST_CASE("On a terminal one line is written over, and removed at the end", "[progress]") {
  tests::TemporaryDirectory directory;
  const std::string path = directory.path() / "terminal";
  const int terminal = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(terminal >= 0);
  {
    const auto progress = std::make_unique<Progress>(nullptr, terminal, "Checking",
                                                     ProgressUnit::kBytes, 100, int64_t{0});
    CHECK(directory.read("terminal").empty());
    progress->at(50, kSecond);
    progress->at(75, 2 * kSecond);
  }
  close(terminal);
  const std::string text = directory.read("terminal");
  CHECK(text.starts_with("\r\x1b[KChecking ["));
  CHECK(text.find("75 %") != std::string::npos);
  CHECK(text.ends_with("\r\x1b[K"));
}

TEST_CASE("What was quick leaves no trace on a terminal", "[progress]") {
  tests::TemporaryDirectory directory;
  const int terminal =
      open((directory.path() / "terminal").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(terminal >= 0);
  { Progress progress(nullptr, terminal, "Checking", ProgressUnit::kBytes, 100, 0); }
  close(terminal);
  CHECK(directory.read("terminal").empty());
}

}  // namespace latchkey::server
