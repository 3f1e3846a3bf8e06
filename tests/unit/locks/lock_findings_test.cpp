// The table of findings: for each a scene that brings it, and near misses that do not.
#include <string>

#include "base/digest/hash.h"
#include "locks/lock_model.h"
#include "unit/catch.h"
#include "unit/locks/scene.h"

using latchkey::tests::Scene;

namespace {

struct Row {
  const char* what;
  const char* steps;
  const char* findings;
};

std::string repeated(const std::string& steps, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += (i == 0 ? "" : "; ") + steps;
  return text;
}

void check(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    Scene scene(row.steps);
    CHECK(scene.findings() == row.findings);
  }
}

}  // namespace

TEST_CASE("A lock is used as it should be: nothing is found", "[locks]") {
  check({
      {"SET NX PX, comparing and deleting",
       "anna SET lock a NX PX 30000; bob SET lock b NX PX 30000; anna @compare-delete lock a; "
       "bob SET lock b NX PX 30000; bob @compare-delete lock b",
       ""},
      {"released by DELEX", "anna SET lock a NX PX 30000; anna DELEX lock IFEQ a", ""},
      {"released by DELIFEQ through another connection",
       "anna SET lock a NX PX 30000; bob DELIFEQ lock a", ""},
      {"released by the holder's own DEL", "anna SET lock a NX PX 30000; anna DEL lock", ""},
      {"released by WATCH, GET, MULTI, DEL, EXEC",
       "anna SET lock a NX PX 30000; bob WATCH lock; bob GET lock; bob MULTI; bob DEL lock; "
       "bob EXEC",
       ""},
      {"prolonged by SET IFEQ",
       "anna SET lock a NX PX 30000; wait 20000; anna SET lock a IFEQ a PX 30000; wait 20000; "
       "anna DELEX lock IFEQ a",
       ""},
      {"prolonged by a script that compares, through another connection",
       "anna SET lock a NX PX 30000; bob @compare-prolong lock a 30000; bob @compare-delete lock a",
       ""},
      {"it expires, and another takes it",
       "anna SET lock a NX PX 1000; wait 1500; bob SET lock b NX PX 1000; bob DEL lock", ""},
      {"whoever has lost it takes it again and releases it",
       "anna SET lock a NX PX 1000; wait 1500; anna SET lock a2 NX PX 1000; anna DEL lock", ""},
      {"the winner of a transaction",
       "anna MULTI; anna SETNX lock a; anna EXPIRE lock 30; "
       "anna EXEC; anna DEL lock",
       ""},
      {"time stamps: the stale lock is taken over by GETSET",
       "anna SETNX lock.foo 1701000030; wait 40000; bob SETNX lock.foo 1701000071; bob GET "
       "lock.foo; "
       "bob GETSET lock.foo 1701000071; bob DEL lock.foo",
       ""},
      {"keys that are no locks",
       "anna SETNX page:1 text; bob DEL page:1; anna SET page:2 text NX EX 60; bob SET page:2 "
       "other; "
       "anna SETNX hits 0; bob INCR hits; bob DEL hits",
       ""},
  });
}

TEST_CASE("no-deadline", "[locks]") {
  check({
      {"the holder of a lock without a deadline goes", "anna SETNX lock a; wait 1000; anna leaves",
       "no-deadline"},
      {"SET NX without an expiry", "anna SET lock a NX; anna leaves", "no-deadline"},
      {"it has a deadline", "anna SET lock a NX PX 30000; anna leaves", ""},
      {"a time stamp says when it is stale", "anna SETNX lock 1701000030; anna leaves", ""},
      {"it was released before", "anna SETNX lock a; anna DEL lock; anna leaves", ""},
      {"another goes", "anna SETNX lock a; bob SETNX lock b; bob leaves", ""},
      {"who mends it does nothing wrong", "anna SETNX lock a; anna leaves; carl DEL lock",
       "no-deadline"},
  });
}

