// The disk that tests of faults stand on: it loses what was not synced, and nothing else.
#include "unit/faulty_disk.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "unit/catch.h"

namespace latchkey::tests {

namespace {

struct Scene {
  // Writes a file without syncing anything.
  void write(const std::string& name, std::string_view bytes) {
    const base::Descriptor file(path(name), O_WRONLY | O_CREAT | O_TRUNC, disk);
    REQUIRE(base::write_all(file.number(), bytes, disk));
  }
  void sync(const std::string& name) {
    const base::Descriptor file(path(name), O_RDONLY, disk);
    REQUIRE(disk.sync(file.number()));
  }
  void sync_names() { REQUIRE(base::sync_directory(directory.path(), disk)); }
  std::string path(const std::string& name) const { return directory.path() / name; }

  TemporaryDirectory directory;
  FaultyDisk disk{directory.path()};
};

}  // namespace

TEST_CASE("A loss of power takes what was not synced", "[faulty-disk]") {
  Scene scene;
  scene.write("file", "old");
  SECTION("all of it, without any sync") {
    scene.disk.restore(Lost::kEverything);
    CHECK_FALSE(scene.directory.exists("file"));
  }
  SECTION("the name, if only the contents were synced") {
    scene.sync("file");
    scene.disk.restore(Lost::kEverything);
    CHECK_FALSE(scene.directory.exists("file"));
  }
  SECTION("the contents, if only the name was synced") {
    scene.sync_names();
    scene.disk.restore(Lost::kEverything);
    CHECK(scene.directory.exists("file"));
    CHECK(scene.directory.read("file").empty());
  }
  SECTION("what was written since") {
    scene.sync("file");
    scene.sync_names();
    scene.write("file", "new");
    SECTION("in place") {
      scene.disk.restore(Lost::kEverything);
      CHECK(scene.directory.read("file") == "old");
    }
    SECTION("beside it, with the name changed") {
      scene.write("other", "other");
      REQUIRE(scene.disk.rename(scene.path("other"), scene.path("file")));
      SECTION("which is lost") {
        scene.disk.restore(Lost::kNames);
        CHECK(scene.directory.read("file") == "new");
      }
      SECTION("which is not, while the contents are") {
        scene.disk.restore(Lost::kContents);
        CHECK(scene.directory.read("file").empty());
      }
    }
    SECTION("and nothing when it is only the process that ends") {
      scene.disk.restore(Lost::kNothing);
      CHECK(scene.directory.read("file") == "new");
    }
  }
  SECTION("so that a removed file is there again, with its contents") {
    scene.sync("file");
    scene.sync_names();
    REQUIRE(scene.disk.remove(scene.path("file")));
    scene.write("next", "next");
    scene.disk.restore(Lost::kEverything);
    CHECK(scene.directory.read("file") == "old");
    CHECK_FALSE(scene.directory.exists("next"));
  }
}

TEST_CASE("The directories in it lose their names too", "[faulty-disk]") {
  Scene scene;
  REQUIRE(scene.disk.create_directory(scene.path("inner"), 0755));
  scene.write("inner/file", "text");
  scene.sync("inner/file");
  REQUIRE(base::sync_directory(scene.directory.path() / "inner", scene.disk));
  SECTION("of which the directory itself is one") {
    scene.disk.restore(Lost::kEverything);
    CHECK_FALSE(scene.directory.exists("inner"));
  }
  SECTION("unless they are synced") {
    scene.sync_names();
    scene.disk.restore(Lost::kEverything);
    CHECK(scene.directory.read("inner/file") == "text");
  }
}

TEST_CASE("The call that is to fail does, in whatever process it is made", "[faulty-disk]") {
  Scene scene;
  scene.write("file", "text");
  SECTION("once") {
    scene.disk.fail({.at = 1, .error = EDQUOT});
    CHECK(scene.disk.rename(scene.path("file"), scene.path("a")));
    CHECK_FALSE(scene.disk.has_failed());
    CHECK_FALSE(scene.disk.rename(scene.path("a"), scene.path("b")));
    CHECK(errno == EDQUOT);
    CHECK(scene.disk.failed_call() == "rename b");
    CHECK(scene.disk.rename(scene.path("a"), scene.path("b")));
  }
  SECTION("and all after it") {
    scene.disk.fail({.kind = FaultKind::kForGood});
    CHECK_FALSE(scene.disk.remove(scene.path("file")));
    CHECK_FALSE(scene.disk.remove(scene.path("file")));
    scene.disk.heal();
    CHECK(scene.disk.remove(scene.path("file")));
  }
  SECTION("in a child") {
    scene.disk.fail({.at = 1});
    const pid_t child = fork();
    if (child == 0) _exit(scene.disk.remove(scene.path("nothing")) ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK_FALSE(scene.disk.has_failed());
    CHECK_FALSE(scene.disk.remove(scene.path("file")));
    CHECK(scene.disk.has_failed());
  }
  SECTION("a write, which is cut in half") {
    scene.disk.fail({.kind = FaultKind::kFull});
    const base::Descriptor file(scene.path("file"), O_WRONLY | O_TRUNC, scene.disk);
    REQUIRE(file.is_open());
    CHECK(scene.disk.write(file.number(), "1234") == 2);
    CHECK(scene.disk.write(file.number(), "34") == -1);
    CHECK(errno == ENOSPC);
    CHECK(scene.disk.sync(file.number()));
  }
}

TEST_CASE("Without power nothing is done, and descriptors are closed", "[faulty-disk]") {
  Scene scene;
  scene.write("file", "text");
  const size_t before = open_descriptors();
  const int descriptor = scene.disk.open(scene.path("file"), O_RDONLY, 0);
  scene.disk.cut_power();
  CHECK_FALSE(scene.disk.sync(descriptor));
  CHECK(errno == EIO);
  CHECK_FALSE(scene.disk.close(descriptor));
  CHECK(open_descriptors() == before);
  CHECK_FALSE(scene.disk.remove(scene.path("file")));
  scene.disk.restore(Lost::kNothing);
  CHECK(scene.disk.remove(scene.path("file")));
}

}  // namespace latchkey::tests
