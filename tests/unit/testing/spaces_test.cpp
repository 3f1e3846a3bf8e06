#include "testing/spaces.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "composition/space_host.h"
#include "composition/whole_server.h"
#include "server/client/authentication.h"
#include "server/client/client.h"
#include "unit/catch.h"
#include "unit/net/wire.h"
#include "unit/required.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

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
  main.run("SPACE LISTEN other");
  CHECK(main.run("SPACE INFO other").find("keep\r\n:1\r\n") != std::string::npos);
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

namespace {

// A client of the first server with a connection, that goes from space to space.
class Visitor {
 public:
  explicit Visitor(Main& main)
      : wire(main.loop), client(&main.whole->server().clients().add(wire.connection)), main_(main) {
    server::assume_default_user(*client);
    wire.connection->start(*client, 0);
  }
  std::string ask(std::string_view requests) {
    wire.peer.send(requests);
    turn();
    return wire.peer.receive();
  }
  void turn() {
    tests::turn(main_.loop, 10);
    main_.whole->server().enter();
  }

  Wire wire;
  // Until it goes into a space.
  server::Client* client;

 private:
  Main& main_;
};

// What SPACE INFO begins with.
std::string info_of(std::string_view name, int clients, int keys, int keep) {
  return "*18\r\n" + bulk("name") + bulk(name) + bulk("clients") + integer(clients) + bulk("keys") +
         integer(keys) + bulk("keep") + integer(keep) + bulk("port") + integer(0) +
         bulk("unixsocket") + bulk("") + bulk("used-memory");
}

const std::string kNoSuchSpace = error("ERR No such space");

}  // namespace

TEST_CASE("A client goes into a space, which is made for it, and back", "[spaces]") {
  Main main;
  Visitor visitor(main);
  CHECK(visitor.ask("CLIENT SETNAME me\r\nCLIENT SETINFO LIB-NAME lib\r\nSET key outside\r\n") ==
        "+OK\r\n+OK\r\n+OK\r\n");
  CHECK(visitor.ask("SPACE ENTER MAIN\r\n") == kOk);
  // What is sent behind it runs there.
  CHECK(visitor.ask("SPACE ENTER a\r\nGET key\r\nSET key inside\r\nCLIENT GETNAME\r\n") ==
        std::string(kOk) + std::string(kNull) + std::string(kOk) + bulk("me"));
  CHECK(visitor.ask("CLIENT INFO\r\n").find(" lib-name=lib ") != std::string::npos);
  CHECK(visitor.ask("SPACE INFO\r\n").starts_with(info_of("a", 1, 1, 0)));
  CHECK(visitor.ask("SPACE ENTER a\r\n") == kOk);
  CHECK(main.run("SPACE INFO a").starts_with(info_of("a", 1, 1, 0)));
  CHECK(visitor.ask("SPACE ENTER b\r\nDBSIZE\r\n") == std::string(kOk) + integer(0));
  CHECK(main.run("SPACE INFO a").starts_with(info_of("a", 0, 1, 0)));
  CHECK(visitor.ask("SPACE ENTER main\r\nGET key\r\nSPACE INFO\r\n") ==
        std::string(kOk) + bulk("outside") + error("ERR This client is in no space"));
  CHECK(main.run_in("a", "GET key") == bulk("inside"));
}

TEST_CASE("A client keeps its protocol when it goes into a space", "[spaces]") {
  Main main;
  Visitor visitor(main);
  CHECK(visitor.ask("HELLO 3\r\n").starts_with("%7\r\n"));
  CHECK(visitor.ask("SPACE ENTER a\r\nGET key\r\n") == std::string(kOk) + std::string(kNull3));
}