TEST_CASE("not-atomic", "[locks]") {
  check({
      {"SETNX, then EXPIRE", "anna SETNX lock a; wait 10; anna EXPIRE lock 30", "not-atomic"},
      {"at the same moment, but in two requests", "anna SETNX lock a; anna EXPIRE lock 30",
       "not-atomic"},
      {"SETNX in a transaction, EXPIRE behind it",
       "anna MULTI; anna SETNX lock a; anna EXEC; anna EXPIRE lock 30", "not-atomic"},
      {"in two transactions",
       "anna MULTI; anna SETNX lock a; anna EXEC; anna MULTI; anna EXPIRE lock 30; anna EXEC",
       "not-atomic"},
      {"in one transaction", "anna MULTI; anna SETNX lock a; anna EXPIRE lock 30; anna EXEC", ""},
      {"in one script", "anna @setnx-expire lock a 30", ""},
      {"prolonged later", "anna SET lock a NX EX 30; wait 10; anna EXPIRE lock 30", ""},
      {"a time stamp has said it before", "anna SETNX lock 1701000030; anna EXPIRE lock 60", ""},
      {"taken with a deadline, which its holder takes away and sets anew",
       "anna SET lock a NX PX 30000; anna PERSIST lock; anna PEXPIRE lock 1000", ""},
      {"it may be no lock", "anna SETNX page text; anna EXPIRE page 30", ""},
      {"known by its random value",
       "anna SETNX job:7 6c1f0b39a8d244e7; anna EXPIRE job:7 30; anna DEL job:7", "not-atomic"},
      {"known when it is released by comparing",
       "anna SETNX job:7 a; anna EXPIRE job:7 30; anna DELEX job:7 IFEQ a", "not-atomic"},
  });
}

TEST_CASE("What a release shows to be a lock is found to have had no deadline at first",
          "[locks]") {
  Scene scene("anna SETNX job:7 a; wait 10; anna EXPIRE job:7 30; wait 500");
  CHECK(scene.findings().empty());
  scene.play("anna @compare-delete job:7 a; anna SETNX job:7 b; anna EXPIRE job:7 30");
  REQUIRE(scene.findings() == "not-atomic");
  const latchkey::locks::Finding& finding = scene.model().findings().back();
  CHECK(finding.times == 2);
  CHECK(finding.last_ms - finding.first_ms == 500);
  CHECK(finding.evidence.ends_with(" and gave it a deadline by another request, 0 ms later."));
}

TEST_CASE("Whatever is done with a key that lock-patterns do not name, it is no lock", "[locks]") {
  Scene scene(
      "anna SETNX job:7 6c1f0b39a8d244e7; anna EXPIRE job:7 30; "
      "anna DELEX job:7 IFEQ 6c1f0b39a8d244e7",
      "lock-patterns lock:*\n");
  CHECK(scene.findings().empty());
}

TEST_CASE("prolonged-by-loser", "[locks]") {
  check({
      {"in a transaction",
       "anna MULTI; anna SETNX lock a; anna EXPIRE lock 30; anna EXEC; wait 1000; "
       "bob MULTI; bob SETNX lock b; bob EXPIRE lock 30; bob EXEC",
       "prolonged-by-loser"},
      {"in a script", "anna @setnx-expire lock a 30; wait 1000; bob @setnx-expire-anyway lock b 30",
       "prolonged-by-loser"},
      {"in two requests that follow one another",
       "anna SET lock a NX EX 30; wait 1000; bob SETNX lock b; bob EXPIRE lock 30",
       "prolonged-by-loser"},
      {"the script's loser leaves it alone",
       "anna @setnx-expire lock a 30; wait 1000; bob @setnx-expire lock b 30", ""},
      {"the holder tries again and prolongs",
       "anna MULTI; anna SETNX lock a; anna EXPIRE lock 30; anna EXEC; wait 1000; "
       "anna MULTI; anna SETNX lock a; anna EXPIRE lock 30; anna EXEC",
       ""},
      {"refused, something else, and prolonged later, as connections of a pool may do",
       "anna SET lock a NX EX 30; bob SET lock b NX EX 30; bob PING; bob EXPIRE lock 30", ""},
  });
}

