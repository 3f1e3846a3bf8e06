#include "server/process/write_advice.h"

#include <cerrno>

#include "unit/catch.h"
#include "unit/temporary_directory.h"

namespace latchkey::server {

TEST_CASE("A full disk is told of with its figures and its directory", "[write advice]") {
  tests::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const std::string advice = advise_on_write_error(path + "/dump.rdb", ENOSPC);
  CHECK(advice.starts_with("The file system of " + std::filesystem::canonical(path).string() +
                           " has "));
  CHECK(advice.find(" left of ") != std::string::npos);
  CHECK(advise_on_write_error(path, EDQUOT) == advise_on_write_error(path, ENOSPC));
}

TEST_CASE("A directory that may not be written to is told of with its owner", "[write advice]") {
  tests::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const std::string advice = advise_on_write_error(path + "/dump.rdb", EACCES);
  CHECK(advice.find(" belongs to user " + own_user_name()) != std::string::npos);
  CHECK(advice.find("chown " + own_user_name()) != std::string::npos);
}

TEST_CASE("Errors that say all there is to say have no advice", "[write advice]") {
  CHECK(advise_on_write_error("/tmp/x", EIO).empty());
  CHECK(advise_on_write_error("/nonexistent/x/y", EACCES).empty());
  CHECK(advise_on_write_error("/tmp/x", EROFS) ==
        "The file system of /tmp is mounted read-only: set dir to another one.");
}

}  // namespace latchkey::server