TEST_CASE("Who cannot go into a space is told why", "[spaces]") {
  Main main;
  Visitor visitor(main);
  const std::string bound =
      error("ERR A client that is subscribed, monitors or replicates cannot change its space");
  CHECK(visitor.ask("SPACE ENTER a~b\r\n") ==
        error("ERR What follows ~ in the name of a space must be latchkey or a release, as "
              "redis-7.0"));
  CHECK(visitor.ask("*3\r\n$5\r\nSPACE\r\n$5\r\nENTER\r\n$0\r\n\r\n") ==
        error("ERR The name of a space must not be empty"));
  CHECK(visitor.ask("SPACE ENTER " + std::string(129, 'n') + "\r\n") ==
        error("ERR The name of a space must not be longer than 128 bytes"));
  CHECK(visitor.ask("SPACE ENTER " + std::string(128, 'n') + "\r\nSPACE ENTER MAIN\r\n") ==
        "+OK\r\n+OK\r\n");
  CHECK(visitor.ask("HELLO 3\r\n").starts_with("%7\r\n"));
  visitor.ask("SUBSCRIBE news\r\n");
  CHECK(visitor.ask("SPACE ENTER a\r\n") == bound);
  CHECK(visitor.ask("SPACE ENTER MAIN\r\n") == kOk);
  // One without a connection has nothing to take along.
  CHECK(main.run("SPACE ENTER a") == bound);
  CHECK(main.run("SPACE INFO a") == kNoSuchSpace);
}

TEST_CASE("Who logs in as the user of a space comes into it", "[spaces]") {
  const std::string wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
  Main main("requirepass secret\n");
  TestClient& root = *main.client;
  CHECK(root.run("AUTH secret") == kOk);
  Visitor visitor(main);
  CHECK(visitor.ask("AUTH space-a wrong\r\n") == wrong);
  CHECK(visitor.ask("AUTH space- secret\r\n") == wrong);
  CHECK(visitor.ask("AUTH nobody secret\r\n") == wrong);
  CHECK(main.run("SPACE LIST") == "*0\r\n");
  CHECK(visitor.ask("AUTH space-a secret\r\n") == kOk);
  CHECK(visitor.ask("SPACE INFO\r\n").starts_with(info_of("a", 1, 0, 0)));
  // The space has the password of the first server.
  CHECK(visitor.ask("RESET\r\nPING\r\n") == "+RESET\r\n-NOAUTH Authentication required.\r\n");
  CHECK(visitor.ask("HELLO 3 AUTH space-b secret SETNAME me\r\n").starts_with("%7\r\n"));
  CHECK(visitor.ask("CLIENT GETNAME\r\n") == bulk("me"));
  CHECK(main.run("SPACE INFO b").starts_with(info_of("b", 1, 0, 0)));
  CHECK(root.run("ACL SETUSER default -space|enter") == kOk);
  CHECK(visitor.ask("AUTH space-c secret\r\n") == wrong);
  CHECK(root.run("ACL SETUSER default +space|enter") == kOk);
  // A user of that name is the one who is meant.
  CHECK(root.run("ACL SETUSER space-d on >other") == kOk);
  Visitor other(main);
  CHECK(other.ask("AUTH space-d secret\r\n") == wrong);
  CHECK(other.ask("AUTH space-d other\r\n") == kOk);
  CHECK(main.run("SPACE INFO d") == kNoSuchSpace);
}

TEST_CASE("Without commands for tests nobody comes into a space by logging in", "[spaces]") {
  Main main("enable-test-commands no\n");
  Visitor visitor(main);
  CHECK(visitor.ask("AUTH space-a x\r\n") ==
        error("WRONGPASS invalid username-password pair or user is disabled."));
}

TEST_CASE("A space that is dropped closes its clients, and its name is free again", "[spaces]") {
  Main main;
  Visitor visitor(main);
  Visitor waiting(main);
  CHECK(visitor.ask("SPACE ENTER a\r\nSET key value\r\n") == "+OK\r\n+OK\r\n");
  CHECK(waiting.ask("SPACE ENTER a\r\nBLPOP list 0\r\n") == kOk);
  CHECK(main.run("SPACE DROP a") == kOk);
  CHECK(main.run("SPACE LIST") == "*0\r\n");
  CHECK(main.run("SPACE DROP a") == kNoSuchSpace);
  CHECK(main.run("SPACE INFO a") == kNoSuchSpace);
  CHECK(main.run("SPACE CREATE a") == error("ERR The space of that name is being dropped"));
  visitor.turn();
  CHECK(visitor.ask("").empty());
  CHECK(visitor.wire.peer.is_at_end());
  CHECK(waiting.ask("").empty());
  CHECK(waiting.wire.peer.is_at_end());
  CHECK(main.run("SPACE CREATE a KEEP") == bulk("a"));
  CHECK(main.run_in("a", "DBSIZE") == integer(0));
  CHECK(main.run("SPACE CREATE a") == error("ERR A space of that name exists already"));
}

