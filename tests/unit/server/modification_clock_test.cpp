#include "server/modification_clock.h"

#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct Fixture : ServerFixture {
  explicit Fixture(std::string_view policy)
      : ServerFixture({commands::config_rows(), commands::key_rows(), commands::object_rows(),
                       commands::list_rows(), commands::string_rows()},
                      "maxmemory-policy " + std::string(policy) + "\n"),
        client(*this) {}
  std::string run(std::string_view line) { return client.run(line); }
  TestClient client;
};

}  // namespace

TEST_CASE("Under lrm policies keys are used when they are changed, not when they are read",
          "[modification_clock]") {
  Fixture server(GENERATE("allkeys-lrm", "volatile-lrm"));
  server.run("SET a 1");
  server.run("RPUSH list x");
  server.advance_ms(5000);
  server.run("GET a");
  server.run("LRANGE list 0 -1");
  CHECK(server.run("OBJECT IDLETIME a") == integer(5));
  CHECK(server.run("OBJECT IDLETIME list") == integer(5));
  server.run("SET a 2");
  server.run("RPUSH list y");
  CHECK(server.run("OBJECT IDLETIME a") == integer(0));
  CHECK(server.run("OBJECT IDLETIME list") == integer(0));
  server.advance_ms(3000);
  server.run("RENAME a b");
  CHECK(server.run("OBJECT IDLETIME b") == integer(0));
}

TEST_CASE("The policy decides at once what using a key means", "[modification_clock]") {
  Fixture server("allkeys-lru");
  server.run("SET a 1");
  server.advance_ms(2000);
  server.run("GET a");
  CHECK(server.run("OBJECT IDLETIME a") == integer(0));
  CHECK(server.run("CONFIG SET maxmemory-policy allkeys-lrm") == kOk);
  server.advance_ms(2000);
  server.run("GET a");
  CHECK(server.run("OBJECT IDLETIME a") == integer(2));
  CHECK(server.run("CONFIG SET maxmemory-policy noeviction") == kOk);
  server.run("GET a");
  CHECK(server.run("OBJECT IDLETIME a") == integer(0));
}

}  // namespace latchkey::tests
