#include <catch2/catch.hpp>

#include "commands/groups.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

TEST_CASE("SET stores a value and GET returns it", "[strings]") {
  ServerFixture server({commands::string_rows()});
  TestClient client(server);
  CHECK(client.run("GET name") == kNull);
  CHECK(client.run("SET name value") == kOk);
  CHECK(client.run("GET name") == bulk("value"));
  CHECK(server.events() == "set name");
  CHECK(server.changes() == 1);
}

}  // namespace latchkey::tests
