#include "testing/spaces.h"

#include <memory>
#include <string>

#include "composition/space_host.h"
#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A server with spaces, and a client of it.
struct Main {
  Main() {
    log.set_level(base::LogLevel::kNothing);
    whole = composition::WholeServer::make_space(
        "databases 2\n", {.clock = clock, .log = log, .loop = &loop}, &error);
    REQUIRE(whole != nullptr);
    spaces = composition::make_spaces(*whole, clock, loop);
    client = std::make_unique<TestClient>(whole->server());
  }
  std::string run(std::string_view request) { return client->run(request); }
  // The reply of a client in that space.
  std::string run_in(std::string_view space, std::string_view request) {
    testing::Spaces::Space* const found = spaces->find(space);
    REQUIRE(found != nullptr);
    std::string reply;
    {
      TestClient inside(found->server());
      reply = inside.run(request);
    }
    whole->server().enter();
    return reply;
  }

  base::VirtualClock clock;
  base::Logger log;
  net::Loop loop;
  server::ConfigError error;
  std::unique_ptr<composition::WholeServer> whole;
  std::unique_ptr<testing::Spaces> spaces;
  std::unique_ptr<TestClient> client;
};

}  // namespace

TEST_CASE("A space begins empty, or with a copy that is its own", "[spaces]") {
  Main main;
  main.run("SET key value");
  CHECK(main.run("SPACE CREATE empty KEEP") == bulk("empty"));
  CHECK(main.run("SPACE CREATE copy KEEP FROM MAIN") == bulk("copy"));
  CHECK(main.run_in("empty", "DBSIZE") == integer(0));
  CHECK(main.run_in("copy", "GET key") == bulk("value"));
  CHECK(main.run_in("copy", "SET key other") == kOk);
  CHECK(main.run("SPACE CREATE second KEEP FROM copy") == bulk("second"));
  CHECK(main.run_in("second", "GET key") == bulk("other"));
  CHECK(main.run("GET key") == bulk("value"));
}

TEST_CASE("A space listens at one port, which it keeps", "[spaces]") {
  Main main;
  main.run("SPACE CREATE a KEEP");
  const std::string port = main.run("SPACE LISTEN a");
  REQUIRE(port.starts_with(":"));
  CHECK(port != integer(0));
  CHECK(main.run("SPACE LISTEN a") == port);
  CHECK(main.run("SPACE LISTEN a 1") ==
        error("ERR The space listens on port " + port.substr(1, port.size() - 3) + " already"));
}

}  // namespace latchkey::tests