TEST_CASE("A space that goes before a client has come is made anew for it", "[spaces]") {
  Main main;
  main.run("SPACE CREATE a KEEP");
  CHECK(main.run_in("a", "SET key value") == kOk);
  Visitor visitor(main);
  std::string request = "SPACE ENTER a\r\nDBSIZE\r\n";
  visitor.client->on_input(request);
  CHECK(main.run("SPACE DROP a") == kOk);
  // It asks again.
  CHECK(visitor.ask("SPACE ENTER a\r\nDBSIZE\r\n").ends_with(integer(0)));
  CHECK(visitor.ask("SPACE INFO\r\n").starts_with(info_of("a", 1, 0, 0)));
}

TEST_CASE("SHUTDOWN in a space ends the space", "[spaces]") {
  Main main;
  Visitor visitor(main);
  CHECK(visitor.ask("SPACE ENTER a\r\nSHUTDOWN NOSAVE\r\n") == kOk);
  CHECK(visitor.ask("").empty());
  CHECK(visitor.wire.peer.is_at_end());
  CHECK(main.run("SPACE LIST") == "*0\r\n");
  CHECK(main.run("PING") == status("PONG"));
}

TEST_CASE("SHUTDOWN in a space does not write to the files of the process", "[spaces]") {
  Main main;
  Visitor visitor(main);
  const std::string refused = error(
      "ERR SHUTDOWN with SAVE or FAILOVER is not available in a space, which has no "
      "persistence, no replication and no cluster");
  CHECK(visitor.ask("SPACE ENTER a\r\nSHUTDOWN SAVE\r\nSHUTDOWN NOW FAILOVER\r\nPING\r\n") ==
        std::string(kOk) + refused + refused + status("PONG"));
}