TEST_CASE("foreign-release", "[locks]") {
  check({
      {"DEL", "anna SET lock a NX PX 30000; bob DEL lock", "foreign-release"},
      {"UNLINK", "anna SET lock a NX PX 30000; bob UNLINK lock", "foreign-release"},
      {"DEL in a transaction that watches nothing",
       "anna SET lock a NX PX 30000; bob MULTI; bob DEL lock; bob EXEC", "foreign-release"},
      {"a script that does not compare", "anna SET lock a NX PX 30000; bob @delete lock",
       "foreign-release"},
      {"known by its random value", "anna SET job:7 6c1f0b39a8d244e7 NX PX 30000; bob DEL job:7",
       "foreign-release"},
      {"after another has compared and not deleted",
       "anna SET lock a NX PX 30000; bob DELEX lock IFEQ wrong; carl DEL lock", "foreign-release"},
      {"after DELIFEQ has compared and not deleted",
       "anna SET lock a NX PX 30000; bob DELIFEQ lock wrong; carl DEL lock", "foreign-release"},
      {"after a transaction has compared and not deleted",
       "anna SET lock a NX PX 30000; bob MULTI; bob DELEX lock IFEQ wrong; bob EXEC; carl DEL lock",
       "foreign-release"},
      {"after a condition that nobody can read",
       "anna SET lock a NX PX 30000; bob DELEX lock IFSO a; carl DEL lock", "foreign-release"},
      {"after SET has compared and not stored",
       "anna SET lock a NX PX 30000; bob SET lock b IFEQ wrong; carl DEL lock", "foreign-release"},
      {"another connection of the same name", "anna SET lock a NX PX 30000; anna.2 DEL lock", ""},
      {"a client that has prolonged it before",
       "anna SET lock a NX PX 30000; bob EXPIRE lock 60; bob DEL lock", ""},
      {"a client that was refused, after the holder has gone",
       "anna SET lock a NX PX 30000; bob SETNX lock b; anna leaves; bob DEL lock",
       "foreign-release"},
      {"the holder may have come back by another connection",
       "anna SET lock a NX PX 30000; anna leaves; bob DEL lock", ""},
      {"the key has expired before", "anna SET lock a NX PX 1000; wait 1001; bob DEL lock", ""},
      {"FLUSHALL", "anna SET lock a NX PX 30000; bob FLUSHALL", ""},
      {"it was renamed", "anna SET lock a NX PX 30000; bob RENAME lock other", ""},
      {"a checkpoint comes back",
       "anna CHECKPOINT CREATE; anna SET lock a NX PX 30000; bob CHECKPOINT ROLLBACK", ""},
  });
}

TEST_CASE("late-release", "[locks]") {
  check({
      {"when it is another's",
       "anna SET lock a NX PX 1000; wait 1500; bob SET lock b NX PX 1000; anna DEL lock",
       "late-release"},
      {"when it is nobody's", "anna SET lock a NX PX 1000; wait 1500; anna DEL lock",
       "late-release"},
      {"by a comparison that fails",
       "anna SET lock a NX PX 1000; wait 1500; bob SET lock b NX PX 1000; anna DELEX lock IFEQ a",
       "late-release"},
      {"by a comparison with nothing", "anna SET lock a NX PX 1000; wait 1500; anna DELIFEQ lock a",
       "late-release"},
      {"a script compares: it may have wanted something else",
       "anna SET lock a NX PX 1000; wait 1500; anna @compare-delete lock a; anna DEL lock", ""},
      {"in time", "anna SET lock a NX PX 1000; wait 500; anna DEL lock", ""},
      {"released before, and deleted again",
       "anna SET lock a NX PX 1000; anna DEL lock; wait 1500; anna DEL lock", ""},
      {"another looks whether it is there", "anna SET lock a NX PX 1000; wait 1500; bob DEL lock",
       ""},
      {"a key that is no lock", "anna SET page text NX PX 1000; wait 1500; anna DEL page", ""},
  });
}

