#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <thread>

#include "unit/catch.h"
#include "unit/faulty_disk.h"

namespace latchkey::tests {

TEST_CASE("Replacing a file leaves the old one or the new one, whatever fails", "[file]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    directory.write("file", "old");
    FaultyDisk disk(directory.path());
    const std::string path = directory.path() / "file";
    const size_t descriptors = open_descriptors();
    disk.fail(trial.fault);
    const bool done = base::replace_file(path, "new", disk);
    const int error = errno;
    CAPTURE(told(trial, disk), done);
    // What is closed has been synced.
    const bool closing = disk.failed_call().starts_with("close");
    if (!disk.has_failed() || (closing && trial.fault.kind == FaultKind::kOnce)) CHECK(done);
    if (disk.has_failed() && !closing) CHECK_FALSE(done);
    if (!done) CHECK(error == (trial.fault.kind == FaultKind::kFull ? ENOSPC : EIO));
    if (trial.fault.kind == FaultKind::kOnce) CHECK(files_with(directory.path(), ".tmp").empty());
    CHECK(open_descriptors() == descriptors);
    disk.cut_power();
    disk.restore(trial.lost);
    const std::string text = directory.read("file");
    CHECK((text == "new" || (text == "old" && !done)));
    CHECK(base::replace_file(path, "next", disk));
    CHECK(directory.read("file") == "next");
    return disk.has_failed();
  });
  CHECK(count > 30);
}

TEST_CASE("A file is replaced although one of that name was left behind before", "[file]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  directory.write("file.tmp-" + std::to_string(getpid()) + "-0", "of another");
  CHECK(base::replace_file(path, "text", base::disk()));
  CHECK(directory.read("file") == "text");
  CHECK(directory.read("file.tmp-" + std::to_string(getpid()) + "-0") == "of another");
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  const mode_t mask = umask(0);
  umask(mask);
  CHECK((status.st_mode & 0777) == (0644 & ~mask));
}

TEST_CASE("A file that is replaced keeps its mode", "[file]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "secrets";
  for (const mode_t mode : {0600, 0640, 0664}) {
    directory.write("secrets", "old");
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(base::replace_file(path, "new", base::disk()));
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == mode);
    CHECK(directory.read("secrets") == "new");
  }
}

TEST_CASE("A file is read whole or not at all", "[file]") {
  const size_t count = fail_each_call([](const Trial& trial) {
    TemporaryDirectory directory;
    const std::string text(40'000, 'x');
    directory.write("file", text);
    FaultyDisk disk(directory.path());
    const size_t descriptors = open_descriptors();
    disk.fail(trial.fault);
    const auto read = base::read_file(directory.path() / "file", disk);
    CAPTURE(told(trial, disk));
    CHECK((read == text || (!read && disk.has_failed())));
    CHECK(open_descriptors() == descriptors);
    return disk.has_failed();
  });
  CHECK(count > 5);
}

TEST_CASE("What is no file is read within limits", "[file]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "file";
  SECTION("a file is read whole") {
    const std::string text(100'000, 'x');
    directory.write("file", text);
    CHECK(base::read_within(path, {}) == text);
    CHECK(base::read_within(path, {.most_bytes = text.size()}) == text);
  }
  SECTION("one that is too large is not") {
    directory.write("file", "text");
    CHECK_FALSE(base::read_within(path, {.most_bytes = 3}));
    CHECK(errno == EFBIG);
  }
  SECTION("a device has no end") {
    CHECK_FALSE(base::read_within("/dev/zero", {.most_bytes = 1'000'000}));
    CHECK(errno == EFBIG);
    CHECK(base::read_within("/dev/null", {}) == "");
  }
  SECTION("a pipe that nobody writes to is given up, or refused") {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK_FALSE(base::read_within(path, {.pipe_patience_ms = 1}));
    CHECK(errno == ETIMEDOUT);
    CHECK_FALSE(base::read_within(path, {.pipe_patience_ms = 0}));
    CHECK(errno == ENOTSUP);
    CHECK(base::open_regular(path, O_RDONLY, base::disk()) == -1);
    CHECK(errno == ENOTSUP);
  }
  SECTION("a pipe is read until its writers have closed it") {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    std::thread writer([&] {
      const base::Descriptor pipe(path, O_WRONLY);
      for (int i = 0; i < 1000; ++i) base::write_all(pipe.number(), std::string(1000, 'x'));
    });
    CHECK(base::read_within(path, {}) == std::string(1'000'000, 'x'));
    writer.join();
  }
  SECTION("what is not there has its own error") {
    CHECK_FALSE(base::read_within(path, {}));
    CHECK(errno == ENOENT);
    CHECK(base::open_regular(path, O_RDONLY, base::disk()) == -1);
    CHECK(errno == ENOENT);
  }
}

}  // namespace latchkey::tests