TEST_CASE("A space nobody is in goes after space-linger-ms unless it is kept", "[spaces]") {
  Main main("space-linger-ms 5000\n");
  const auto wait = [&](int64_t ms) {
    main.clock.advance_ms(ms);
    main.whole->server().refresh_clock();
    main.whole->server().tick();
  };
  main.run("SPACE CREATE kept KEEP");
  main.run("SPACE CREATE idle");
  CHECK(main.run("SPACE LIST").starts_with("*2\r\n" + info_of("idle", 0, 0, 0)));
  const std::string port = main.run("SPACE LISTEN reached");
  REQUIRE(port.starts_with(":"));
  Visitor visitor(main);
  CHECK(visitor.ask("SPACE ENTER visited\r\n") == kOk);
  wait(4999);
  CHECK(main.run("SPACE LIST").starts_with("*4\r\n"));
  wait(1);
  CHECK(main.run("SPACE INFO idle") == kNoSuchSpace);
  for (const char* const name : {"kept", "reached", "visited"})
    CHECK(main.run("SPACE INFO " + std::string(name)).starts_with("*18\r\n"));
  visitor.turn();
  // The time counts from when its last client has left.
  wait(60'000);
  CHECK(main.run("SPACE INFO visited").starts_with("*18\r\n"));
  CHECK(visitor.ask("SPACE ENTER MAIN\r\n") == kOk);
  wait(0);
  wait(4999);
  CHECK(main.run("SPACE INFO visited").starts_with("*18\r\n"));
  wait(1);
  CHECK(main.run("SPACE INFO visited") == kNoSuchSpace);
  CHECK(main.run("SPACE LIST").starts_with("*2\r\n" + info_of("kept", 0, 0, 1)));
}

TEST_CASE("Spaces without a name are numbered, and there are as many as max-spaces allows",
          "[spaces]") {
  Main main("max-spaces 3\n");
  CHECK(main.run("SPACE CREATE") == bulk("1"));
  CHECK(main.run("SPACE CREATE 2") == bulk("2"));
  CHECK(main.run("SPACE CREATE KEEP") == bulk("3"));
  const std::string full = error("ERR There are as many spaces as max-spaces allows");
  CHECK(main.run("SPACE CREATE") == full);
  CHECK(main.run("SPACE LISTEN more") == full);
  Visitor visitor(main);
  CHECK(visitor.ask("SPACE ENTER more\r\n") == full);
  CHECK(visitor.ask("SPACE ENTER 2\r\n") == kOk);
}

TEST_CASE("SPACE refuses what it does not know", "[spaces]") {
  Main main;
  CHECK(main.run("SPACE CREATE a FROM nowhere") == kNoSuchSpace);
  CHECK(main.run("SPACE CREATE a KEEP KEEP") == error("ERR syntax error"));
  CHECK(main.run("SPACE CREATE a FROM MAIN FROM MAIN") == error("ERR syntax error"));
  CHECK(main.run("SPACE CREATE a FROM") == error("ERR syntax error"));
  CHECK(main.run("SPACE CREATE Main") == error("ERR The first server is called main"));
  for (const char* const port : {"0", "65536", "x"})
    CHECK(main.run("SPACE LISTEN a " + std::string(port)).starts_with("-ERR "));
  CHECK(main.run("SPACE LISTEN a 0") == error("ERR Invalid port"));
  CHECK(main.run("SPACE LIST") == "*0\r\n");
}

TEST_CASE("Who may not make, drop or open spaces may not from within one either", "[spaces]") {
  Main main;
  main.run("SET key value");
  main.run("SPACE CREATE a KEEP");
  CHECK(main.run_in("a", "SPACE CREATE b KEEP FROM MAIN") == bulk("b"));
  CHECK(main.run_in("b", "GET key") == bulk("value"));
  CHECK(main.run("ACL SETUSER default -space|create") == kOk);
  const auto refusal = [](const std::string& subcommand) {
    return error("NOPERM Clients of spaces may run SPACE " + subcommand +
                 " only where the default user of the first server may");
  };
  CHECK(main.run_in("a", "SPACE CREATE c FROM MAIN") == refusal("CREATE"));
  CHECK(main.run_in("a", "SPACE CREATE c FROM b") == refusal("CREATE"));
  CHECK(main.run("ACL SETUSER default +space|create -space|drop -space|listen") == kOk);
  CHECK(main.run_in("a", "SPACE CREATE c FROM b") == bulk("c"));
  CHECK(main.run_in("a", "SPACE DROP b") == refusal("DROP"));
  CHECK(main.run_in("a", "SPACE LISTEN b") == refusal("LISTEN"));
  CHECK(main.run_in("a", "SPACE INFO b").starts_with("*"));
}

TEST_CASE("The first server is copied from within a space only with the password that it has",
          "[spaces]") {
  Main main;
  main.run("SPACE CREATE a KEEP");
  CHECK(main.run("CONFIG SET requirepass secret") == kOk);
  CHECK(main.run_in("a", "SPACE CREATE b FROM MAIN") ==
        error("NOPERM Clients of a space copy the first server only with the password that it "
              "has"));
  CHECK(main.run_in("a", "CONFIG SET requirepass secret") == kOk);
  {
    TestClient inside(main.spaces->find("a")->server());
    REQUIRE(inside.run("AUTH secret") == kOk);
    CHECK(inside.run("SPACE CREATE b FROM MAIN") == bulk("b"));
  }
  main.whole->server().enter();
}

TEST_CASE("A copy that is larger than space-maxmemory is not made", "[spaces]") {
  Main main("space-maxmemory 1mb\n");
  main.client->run_words({"SET", "large", std::string(3 << 20, 'x')});
  CHECK(main.run("SPACE CREATE a FROM MAIN") ==
        error("ERR The copy is larger than space-maxmemory allows"));
  CHECK(main.run("SPACE INFO a") == kNoSuchSpace);
}

TEST_CASE("A space may have as much memory as space-maxmemory is by now", "[spaces]") {
  Main main("space-maxmemory 1mb\n");
  main.run("SPACE CREATE a KEEP");
  const std::string refusal = error(
      "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - a space may have as "
      "much as space-maxmemory allows");
  CHECK(main.run_in("a", "CONFIG SET maxmemory 2mb") == refusal);
  CHECK(main.run("CONFIG SET space-maxmemory 3mb") == kOk);
  CHECK(main.run_in("a", "CONFIG SET maxmemory 2mb") == kOk);
  CHECK(main.run("CONFIG SET space-maxmemory 1mb") == kOk);
  CHECK(main.run_in("a", "CONFIG SET maxmemory 3mb") == refusal);
  CHECK(main.run_in("a", "CONFIG SET maxmemory 0") == refusal);
}

TEST_CASE("Keys are not migrated to a space of the same process", "[spaces]") {
  Main main;
  main.run("SET key value");
  main.run("SPACE CREATE a KEEP");
  std::string port = main.run("SPACE LISTEN a");
  port = port.substr(1, port.size() - 3);
  CHECK(main.run("MIGRATE 127.0.0.1 " + port + " key 0 10000") ==
        error("ERR MIGRATE cannot send keys to a server of the same process. DUMP and RESTORE "
              "can"));
  CHECK(main.run("GET key") == bulk("value"));
  turn(main.loop);
  CHECK(main.run_in("a", "EXISTS key") == integer(0));
}

TEST_CASE("A space listens at one unix socket, which nobody else has", "[spaces]") {
  Main main;
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  CHECK(main.run("SPACE LISTEN a " + path) == bulk(path));
  CHECK(main.run("SPACE LISTEN a " + path) == bulk(path));
  CHECK(main.run("SPACE LISTEN a " + path + "2") ==
        error("ERR The space listens at " + path + " already"));
  CHECK(main.run("SPACE LISTEN b " + path) == error("ERR A server listens at this path already"));
  directory.write("file", "text");
  CHECK(main.run("SPACE LISTEN b " + (directory.path() / "file").string()) ==
        error("ERR There is something else than a socket at this path"));
  CHECK(directory.read("file") == "text");
  const std::string unreachable = directory.path() / "none" / "socket";
  CHECK(main.run("SPACE LISTEN b " + unreachable) ==
        error("ERR The space cannot listen at this path; the log says why"));
  {
    Peer peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    peer.connect(path);
    peer.send("SET key value\r\nSPACE INFO\r\n");
    turn(main.loop, 10);
    main.whole->server().enter();
    const std::string told = peer.receive();
    CHECK(told.starts_with(std::string(kOk) + "*18\r\n" + bulk("name") + bulk("a") +
                           bulk("clients") + integer(1) + bulk("keys") + integer(1)));
    CHECK(told.find(bulk("unixsocket") + bulk(path)) != std::string::npos);
  }
  // A port beside it is no harm.
  CHECK(main.run("SPACE LISTEN a").starts_with(":"));
  CHECK(main.run("SPACE LISTEN a " + path) == bulk(path));
}

TEST_CASE("A unix socket that is left from before is taken by a space", "[spaces]") {
  Main main;
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "left";
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(other, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    close(other);
  }
  REQUIRE(std::filesystem::is_socket(path));
  CHECK(main.run("SPACE LISTEN a " + path) == bulk(path));
  Peer peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  peer.connect(path);
  peer.send("PING\r\n");
  turn(main.loop, 10);
  main.whole->server().enter();
  CHECK(peer.receive() == status("PONG"));
}

TEST_CASE("A server without spaces says so", "[spaces]") {
  Main main;
  main.spaces.reset();
  const std::string none = error("ERR This server has no spaces");
  for (const char* const request : {"SPACE CREATE", "SPACE ENTER a", "SPACE DROP a",
                                    "SPACE LISTEN a", "SPACE LIST", "SPACE INFO"})
    CHECK(main.run(request) == none);
}

TEST_CASE("A rollback leaves a space listening where it does, without a warning", "[spaces]") {
  const TemporaryDirectory directory;
  Main main;
  main.run("SPACE CREATE a KEEP");
  testing::Spaces::Space* const space = main.spaces->find("a");
  REQUIRE(space != nullptr);
  space->server().log().set_file(directory.path() / "log");
  space->server().log().set_level(base::LogLevel::kWarning);
  main.run_in("a", "CHECKPOINT CREATE");
  const std::string port = main.run("SPACE LISTEN a");
  main.run("SPACE LISTEN a " + (directory.path() / "socket").string());
  main.run_in("a", "CONFIG SET hz 20");
  CHECK(main.run_in("a", "CHECKPOINT ROLLBACK") == kOk);
  CHECK(main.run_in("a", "CONFIG GET hz") == bulks({"hz", "10"}));
  CHECK(main.run_in("a", "CONFIG GET port") == bulks({"port", port.substr(1, port.size() - 3)}));
  CHECK(directory.read("log") == "");
}

}  // namespace latchkey::tests