TEST_CASE("foreign-token", "[locks]") {
  check({
      {"while it is held", "anna SET lock 1 NX PX 30000; bob SET lock 1 NX PX 30000",
       "foreign-token"},
      {"one after the other",
       "anna SET lock 1 NX PX 30000; anna DEL lock; bob SET lock 1 NX PX 30000", "foreign-token"},
      {"its own value again",
       "anna SET lock a NX PX 30000; anna SET lock a NX PX 30000; anna DEL lock; "
       "anna SET lock a NX PX 30000",
       ""},
      {"another connection of the same name",
       "anna SET lock 1 NX PX 30000; anna.2 SET lock 1 NX PX 30000", ""},
      {"it comes again after its connection was lost",
       "anna SET lock 1 NX PX 30000; anna leaves; bob SET lock 1 NX PX 30000", ""},
      {"the same time stamp", "anna SETNX lock 1701000030; bob SETNX lock 1701000030", ""},
      {"a key that is no lock", "anna SET page text NX PX 30000; bob SET page text NX PX 30000",
       ""},
  });
}

TEST_CASE("overwritten", "[locks]") {
  check({
      {"SET", "anna SET lock a NX PX 30000; bob SET lock b", "overwritten"},
      {"SETEX", "anna SET lock a NX PX 30000; bob SETEX lock 10 b", "overwritten"},
      {"MSET", "anna SET lock a NX PX 30000; bob MSET other 1 lock b", "overwritten"},
      {"GETSET, where no time stamps are used", "anna SET lock a NX PX 30000; bob GETSET lock b",
       "overwritten"},
      {"SET with GET", "anna SET lock a NX PX 30000; bob SET lock b GET", "overwritten"},
      {"by its holder", "anna SET lock a NX PX 30000; anna SET lock a PX 60000", ""},
      {"with its value, through another connection",
       "anna SET lock a NX PX 30000; bob SET lock a XX PX 60000", ""},
      {"refused", "anna SET lock a NX PX 30000; bob SET lock b NX", ""},
      {"by comparing", "anna SET lock a NX PX 30000; bob SET lock b IFEQ a", ""},
      {"it is nobody's", "anna SET lock a NX PX 1000; wait 1500; bob SET lock b", ""},
      {"the holder may have come back by another connection",
       "anna SET lock a NX PX 30000; anna leaves; bob SET lock b", ""},
  });
}

TEST_CASE("stale-delete", "[locks]") {
  check({
      {"a time stamp that has passed",
       "anna SETNX lock.foo 1701000030; wait 40000; bob SETNX lock.foo 1701000071; bob GET "
       "lock.foo; "
       "bob DEL lock.foo; bob SETNX lock.foo 1701000071",
       "stale-delete"},
      {"in milliseconds with a fraction",
       "anna SETNX lock.foo 1701000030000.5; wait 40000; bob DEL lock.foo", "stale-delete"},
      {"it is not stale: foreign-release",
       "anna SETNX lock.foo 1701000030; wait 20000; bob DEL lock.foo", "foreign-release"},
      {"its holder deletes it", "anna SETNX lock.foo 1701000030; wait 40000; anna DEL lock.foo",
       ""},
  });
}

TEST_CASE("takeover-lost", "[locks]") {
  const std::string stale =
      "anna SETNX lock.foo 1701000030; wait 40000; bob SETNX lock.foo 1701000071; "
      "carl SETNX lock.foo 1701000072; bob GETSET lock.foo 1701000071; "
      "carl GETSET lock.foo 1701000072; ";
  check({
      {"it releases what it did not get", (stale + "carl DEL lock.foo").c_str(), "takeover-lost"},
      {"it goes away, and the holder releases", (stale + "wait 1000; bob DEL lock.foo").c_str(),
       ""},
      {"it waits, and takes it when that is stale",
       (stale + "wait 40000; carl GETSET lock.foo 1701000120; carl DEL lock.foo").c_str(), ""},
  });
}

