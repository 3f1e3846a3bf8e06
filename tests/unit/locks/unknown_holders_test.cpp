// Locks that were taken by clients of other servers: of the master, of the time before a restart,
// of the node that a slot comes from.
#include <string>
#include <string_view>

#include "locks/lock_watch.h"
#include "unit/catch.h"
#include "unit/locks/scene.h"

using namespace latchkey;
using tests::Scene;

namespace {

// Runs a request as a replica runs what its master sends.
void replicate(Scene& scene, std::string_view request) {
  tests::TestClient& link = scene.client("link");
  link->name.clear();
  link->set(server::kClientMaster);
  scene.run("link", request);
}

// Runs a request as the append-only file does.
void load(server::Server& server, std::initializer_list<std::string_view> words) {
  server::Client& file = server.clients().add_internal();
  file.set(server::kClientInternal | server::kClientDenyBlocking);
  const server::Arguments args(words.begin(), words.size());
  server.set_state(server::kStateLoading, true);
  server.dispatcher().replay(file, *server.dispatcher().lookup(args), args);
  server.set_state(server::kStateLoading, false);
}

// Loads two locks in the middle of the request by which a client writes to "now", as DEBUG LOADAOF
// loads a file.
struct LoadsInRequest final : server::KeyspaceEventListener {
  explicit LoadsInRequest(server::Server& its) : server(its) { server.events().add(*this); }
  ~LoadsInRequest() { server.events().remove(*this); }
  void key_changed(store::Keyspace&, std::string_view key, server::EventClass,
                   std::string_view) override {
    if (key != "now") return;
    load(server, {"SETNX", "lock:1", "a"});
    load(server, {"SETNX", "lock:2", "a"});
    load(server, {"EXPIRE", "lock:2", "30"});
  }
  void keyspace_clearing(store::Keyspace&) override {}
  void keyspaces_swapping(store::Keyspace&, store::Keyspace&) override {}
  server::Server& server;
};

// Runs a request as it comes from a node that a slot is imported from.
void import(Scene& scene, std::string_view request) {
  tests::TestClient& source = scene.client("source");
  source->name.clear();
  source->set(server::kClientInternal | server::kClientDenyBlocking);
  scene.run("source", request);
}

}  // namespace

TEST_CASE("The holder of a lock that was replicated, loaded or imported is not known here",
          "[locks]") {
  Scene scene;
  SECTION("through the master") {
    replicate(scene, "SETNX lock:1 a");
    replicate(scene, "SETNX lock:2 a");
    replicate(scene, "EXPIRE lock:2 30");
  }
  SECTION("in a transaction of the master's") {
    for (const char* request : {"MULTI", "SETNX lock:1 a", "SETNX lock:2 a", "EXEC"})
      replicate(scene, request);
  }
  SECTION("from the append-only file") {
    load(scene.server, {"SETNX", "lock:1", "a"});
    load(scene.server, {"SETNX", "lock:2", "a"});
    load(scene.server, {"EXPIRE", "lock:2", "30"});
  }
  SECTION("from the append-only file, for a client") {
    const LoadsInRequest loads(scene.server);
    scene.run("anna", "SET now 1");
    CHECK_FALSE(scene.client("anna")->has(server::kClientTookLock));
  }
  SECTION("with a slot") {
    import(scene, "SETNX lock:1 a");
    import(scene, "SETNX lock:2 a");
  }
  for (const char* key : {"lock:1", "lock:2"}) {
    const std::string info = scene.run("bob", "LOCK INFO " + std::string(key));
    INFO(info);
    for (const char* part : {"$5\r\nstate\r\n$4\r\nheld\r\n", "$9\r\nclient-id\r\n:0\r\n",
                             "$9\r\nconnected\r\n:0\r\n"})
      CHECK(info.find(part) != std::string::npos);
  }
  CHECK_FALSE(scene.client("link")->has(server::kClientTookLock));
  CHECK_FALSE(scene.client("source")->has(server::kClientTookLock));
  scene.play("link leaves; source leaves");
  CHECK(scene.findings().empty());
  // Any client may be its holder.
  scene.play("anna DEL lock:1; bob SETNX lock:2 b; bob DEL lock:2");
  CHECK(scene.findings().empty());
  CHECK(scene.log().ends_with("released-blind anna, refused bob, released-blind bob"));
  // What clients do here is found as ever.
  scene.play("anna SETNX lock:1 a; bob DEL lock:1; anna SETNX lock:2 a; anna leaves");
  CHECK(scene.findings() == "foreign-release, no-deadline");
}

TEST_CASE("Nobody is accused over a lock whose holder is not known here", "[locks]") {
  Scene scene;
  replicate(scene, "SETNX lock a");
  SECTION("it is overwritten") {
    scene.play("bob SET lock b");
  }
  SECTION("it is prolonged by a client that was refused") {
    scene.play("bob SETNX lock b; bob EXPIRE lock 30; bob DEL lock");
  }
  SECTION("another has the same value") {
    scene.play("bob SETNX lock a");
  }
  SECTION("it is released shortly before its deadline, more than once") {
    for (int i = 0; i < 2; ++i) {
      replicate(scene, "SETNX lock a");
      replicate(scene, "PEXPIRE lock 1000");
      scene.play("wait 990; bob DELEX lock IFEQ a");
    }
  }
  SECTION("it is removed and taken through the master again") {
    replicate(scene, "DEL lock");
    replicate(scene, "SETNX lock a");
  }
  SECTION("its value is replaced through the master") {
    replicate(scene, "SET lock b");
  }
  SECTION("a rollback puts it back") {
    scene.play("bob CHECKPOINT CREATE; bob DEL lock; bob CHECKPOINT ROLLBACK; bob DEL lock");
  }
  SECTION("it is deleted by a client that asked by GETSET before") {
    replicate(scene, "DEL lock");
    replicate(scene, "SETNX lock 1701000030");
    scene.play("bob GETSET lock 1701000031; bob DEL lock");
  }
  SECTION("it is deleted when its time stamp has passed") {
    replicate(scene, "DEL lock");
    replicate(scene, "SETNX lock 1701000030");
    scene.play("wait 40000; bob DEL lock");
  }
  CHECK(scene.findings().empty());
}

TEST_CASE("The master's request may be refused where a client of a replica has the lock",
          "[locks]") {
  Scene scene("anna SETNX lock a");
  replicate(scene, "SETNX lock b");
  replicate(scene, "SETNX lock b");
  scene.play("bob SETNX lock c; bob SETNX lock c");
  CHECK(scene.log() == "taken anna, refused bob x2");
}

TEST_CASE("Tokens that nobody here has taken are put back by anybody", "[locks]") {
  Scene scene;
  replicate(scene, "RPUSH semaphore t1 t2 t3");
  replicate(scene, "LPOP semaphore 2");
  scene.play("anna LPOP semaphore; anna RPUSH semaphore t3; anna RPUSH semaphore t1");
  scene.play("bob RPUSH semaphore t2");
  CHECK(scene.findings().empty());
  CHECK(scene.run("anna", "LOCK INFO semaphore").find("$14\r\ntokens-created\r\n:3\r\n") !=
        std::string::npos);
  scene.play("anna RPUSH semaphore t1");
  CHECK(scene.findings() == "unbalanced");
}
