#include "testing/spaces.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "composition/space_host.h"
#include "composition/whole_server.h"
#include "unit/catch.h"
#include "unit/required.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A server with spaces, and a client of it.
struct Main {
  explicit Main(const std::string& settings = {}) {
    log.set_level(base::LogLevel::kNothing);
    whole = required(composition::WholeServer::make_space(
        "databases 2\n" + settings, {.clock = clock, .log = log, .loop = &loop}));
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

TEST_CASE("A space whose name ends in a release emulates it", "[spaces]") {
  Main main;
  main.run("SPACE CREATE old~redis-6.2 KEEP");
  main.run("SPACE CREATE v~valkey-8.1 KEEP");
  main.run("SPACE CREATE new KEEP");
  const std::string unknown = "ERR unknown command 'HEXPIRE', with args beginning with: ";
  CHECK(main.run_in("old~redis-6.2", "HEXPIRE").starts_with("-" + unknown.substr(0, 19)));
  CHECK(main.run_in("new", "HEXPIRE").find("wrong number of arguments") != std::string::npos);
  CHECK(main.run_in("old~redis-6.2", "INFO server").find("redis_version:6.2.16\r\n") !=
        std::string::npos);
  CHECK(main.run_in("v~valkey-8.1", "INFO server").find("valkey_version:8.1.1\r\n") !=
        std::string::npos);
  // Defaults are the release's.
  CHECK(main.run_in("v~valkey-8.1", "CONFIG GET lazyfree-lazy-user-del").find("yes") !=
        std::string::npos);
  CHECK(main.run_in("new", "CONFIG GET lazyfree-lazy-user-del").find("no") != std::string::npos);
  CHECK(main.run("SPACE INFO old~redis-6.2").find(bulk("emulate") + bulk("redis 6.2")) !=
        std::string::npos);
  CHECK(main.run("SPACE INFO new").find(bulk("emulate") + bulk("no")) != std::string::npos);
}

TEST_CASE("A space that emulates an old release is as protected as the first server", "[spaces]") {
  const auto debugs = [](Main& main) {
    main.run("SPACE CREATE old~redis-6.2 KEEP");
    return main.run_in("old~redis-6.2", "DEBUG SLEEP 0");
  };
  Main closed;
  CHECK(debugs(closed).starts_with("-ERR DEBUG command not allowed"));
  CHECK(
      closed.run_in("old~redis-6.2", "CONFIG SET dbfilename other.rdb").find("protected config") !=
      std::string::npos);
  Main open("enable-debug-command yes\n");
  CHECK(debugs(open) == kOk);
}

TEST_CASE("What follows a tilde in a space's name must be a release", "[spaces]") {
  Main main;
  const std::string objection = error(
      "ERR What follows ~ in the name of a space must be latchkey or a release, as redis-7.0");
  for (const auto* name : {"a~", "a~redis", "a~redis-", "a~redis-5.0", "a~redis 7.0", "~valkey-7.2",
                           "a~redis-7.0~b", "a~no"}) {
    CAPTURE(name);
    TestClient& client = *main.client;
    const std::string reply = client.run_words({"SPACE", "CREATE", name});
    CHECK((reply == objection ||
           reply == error("ERR The name of a space must be printable, without spaces")));
  }
  CHECK(main.run("SPACE CREATE ~redis-7.0.15") == bulk("~redis-7.0.15"));
}

TEST_CASE("A space in a server that emulates has its release unless its name says another",
          "[spaces]") {
  Main main("emulate valkey 8.1\nlazyfree-lazy-expire no\n");
  main.run("SPACE CREATE same KEEP");
  main.run("SPACE CREATE x~redis-7.0 KEEP");
  main.run("SPACE CREATE x~latchkey KEEP");
  CHECK(main.run_in("same", "CONFIG GET lazyfree-lazy-user-del").find("yes") != std::string::npos);
  for (const auto* name : {"x~redis-7.0", "x~latchkey"}) {
    CAPTURE(name);
    CHECK(main.run_in(name, "CONFIG GET lazyfree-lazy-user-del").find("no") != std::string::npos);
    CHECK(main.run_in(name, "CONFIG GET lazyfree-lazy-expire").find("no") != std::string::npos);
  }
  CHECK(main.run_in("x~latchkey", "SPACE INFO").find(bulk("emulate") + bulk("no")) !=
        std::string::npos);
}

TEST_CASE("A copy for a release keeps what the release knows, and nothing else is copied",
          "[spaces]") {
  Main main;
  main.run("SADD set a b c");
  main.run("HSET hash f v");
  main.run("ZADD zset 1.5 m");
  main.run("XADD stream 1-1 f v");
  main.run("RPUSH list x y");
  for (const auto* name : {"c~redis-6.2", "c~redis-7.0", "c~redis-8.6", "c~valkey-9.1"}) {
    CAPTURE(name);
    CHECK(main.run("SPACE CREATE " + std::string(name) + " KEEP FROM MAIN") == bulk(name));
    CHECK(main.run_in(name, "SCARD set") == integer(3));
    CHECK(main.run_in(name, "HGET hash f") == bulk("v"));
    CHECK(main.run_in(name, "ZSCORE zset m") == bulk("1.5"));
    CHECK(main.run_in(name, "XLEN stream") == integer(1));
    CHECK(main.run_in(name, "LINDEX list 1") == bulk("y"));
  }
  const auto refused = [&](std::string_view name, std::string_view what) {
    const std::string release(name.substr(name.find('~') + 1));
    return error("ERR There are no " + std::string(what) + " in " +
                 std::string(release).replace(release.find('-'), 1, " "));
  };
  main.run("HPEXPIRE hash 100000 FIELDS 1 f");
  CHECK(main.run("SPACE CREATE d~redis-7.2 FROM MAIN") ==
        refused("d~redis-7.2", "fields with deadlines"));
  CHECK(main.run("SPACE CREATE d~redis-7.4 KEEP FROM MAIN") == bulk("d~redis-7.4"));
  CHECK(main.run_in("d~redis-7.4", "HTTL hash FIELDS 1 f") == "*1\r\n:100\r\n");
  main.run("DEL hash");
  main.run("VADD vectors VALUES 2 1 1 a");
  CHECK(main.run("SPACE CREATE e~redis-7.4 FROM MAIN") == refused("e~redis-7.4", "vector sets"));
  main.run("DEL vectors");
  int copies = 0;
  for (const auto& [request, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"JSON.SET later $ 1", "JSON documents"},
           {"TS.ADD later 1 1", "time series"},
           {"BF.ADD later a", "probabilistic values"},
           {"TOPK.RESERVE later 3", "probabilistic values"}}) {
    CAPTURE(request);
    main.run(request);
    CHECK(main.run("SPACE CREATE e~redis-7.4 FROM MAIN") == refused("e~redis-7.4", what));
    const std::string copy = "e" + std::to_string(copies++) + "~redis-8.0";
    CHECK(main.run("SPACE CREATE " + copy + " KEEP FROM MAIN") == bulk(copy));
    CHECK(main.run_in(copy, "EXISTS later") == integer(1));
    main.run("DEL later");
  }
  main.run("ARSET array 1 a");
  CHECK(main.run("SPACE CREATE f~redis-8.6 FROM MAIN") == refused("f~redis-8.6", "arrays"));
  main.run("DEL array");
  main.run("XADD idle IDMP p 1 * f v");
  CHECK(main.run("SPACE CREATE g~redis-8.0 FROM MAIN") ==
        refused("g~redis-8.0", "streams with IDMP"));
  main.run("DEL idle");
  main.client->run_words({"FUNCTION", "LOAD",
                          "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
  CHECK(main.run("SPACE CREATE h~redis-6.2 FROM MAIN") == refused("h~redis-6.2", "functions"));
  // Of its own kind everything.
  CHECK(main.run("SPACE CREATE i FROM MAIN") == bulk("i"));
}

}  // namespace latchkey::tests