TEST_CASE("starved", "[locks]") {
  const std::string round =
      "anna SET lock a NX PX 30000; carl SET lock c NX PX 30000; "
      "carl SET lock c NX PX 30000; anna DELEX lock IFEQ a";
  CHECK(Scene(repeated(round, 60)).findings() == "starved");
  CHECK(Scene(repeated(round, 40)).findings().empty());
  // More than a hundred refusals in a row, while others took it more than fifty times.
  CHECK(Scene(repeated(round, 51)).findings().empty());
  CHECK(Scene(repeated(round, 52)).findings() == "starved");
  // With many who want it, those who are quick take it several times in a row; that is one turn.
  const std::string turns =
      "anna SET lock a NX PX 30000; carl SET lock c NX PX 30000; bob SET lock b NX PX 30000; "
      "carl SET lock c NX PX 30000; anna DELEX lock IFEQ a";
  const std::string others =
      "bob SET lock b NX PX 30000; anna SET lock a NX PX 30000; "
      "carl SET lock c NX PX 30000; bob DELEX lock IFEQ b";
  CHECK(Scene(repeated(turns, 180)).findings().empty());
  CHECK(Scene(repeated(turns + "; " + others, 90)).findings() == "starved");
  // A long wait for one holder is none for others.
  CHECK(Scene("anna SET lock a NX PX 3000000; " + repeated("carl SET lock c NX PX 30000", 500))
            .findings()
            .empty());
}

TEST_CASE("held-long", "[locks]") {
  const std::string close = "anna SET lock a NX PX 1000; wait 950; anna DELEX lock IFEQ a";
  const std::string quick = "anna SET lock a NX PX 1000; wait 850; anna DELEX lock IFEQ a";
  check({
      {"twice", (close + "; " + close).c_str(), "held-long"},
      {"once", (close + "; " + quick).c_str(), ""},
      {"prolonged in time",
       "anna SET lock a NX PX 1000; wait 900; anna SET lock a IFEQ a PX 1000; wait 500; "
       "anna DELEX lock IFEQ a; anna SET lock a NX PX 1000; wait 900; anna SET lock a IFEQ a PX "
       "1000; wait 500; anna DELEX lock IFEQ a",
       ""},
  });
}

TEST_CASE("A lock is held long when less than a tenth of its time is left", "[locks]") {
  const auto released_after = [](const std::string& ms) {
    return Scene(repeated("anna SET lock a NX PX 1000; wait " + ms + "; anna DEL lock", 2))
        .findings();
  };
  CHECK(released_after("900").empty());
  CHECK(released_after("901") == "held-long");
}

TEST_CASE("Of a lock the last six holders are remembered", "[locks]") {
  const auto deleted_after = [](int others) {
    return Scene("anna SET lock a NX PX 100; wait 200; " +
                 repeated("bob SET lock b NX PX 1000; bob DEL lock", others) +
                 "; bob SET lock b NX PX 1000; anna DEL lock")
        .findings();
  };
  CHECK(deleted_after(5) == "late-release");
  CHECK(deleted_after(6) == "foreign-release");
}

TEST_CASE("Of findings the last 256 are kept, of one kind for one lock the last", "[locks]") {
  Scene scene;
  const auto find = [&](int lock) {
    const std::string name = "lock:" + std::to_string(lock);
    scene.play("anna SET " + name + " a NX PX 1000; bob DEL " + name);
  };
  for (int lock = 0; lock < 256; ++lock) find(lock);
  CHECK(scene.model().findings().size() == 256);
  CHECK(scene.model().findings().front().place->key == "lock:0");
  find(7);
  CHECK(scene.model().findings().size() == 256);
  CHECK(scene.model().findings().back().place->key == "lock:7");
  CHECK(scene.model().findings().back().times == 2);
  find(256);
  CHECK(scene.model().findings().size() == 256);
  CHECK(scene.model().findings().front().place->key == "lock:1");
}

TEST_CASE("A thousand locks can be guards", "[locks]") {
  Scene scene;
  for (int lock = 0; lock < 1000; ++lock)
    CHECK(scene.run("anna", "LOCK GUARD lock:" + std::to_string(lock) + " key") ==
          latchkey::tests::kOk);
  CHECK(scene.run("anna", "LOCK GUARD another key").starts_with("-ERR"));
  // One that is a guard already takes no other place.
  CHECK(scene.run("anna", "LOCK GUARD lock:0 other") == latchkey::tests::kOk);
}

TEST_CASE("outlived", "[locks]") {
  const std::string begin =
      "anna LOCK GUARD lock cart:* total; anna SET lock a NX PX 1000; "
      "anna SET cart:7 x; ";
  check({
      {"when nobody has it", (begin + "wait 1500; anna SET cart:7 y").c_str(), "outlived"},
      {"when another has it",
       (begin + "wait 1500; bob SET lock b NX PX 1000; anna MULTI; anna INCR total; anna EXEC")
           .c_str(),
       "outlived"},
      {"in time",
       (begin + "anna SET cart:7 y; anna DEL lock; wait 1500; anna SET cart:7 z").c_str(), ""},
      {"other keys", (begin + "wait 1500; anna SET order:7 y").c_str(), ""},
      {"another client", (begin + "wait 1500; bob SET cart:7 y").c_str(), ""},
      {"it has the lock again",
       (begin + "wait 1500; anna SET lock a2 NX PX 1000; anna SET cart:7 y").c_str(), ""},
      {"no more a guard", (begin + "wait 1500; bob LOCK UNGUARD lock; anna SET cart:7 y").c_str(),
       ""},
      {"it only reads", (begin + "wait 1500; anna GET cart:7").c_str(), ""},
  });
}

TEST_CASE("reentry-lost", "[locks]") {
  const std::string id = "01234567-89ab-cdef-0123-456789abcdef:1";
  const std::string other = "fedcba98-89ab-cdef-0123-456789abcdef:2";
  const std::string enter = "anna @enter jobs " + id + " 30000; ";
  const std::string leave = "anna @leave jobs " + id + " 30000; ";
  check({
      {"released less often than taken, and the holder goes",
       (enter + enter + leave + "anna leaves").c_str(), "reentry-lost"},
      {"released less often than taken, and it expires",
       (enter + enter + leave + "wait 40000").c_str(), "reentry-lost"},
      {"released as often as taken", (enter + enter + leave + leave + "anna leaves").c_str(), ""},
      {"a crash", (enter + enter + "anna leaves; wait 40000").c_str(), ""},
      {"a crash after a look at the count",
       (enter + enter + "anna HINCRBY jobs " + id + " 0; anna leaves; wait 40000").c_str(), ""},
      {"other connections of the same client",
       (enter + "bob @enter jobs " + id + " 30000; carl @leave jobs " + id + " 30000; " + leave +
        enter + leave + "wait 40000")
           .c_str(),
       ""},
      {"two that want it",
       (enter + "bob @enter jobs " + other + " 30000; bob @enter jobs " + other + " 30000; " +
        leave + "bob @enter jobs " + other + " 30000; bob @leave jobs " + other + " 30000; wait 1")
           .c_str(),
       ""},
  });
}

TEST_CASE("unbalanced", "[locks]") {
  const std::string begin = "admin RPUSH semaphore:jobs t1 t2 t3; ";
  const std::string taken = begin + "anna LPOP semaphore:jobs; bob BLPOP semaphore:jobs 1; ";
  check({
      {"a token is put back twice",
       (taken +
        "anna RPUSH semaphore:jobs t1; anna RPUSH semaphore:jobs t1; bob RPUSH semaphore:jobs t2")
           .c_str(),
       "unbalanced"},
      {"a client goes with its token, of which it has left no trace",
       (taken + "anna leaves; bob RPUSH semaphore:jobs t2").c_str(), "unbalanced"},
      {"a token that came by waiting is lost",
       (begin + "anna LPOP semaphore:jobs 3; bob BLPOP semaphore:jobs 0; "
                "anna RPUSH semaphore:jobs t1; bob leaves; wait 1")
           .c_str(),
       "unbalanced"},
      {"all are put back, and taken again",
       (taken + "anna RPUSH semaphore:jobs t1; bob RPUSH semaphore:jobs t2; "
                "carl LPOP semaphore:jobs 3; carl RPUSH semaphore:jobs t1 t2 t3; carl leaves")
           .c_str(),
       ""},
      {"whoever crashed is known by a hash, and its token is put back for it",
       (taken + "anna HSET semaphore:taken t1 1701000000; anna leaves; "
                "bob RPUSH semaphore:jobs t1; bob RPUSH semaphore:jobs t2; bob leaves")
           .c_str(),
       ""},
      {"the token moves to a list of those in use",
       (begin + "anna LMOVE semaphore:jobs in-use LEFT RIGHT; anna leaves").c_str(), ""},
      {"put back through another connection",
       (taken + "anna.2 RPUSH semaphore:jobs t1; anna leaves; bob RPUSH semaphore:jobs t2").c_str(),
       ""},
      {"put back by one who has never had any, perhaps for a client that goes",
       (taken + "carl RPUSH semaphore:jobs t1; anna leaves; bob RPUSH semaphore:jobs t2").c_str(),
       ""},
      {"another writes, and it is no trace of the token",
       (taken + "carl SET key t1; anna leaves; bob RPUSH semaphore:jobs t2").c_str(), "unbalanced"},
      {"another connection of the same name writes down what it has",
       (taken + "anna.2 SET key t1; anna leaves; bob RPUSH semaphore:jobs t2").c_str(), ""},
      {"one write is a trace of the tokens of two semaphores",
       (taken + "admin RPUSH semaphore:b t1 t2; anna LPOP semaphore:b; anna SET key t1; "
                "anna leaves")
           .c_str(),
       ""},
      {"the trace of a token that is back is none of the next one",
       (taken + "anna SET key t1; anna RPUSH semaphore:jobs t1; anna LPOP semaphore:jobs; "
                "anna leaves")
           .c_str(),
       "unbalanced"},
      {"it is made larger",
       (taken + "admin RPUSH semaphore:jobs t4 t5; bob RPUSH semaphore:jobs "
                "t2; anna RPUSH semaphore:jobs t1")
           .c_str(),
       ""},
      {"it is made anew",
       (taken + "admin DEL semaphore:jobs; admin RPUSH semaphore:jobs t1 t2; anna leaves").c_str(),
       ""},
      {"a queue is no semaphore",
       "admin RPUSH queue a b c; anna LPOP queue; anna leaves; bob RPUSH queue a; bob LPOP queue; "
       "bob RPUSH queue b; bob RPUSH queue c",
       ""},
  });
}

TEST_CASE("Who takes a token is known when others have been done with theirs for long", "[locks]") {
  Scene scene("admin RPUSH semaphore:jobs t1 t2 t3");
  for (size_t i = 0; i < latchkey::locks::LockModel::kMaxUsers; ++i) {
    const std::string name = "c" + std::to_string(i);
    scene.play(name + " LPOP semaphore:jobs; " + name + " RPUSH semaphore:jobs t1");
  }
  CHECK(scene.findings().empty());
  scene.play("late LPOP semaphore:jobs; late leaves; c0 LPOP semaphore:jobs; wait 1");
  CHECK(scene.findings() == "unbalanced");
}

TEST_CASE("A client goes with tokens of several semaphores, the latest first", "[locks]") {
  Scene scene(
      "admin RPUSH semaphore:a 1 2; admin RPUSH semaphore:b 1 2; admin RPUSH semaphore:c 1 2; "
      "anna LPOP semaphore:c; anna LPOP semaphore:a; anna LPOP semaphore:b; bob LPOP semaphore:a; "
      "anna leaves");
  std::string gone;
  for (const auto& event : scene.model().log()) {
    if (event.kind == latchkey::locks::EventKind::kHolderGone) gone += event.place->key + " ";
  }
  CHECK(gone == "semaphore:a semaphore:b semaphore:c ");
  CHECK(scene.findings() == "unbalanced, unbalanced, unbalanced");
}

TEST_CASE("Semaphores that are forgotten are no concern of their clients any more", "[locks]") {
  Scene scene({}, "lock-watch-max-keys 2\n");
  for (const char* key : {"semaphore:a ", "semaphore:b ", "semaphore:c ", "semaphore:d "})
    scene.play("admin RPUSH " + std::string(key) + "1 2; anna LPOP " + key + "1");
  CHECK(scene.model().records().size() == 2);
  scene.play("bob LPOP semaphore:c; anna SET key 1; anna LPOP semaphore:d; bob DEL semaphore:d");
  scene.play("anna leaves; bob SET key 1; bob leaves");
  CHECK(scene.log().ends_with("holder-gone anna, holder-gone bob"));
  CHECK(scene.findings().empty());
}

TEST_CASE("A write costs no look at semaphores that are others'", "[locks]") {
  using namespace latchkey;
  struct Counted final : locks::Clients {
    locks::Party describe(uint64_t id) const override {
      ++looks;
      return {.id = id, .name = "c" + std::to_string(id)};
    }
    bool is_connected(uint64_t) const override { return true; }
    bool is_still(const locks::Party&) const override {
      ++looks;
      return true;
    }
    mutable int looks = 0;
  };
  const Counted clients;
  const base::HashSecret secret(1);
  locks::LockModel model(clients, secret);
  constexpr uint64_t kSemaphores = 1000;
  for (uint64_t i = 1; i <= kSemaphores; ++i) {
    const std::string key = "semaphore:" + std::to_string(i);
    model.tokens_made(0, key, {.client = i}, 3);
    model.tokens_counted(0, key, {.client = i}, 2, false);
  }
  clients.looks = 0;
  model.trace_left(kSemaphores + 1);
  CHECK(clients.looks <= 2);
  model.trace_left(1);
  model.client_gone(1, 0);
  CHECK(model.findings().empty());
  model.client_gone(2, 0);
  CHECK(model.findings().size() == 1);
}

TEST_CASE("A semaphore is known when it is created in a transaction or script", "[locks]") {
  Scene scene(
      "anna MULTI; anna RPUSH SEMAPHORE:a 1; anna RPUSH SEMAPHORE:a 2; anna EXEC; "
      "bob LPOP SEMAPHORE:a 2; carl BLPOP SEMAPHORE:a 0; dora SUBSCRIBE free:SEMAPHORE:a");
  CHECK(scene.log() == "tokens-made anna, token-returned anna, token-taken bob x2");
  const std::string info = scene.run("anna", "LOCK INFO SEMAPHORE:a");
  INFO(info);
  for (const char* part : {"$6\r\ntokens\r\n:0\r\n", "$14\r\ntokens-created\r\n:2\r\n",
                           "$5\r\nstate\r\n$4\r\nheld\r\n", "$16\r\ntokens in a list\r\n",
                           "$2\r\nby\r\n$17\r\nblpop SEMAPHORE:a\r\n",
                           "$2\r\nby\r\n$26\r\nsubscribe free:SEMAPHORE:a\r\n"})
    CHECK(info.find(part) != std::string::npos);
  scene.play("bob RPUSH SEMAPHORE:a 1 2; anna FLUSHALL");
  CHECK(scene.run("anna", "LOCK LIST") == "*0\r\n");
}
