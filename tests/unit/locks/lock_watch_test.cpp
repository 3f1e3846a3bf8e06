// What the watch sees of locks, and what LOCK replies.
#include "locks/lock_watch.h"

#include <string>

#include "locks/findings.h"
#include "locks/lock_text.h"
#include "unit/catch.h"
#include "unit/locks/scene.h"

using namespace latchkey;
using tests::bulk;
using tests::error;
using tests::Scene;

TEST_CASE("A lock's log tells what became of it", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 1000; bob SET lock b NX; bob SET lock b NX; wait 100; "
      "bob SET lock b NX; carl SETNX lock c; wait 1000; bob SETNX lock b; "
      "bob PEXPIRE lock 5000; bob PERSIST lock; bob DEL lock");
  CHECK(scene.log() ==
        "taken anna, refused bob x3, refused carl, expired, taken bob, deadline-set bob, "
        "persisted bob, released-blind bob");
}

TEST_CASE("What scripts and transactions do to a lock is theirs who sent them", "[locks]") {
  Scene scene(
      "anna @setnx-expire lock a 30; bob @setnx-expire lock b 30; anna @compare-delete "
      "lock a; bob MULTI; bob SETNX lock b; bob EXPIRE lock 30; bob EXEC");
  CHECK(scene.log() ==
        "taken anna, deadline-set anna, refused bob, released-by-comparison anna, taken bob, "
        "deadline-set bob");
  CHECK(scene.findings().empty());
}

TEST_CASE("Locks are evicted and flushed, and go with their databases", "[locks]") {
  Scene scene(
      "anna SET lock a NX; bob FAULT ADD KEY lock COMMAND get DO EVICT; bob GET lock; "
      "anna SET lock a NX; bob FLUSHDB; anna SET lock a NX; bob SWAPDB 0 1");
  CHECK(scene.log() == "taken anna, evicted, taken anna, flushed, taken anna");
  CHECK(scene.model().find(0, "lock") == nullptr);
  REQUIRE(scene.model().find(1, "lock") != nullptr);
  CHECK(scene.model().find(1, "lock")->hold.has_value());
}

TEST_CASE("No lock is left of what a rollback takes back, whichever database it was in",
          "[locks]") {
  Scene scene(
      "anna SET x 1; anna SELECT 1; anna SET y 1; bob CHECKPOINT CREATE; anna FLUSHALL; "
      "bob SWAPDB 0 1; anna SET lock a NX; carl SET lock b NX; bob CHECKPOINT ROLLBACK");
  for (const int database : {0, 1}) {
    const locks::Record* record = scene.model().find(database, "lock");
    CHECK((record == nullptr || !record->hold));
  }
}

TEST_CASE("A fault has a lock expire", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 30000; bob FAULT ADD KEY lock COMMAND get DO EXPIRE; "
      "anna @compare-delete lock a");
  CHECK(scene.log() == "taken anna, expired, came-back anna");
}

TEST_CASE("LOCK INFO tells of the holder and of who was refused", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000; bob SET lock b NX; bob SET lock b NX; wait 250");
  const std::string info = scene.run("carl", "LOCK INFO lock");
  for (const char* part :
       {"$11\r\nclient-name\r\n$4\r\nanna\r\n", "$5\r\nstate\r\n$4\r\nheld\r\n",
        "$7\r\nheld-ms\r\n:250\r\n", "$7\r\nrefused\r\n:2\r\n", "$15\r\nrefused-clients\r\n:1\r\n",
        "$5\r\ntoken\r\n$1\r\na\r\n", "$6\r\nrecipe\r\n$9\r\nSET NX PX\r\n",
        "$8\r\nknown-by\r\n$4\r\nname\r\n"})
    CHECK(info.find(part) != std::string::npos);
}

TEST_CASE("Whoever was refused and has taken the lock since is not among the refused", "[locks]") {
  Scene scene(
      "anna SET lock a NX; bob SET lock b NX; carl SET lock c NX; anna DEL lock; bob SET lock b "
      "NX");
  CHECK(scene.run("carl", "LOCK INFO lock").find("$15\r\nrefused-clients\r\n:1\r\n") !=
        std::string::npos);
}

TEST_CASE("LOCK INFO tells of a lock that nobody holds", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000; wait 250; anna DEL lock");
  const std::string info = scene.run("carl", "LOCK INFO lock");
  for (const char* part :
       {"$11\r\nclient-name\r\n$0\r\n\r\n", "$5\r\nstate\r\n$4\r\nfree\r\n",
        "$9\r\nconnected\r\n:0\r\n", "$7\r\nheld-ms\r\n:0\r\n", "$8\r\nsince-ms\r\n:0\r\n",
        "$6\r\nrecipe\r\n$0\r\n\r\n", "$5\r\ntaken\r\n:1\r\n"})
    CHECK(info.find(part) != std::string::npos);
}

TEST_CASE("LOCK replies maps in RESP3", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000; bob DEL lock; bob HELLO 3");
  CHECK(scene.run("bob", "LOCK LIST").starts_with("*1\r\n%17\r\n"));
  CHECK(scene.run("bob", "LOCK INFO lock").starts_with("%24\r\n"));
  CHECK(scene.run("bob", "LOCK LOG").starts_with("*2\r\n%12\r\n"));
  CHECK(scene.run("bob", "LOCK CHECK").starts_with("*1\r\n%14\r\n"));
  CHECK(scene.run("bob", "LOCK DOCTOR").starts_with("="));
}

TEST_CASE("LOCK CHECK is empty when all is well, and forgets by SINCE and RESET", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000");
  CHECK(scene.run("bob", "LOCK CHECK") == "*0\r\n");
  scene.play("bob DEL lock");
  CHECK(scene.run("bob", "LOCK CHECK").starts_with("*1\r\n"));
  const std::string id = std::to_string(scene.model().findings().back().id);
  CHECK(scene.run("bob", "LOCK CHECK SINCE " + id) == "*0\r\n");
  CHECK(scene.run("bob", "LOCK CHECK SEVERITY high").starts_with("*1\r\n"));
  // Found again, it counts as new.
  scene.play("anna SET lock a NX PX 1000; bob DEL lock");
  CHECK(scene.run("bob", "LOCK CHECK SINCE " + id).starts_with("*1\r\n"));
  CHECK(scene.model().findings().back().times == 2);
  CHECK(scene.run("bob", "LOCK RESET") == "+OK\r\n");
  CHECK(scene.run("bob", "LOCK CHECK") == "*0\r\n");
  CHECK(scene.run("bob", "LOCK LIST") == "*0\r\n");
}

TEST_CASE("LOCK RESET forgets that a client may have lost a lock", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000; wait 1500");
  CHECK(scene.model().may_have_lost());
  CHECK(scene.run("bob", "LOCK RESET") == "+OK\r\n");
  CHECK_FALSE(scene.model().may_have_lost());
  scene.play("anna SET lock a NX PX 1000; wait 1500");
  CHECK(scene.model().may_have_lost());
}

TEST_CASE("LOCK says what is wrong with a request", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000");
  CHECK(scene.run("bob", "LOCK INFO other") == error("ERR no lock is known at that key"));
  CHECK(scene.run("bob", "LOCK DOCTOR other") == error("ERR no lock is known at that key"));
  CHECK(scene.run("bob", "LOCK TIMELINE other") == error("ERR no lock is known at that key"));
  CHECK(scene.run("bob", "LOCK TIMELINE lock WIDTH 10") ==
        error("ERR value is out of range, value must between 40 and 1000"));
  CHECK(scene.run("bob", "LOCK TIMELINE lock FORMAT png") ==
        error("ERR format must be 'text' or 'svg'"));
  CHECK(scene.run("bob", "LOCK CHECK SEVERITY grave") ==
        error("ERR severity must be 'low', 'medium' or 'high'"));
  CHECK(scene.run("bob", "LOCK CHECK SOON") == error("ERR syntax error"));
  CHECK(scene.run("bob", "LOCK LOG x y") == error("ERR value is not an integer or out of range"));
  CHECK(scene.run("bob", "LOCK INFO") ==
        error("ERR wrong number of arguments for 'lock|info' command"));
  CHECK(scene.run("bob", "LOCK PICK") == error("ERR unknown subcommand 'PICK'. Try LOCK HELP."));
  CHECK(scene.run("bob", "LOCK") == error("ERR wrong number of arguments for 'lock' command"));
}

TEST_CASE("What is not watched is not known", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 1000; anna CONFIG SET lock-watch no; bob DEL lock; "
      "bob SET lock b NX");
  CHECK(scene.run("bob", "LOCK LIST") == "*0\r\n");
  scene.play("anna CONFIG SET lock-watch yes; bob DEL lock; bob SETNX lock b");
  CHECK(scene.log() == "taken bob");
}

TEST_CASE("A million different keys leave only the latest behind", "[locks]") {
  Scene scene({}, "lock-watch-max-keys 100\nlock-log-max-len 50\n");
  for (int i = 0; i < 20'000; ++i)
    scene.run("anna", "SET lock:" + std::to_string(i) + " a NX PX 1000000");
  CHECK(scene.model().records().size() <= 100);
  CHECK(scene.model().log().size() == 50);
  CHECK(scene.model().records().front().place->key == "lock:19999");
  // The others are not known, which is no harm.
  scene.play("bob DEL lock:5; bob SET lock:6 b NX; bob SET lock:7 b; bob EXPIRE lock:8 10");
  CHECK(scene.findings().empty());
}

TEST_CASE("Steps of locks that nobody else touches wait, and are told in order", "[locks]") {
  Scene scene(
      "anna SET lock:1 a NX PX 1000; anna @compare-delete lock:1 a; bob SET lock:2 b NX; "
      "anna SET lock:1 a2 NX PX 1000; carl SET lock:2 c NX; carl SET lock:2 c NX; anna DEL lock:1; "
      "bob SET lock:1 b NX; carl SET lock:1 c NX; anna SET lock:2 a NX; bob DEL lock:1");
  CHECK(scene.log() ==
        "taken anna, released-by-comparison anna, taken bob, taken anna, refused carl x2, "
        "released-blind anna, taken bob, refused carl, refused anna, released-blind bob");
  CHECK(scene.model().records().front().place->key == "lock:1");
  CHECK(scene.model().find(0, "lock:1")->taken == 3);
  CHECK(scene.findings().empty());
}

TEST_CASE("Locks of very long names are not watched, and other lists cost no lock its place",
          "[locks]") {
  Scene scene("anna SET lock:" + std::string(2000, 'x') + " a NX PX 1000",
              "lock-watch-max-keys 2\n");
  CHECK(scene.model().records().empty());
  scene.play("anna SET lock:1 a NX; anna SET lock:2 a NX; bob RPUSH queue 1 2");
  CHECK(scene.model().records().size() == 2);
}

TEST_CASE("What waited of a client is told when it goes, with its name", "[locks]") {
  Scene scene("anna SET lock:1 a NX PX 1000; anna DEL lock:1; anna leaves");
  CHECK(scene.log() == "taken anna, released-blind anna");
}

TEST_CASE("A client that goes while its steps wait has gone before what comes later", "[locks]") {
  Scene scene(
      "anna SET lock:1 a NX PX 9000; bob SET lock:2 b NX PX 9000; wait 10; anna leaves; wait 10; "
      "carl SET lock:1 c NX PX 9000; carl SET lock:3 c NX PX 9000; bob leaves");
  CHECK(scene.log() ==
        "taken anna, taken bob, holder-gone anna, refused carl, taken carl, holder-gone bob");
  const auto& log = scene.model().log();
  CHECK(log[2].time_ms - log[0].time_ms == 10);
  CHECK(log[5].time_ms - log[0].time_ms == 20);
  // It is not told again.
  scene.play("carl DEL lock:2; carl leaves");
  CHECK(scene.log() ==
        "taken anna, taken bob, holder-gone anna, refused carl, taken carl, holder-gone bob, "
        "released-by-stranger carl, holder-gone carl");
}

TEST_CASE("A client that goes with a lock that is known and one that waits has gone with both",
          "[locks]") {
  Scene scene("anna SET lock:1 a NX; anna EXPIRE lock:1 60; anna SET lock:2 a NX; anna leaves");
  CHECK(scene.log() ==
        "taken anna, deadline-set anna, taken anna, holder-gone anna, holder-gone anna");
  CHECK(scene.findings() == "not-atomic, no-deadline");
}

TEST_CASE("Of many clients that went each is known by its name and by when it went", "[locks]") {
  constexpr size_t kKept = 16;
  Scene scene({}, "lock-watch-max-keys 16\nlock-log-max-len 1000\n");
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    scene.play("c" + number + " SET lock:" + number + " a NX PX 100000; c" + number +
               " leaves; wait 1");
    // One whose step has been told goes, too.
    if (i % 3 == 0)
      scene.play("d SET lock:d d NX PX 100000; d DEL lock:d; d SET lock:d d EX 9; d leaves");
  }
  const auto& records = scene.model().records();
  REQUIRE(records.size() == kKept);
  for (const locks::Record& record : records) {
    if (record.place->key == "lock:d") continue;
    REQUIRE(record.hold);
    CHECK(record.hold->holder_gone);
    CHECK(record.hold->holder->name == "c" + record.place->key.substr(5));
  }
}

TEST_CASE("The same value from two clients is found whichever comes first", "[locks]") {
  for (const char* steps :
       {"anna SET lock t NX PX 1000; bob SET lock t NX PX 1000",
        "anna SET lock t NX PX 1000; anna DEL lock; bob SET lock t NX PX 1000; bob DEL lock"}) {
    Scene scene(steps);
    CHECK(scene.findings() == "foreign-token");
  }
}

TEST_CASE("Claims that wait are kept while their ring grows", "[locks]") {
  Scene scene;
  for (int i = 0; i < 1000; ++i) scene.run("anna", "SET lock:" + std::to_string(i) + " a NX");
  CHECK(scene.model().records().size() == 1000);
  scene.play("anna leaves");
  CHECK(scene.model().findings().back().times == 1);
  CHECK(scene.model().findings().size() == locks::LockModel::kMaxFindings);
}

TEST_CASE("Only names that match lock-patterns are locks", "[locks]") {
  Scene scene({}, "lock-patterns \"m:* guard\"\n");
  scene.play("anna SET lock a NX PX 1000; bob DEL lock");
  CHECK(scene.findings().empty());
  scene.play("anna SET m:1 a NX PX 1000; bob DEL m:1; anna SETNX guard 1; anna EXPIRE guard 10");
  CHECK(scene.findings() == "foreign-release, not-atomic");
}

TEST_CASE("Findings are published where lock-notify asks for it", "[locks]") {
  Scene scene("carl SUBSCRIBE __lock__:lock; anna SET lock a NX PX 1000; bob DEL lock");
  CHECK(scene.client("carl").take_output().empty());
  scene.play("anna CONFIG SET lock-notify yes; anna SET lock a NX PX 1000; bob DEL lock");
  CHECK(scene.client("carl").take_output().find("foreign-release anna held the lock since") !=
        std::string::npos);
}

TEST_CASE("With lock-notify findings are published when they happen", "[locks]") {
  Scene scene(
      "carl SUBSCRIBE __lock__:lock; anna CONFIG SET lock-notify yes; "
      "anna SET lock t NX PX 1000; anna DEL lock; bob SET lock t NX PX 1000");
  CHECK(scene.client("carl").take_output().find("foreign-token") != std::string::npos);
}

TEST_CASE("LOCK DOCTOR explains in words", "[locks]") {
  Scene scene("anna SET lock a NX PX 30000; wait 1500; bob DEL lock");
  const std::string report = scene.run("carl", "LOCK DOCTOR lock");
  INFO(report);
  CHECK(report.find("1. foreign-release (high): \"lock\"") != std::string::npos);
  CHECK(report.find("at 12:00:01.500 bob") != std::string::npos);
  CHECK(report.find("<lock> IFEQ <your value>") != std::string::npos);
  Scene quiet("anna SET lock a NX PX 30000");
  CHECK(quiet.run("carl", "LOCK DOCTOR").find("Nothing is wrong") != std::string::npos);
}

TEST_CASE("Remedies name commands that the release has", "[locks]") {
  struct Case {
    const char* release;
    bool delex;
    bool delifeq;
    bool set_ifeq;
  };
  for (const Case& each :
       {Case{"no", true, false, true}, Case{"redis 8.6", true, false, true},
        Case{"redis 8.0", false, false, false}, Case{"valkey 8.1", false, false, true},
        Case{"valkey 9.1", false, true, true}}) {
    CAPTURE(each.release);
    const auto edition = server::Edition::parse(each.release);
    REQUIRE(edition);
    std::string all;
    for (const locks::FindingDescription& words : locks::all_findings())
      all += locks::remedy_of(words.kind, *edition);
    CHECK(all.find('{') == std::string::npos);
    const auto names = [&all](std::string_view text) {
      return all.find(text) != std::string::npos;
    };
    CHECK(names("DELEX <lock> IFEQ") == each.delex);
    CHECK(names("DELIFEQ <lock>") == each.delifeq);
    CHECK(names("IFEQ <your value> PX <milliseconds> replies nil") == each.set_ifeq);
    CHECK(names("<milliseconds> replies 0") == !each.set_ifeq);
  }
  Scene scene("anna SET lock a NX PX 30000; bob DEL lock", "emulate redis 7.0\n");
  CHECK(scene.run("carl", "LOCK DOCTOR lock").find("DELEX") == std::string::npos);
  CHECK(scene.run("carl", "LOCK CHECK").find("return redis.call('DEL', KEYS[1])") !=
        std::string::npos);
}

TEST_CASE("LOCK TIMELINE draws a lock that nobody has waited for or given back", "[locks]") {
  Scene scene("anna SET lock a NX PX 4000; wait 1000");
  const std::string picture = scene.run("carl", "LOCK TIMELINE lock WIDTH 47");
  INFO(picture);
  CHECK(picture.find("anna |") != std::string::npos);
}

TEST_CASE("LOCK TIMELINE draws a row for each client", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 4000; wait 1000; bob SET lock b NX PX 4000; wait 1000; "
      "bob SET lock b NX PX 4000; wait 2000; bob SET lock b NX PX 4000; wait 1000; "
      "anna DEL lock; wait 3000");
  const std::string picture = scene.run("carl", "LOCK TIMELINE lock WIDTH 47");
  INFO(picture);
  CHECK(picture.find("anna |") != std::string::npos);
  CHECK(picture.find("bob  |") != std::string::npos);
  CHECK(picture.find("a late-release:") != std::string::npos);
  const std::string text = picture.substr(picture.find("\r\n") + 2);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    CHECK(end - start <= 47);
    start = end + 1;
  }
  const std::string svg = scene.run("carl", "LOCK TIMELINE lock FORMAT svg");
  CHECK(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\"") != std::string::npos);
  CHECK(svg.find("</svg>") != std::string::npos);
  // The names, the plot, the margin; a row each for anna and bob, the findings' signs, their words.
  CHECK(svg.find("width=\"960\" height=\"182\" viewBox=\"0 0 960 182\"") != std::string::npos);
}

TEST_CASE("A lock that counts is known by its scripts", "[locks]") {
  const std::string id = "01234567-89ab-cdef-0123-456789abcdef:1";
  const std::string other = "fedcba98-89ab-cdef-0123-456789abcdef:2";
  Scene scene("anna @enter jobs " + id + " 30000; anna @enter jobs " + id +
              " 30000; bob @enter jobs " + other + " 30000; anna @leave jobs " + id +
              " 30000; anna @leave jobs " + id + " 30000");
  CHECK(scene.log() ==
        "taken anna, deadline-set anna, reentered anna, prolonged anna, refused bob, left anna, "
        "prolonged anna, released-by-comparison anna");
  // Counters of other hashes are none.
  Scene counters;
  counters.client("anna").run_words({"EVAL", "return redis.call('HINCRBY', 'h', 'f', 1)", "0"});
  CHECK(counters.model().records().empty());
}

TEST_CASE("A script that sets a key which it has seen missing takes a lock", "[locks]") {
  Scene scene(
      "anna @exists-set lock a 1000; bob @exists-set lock b 1000; anna @compare-delete lock a; "
      "bob @exists-set lock b 1000; anna DEL lock");
  CHECK(scene.log() ==
        "taken anna, released-by-comparison anna, taken bob, released-by-stranger anna");
  CHECK(scene.findings() == "foreign-release");
  Scene unseen;
  unseen.client("anna").run_words({"EVAL", "redis.call('SET', 'lock', 'a', 'PX', 1000)", "0"});
  CHECK(unseen.model().records().empty());
}

TEST_CASE("SET that makes no key takes no lock, whoever sends it and for whatever reason",
          "[locks]") {
  for (const std::string edition : {"", "emulate \"redis 8.6\"\n", "emulate \"valkey 9.1\"\n"}) {
    Scene scene("", edition);
    size_t made = 0;
    for (const std::string condition : {"", " NX", " XX", " IFEQ x", " IFNE x"}) {
      for (const std::string deadline : {"", " EX 100", " PX 100", " EXAT 1", " PXAT 1"}) {
        for (const std::string get : {"", " GET"}) {
          for (const std::string before : {"", "SET lock x", "SET lock x PX 1000"}) {
            for (const bool in_script : {false, true}) {
              scene.run("anna", "DEL lock");
              if (!before.empty()) scene.run("anna", before);
              std::string request = "SET lock y" + condition + deadline + get;
              if (in_script) {
                request =
                    "EVAL redis.call('EXISTS','lock')return(redis.call(unpack(ARGV)))or(1) 0 " +
                    request;
              }
              INFO(edition << before << "; " << request);
              scene.run("bob", request);
              made += before.empty() && scene.run("bob", "GET lock") == bulk("y") ? 1 : 0;
              const locks::Record* record = scene.model().find(0, "lock");
              const bool is_held = record != nullptr && record->hold.has_value();
              if (is_held) CHECK(scene.run("bob", "EXISTS lock") == ":1\r\n");
            }
          }
        }
      }
    }
    CHECK(made > 20);
  }
}

TEST_CASE("A former holder that looks at its lock comes back", "[locks]") {
  Scene scene("anna SET lock a NX PX 1000; wait 1500; anna @compare-delete lock a");
  CHECK(scene.log() == "taken anna, expired, came-back anna");
}

TEST_CASE("LOCK GUARD and UNGUARD say what they cannot do", "[locks]") {
  Scene scene("");
  CHECK(scene.run("anna", "LOCK GUARD lock") ==
        error("ERR wrong number of arguments for 'lock|guard' command"));
  CHECK(scene.run("anna", "LOCK UNGUARD lock") == error("ERR that lock guards nothing"));
  CHECK(scene.run("anna", "LOCK UNGUARD") == "+OK\r\n");
  for (int i = 0; i < 1000; ++i)
    CHECK(scene.run("anna", "LOCK GUARD lock" + std::to_string(i) + " *") == "+OK\r\n");
  CHECK(scene.run("anna", "LOCK GUARD other *") ==
        error("ERR there may be up to 1000 locks that guard keys"));
  CHECK(scene.run("anna", "LOCK GUARD lock7 a b") == "+OK\r\n");
}

TEST_CASE("A name has that of a lock in it as words of its own", "[locks]") {
  CHECK(locks::has_name("orders", "orders"));
  CHECK(locks::has_name("redisson_lock__channel:{orders}", "orders"));
  CHECK(locks::has_name("orders:lock:queue", "orders:lock"));
  CHECK(locks::has_name("reorders orders", "orders"));
  CHECK_FALSE(locks::has_name("reorders", "orders"));
  CHECK_FALSE(locks::has_name("orders2", "orders"));
  CHECK_FALSE(locks::has_name("order", "orders"));
  CHECK_FALSE(locks::has_name("anything", ""));
}

TEST_CASE("A key says by its name that it is a lock", "[locks]") {
  for (const char* name : {"lock", "lock:7", "orders.LOCK", "a:Mutex", "jobs-semaphore", "lease7",
                           "leader", "blocklock", "unlock"})
    CHECK(locks::names_lock(name));
  for (const char* name :
       {"", "l", "block", "clock:7", "release", "blocks", "lo", "page:lo", "seen"})
    CHECK_FALSE(locks::names_lock(name));
}

TEST_CASE("A value says by its looks that it is random, or a time", "[locks]") {
  CHECK(locks::is_random("6c1f0b39a8d244e7"));
  CHECK(locks::is_random("01234567-89ab-cdef-0123-456789abcdef"));
  CHECK_FALSE(locks::is_random("6c1f0b39a8d244e"));
  CHECK_FALSE(locks::is_random("aaaaaaaaaaaaaaaa1"));
  CHECK_FALSE(locks::is_random("{\"name\": \"anna\", \"age\": 7}"));
  constexpr int64_t kNow = 1'701'000'000'000;
  CHECK(locks::time_stamp("1701000030", kNow) == kNow + 30'000);
  CHECK(locks::time_stamp("1701000030.5", kNow) == kNow + 30'500);
  CHECK(locks::time_stamp("1701000030250", kNow) == kNow + 30'250);
  for (const char* text : {"", "1", "17010000", "1801000030", "1701000030x", "-1701000030", "nan"})
    CHECK_FALSE(locks::time_stamp(text, kNow).has_value());
}

namespace {

// The picture of a lock, 40 columns wide: what stands behind that label. The labels are as long as
// the longest name, and at least four letters.
std::string picture_of(Scene& scene, const std::string& key, size_t longest = 4) {
  return scene.run("carl", "LOCK TIMELINE " + key + " WIDTH " + std::to_string(43 + longest));
}
std::string row_of(const std::string& picture, const std::string& label) {
  const size_t start = picture.find("\n" + label + " |");
  if (start == std::string::npos) return "no such row";
  const size_t begin = start + label.size() + 3;
  return picture.substr(begin, picture.find("|\n", begin) - begin);
}
std::string spaces(size_t count) {
  return std::string(count, ' ');
}
std::string held(size_t count) {
  return std::string(count, '=');
}

}  // namespace

TEST_CASE("LOCK TIMELINE shows times, a row of what was done, and what the signs mean", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 4000; wait 1000; anna PEXPIRE lock 4000; wait 1000; anna DEL lock; "
      "wait 2000");
  CHECK(picture_of(scene, "lock") == bulk("lock\n"
                                          "2023-11-26 12:00:00.000 to 2023-11-26 12:00:04~\n"
                                          "anna |==========>=========R                   |\n"
                                          " = held   > deadline moved   R released\n"));
  // Only the last 2 seconds.
  const std::string late = scene.run("carl", "LOCK TIMELINE lock WIDTH 100 LAST 2000");
  CHECK(late.find("\n2023-11-26 12:00:02.000 to 2023-11-26 12:00:04.000, 2 s\n") !=
        std::string::npos);
  CHECK(row_of(late, "anna") == "R" + spaces(92));
  CHECK(scene.run("carl", "LOCK TIMELINE lock LAST 0") ==
        error("ERR value is out of range, value must between 1 and 9223372036854775807"));
  CHECK(scene.run("carl", "LOCK TIMELINE lock WIDE 50") == error("ERR syntax error"));
  CHECK(scene.run("carl", "LOCK TIMELINE lock WIDTH 39").starts_with("-ERR"));
  CHECK(scene.run("carl", "LOCK TIMELINE lock WIDTH 40").starts_with("$"));
  CHECK(scene.run("carl", "LOCK TIMELINE lock WIDTH 1000").starts_with("$"));
  CHECK(scene.run("carl", "LOCK TIMELINE lock WIDTH 1001").starts_with("-ERR"));
}

TEST_CASE("LOCK TIMELINE shows who overwrote a lock, and who had held it", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 9000; wait 1000; bob SET lock b PX 9000; wait 3000; "
      "bob PEXPIRE lock 9000");
  const std::string picture = picture_of(scene, "lock");
  INFO(picture);
  CHECK(row_of(picture, "anna") == held(10) + "O" + spaces(29));
  CHECK(row_of(picture, "bob ") == spaces(10) + held(29) + ">");
  CHECK(row_of(picture, "    ") == spaces(10) + "a" + spaces(29));
  CHECK(picture.find("   O overwritten\n") != std::string::npos);
  CHECK(picture.find("\na overwritten:") != std::string::npos);
}

TEST_CASE("LOCK TIMELINE shows who took a stale lock over, and who was too late", "[locks]") {
  Scene scene(
      "anna SETNX lock.foo 1701000001; wait 2000; bob SETNX lock.foo 1701000071; carl SETNX "
      "lock.foo 1701000072; bob GETSET lock.foo 1701000071; wait 1000; carl GETSET lock.foo "
      "1701000072; wait 1000; bob EXPIRE lock.foo 60");
  const std::string picture = picture_of(scene, "lock.foo");
  INFO(picture);
  CHECK(row_of(picture, "anna") == held(20) + "T" + spaces(19));
  CHECK(row_of(picture, "bob ") == spaces(20) + held(19) + ">");
  CHECK(row_of(picture, "carl").substr(30, 1) == "x");
  CHECK(picture.find("   T taken over") != std::string::npos);
}

TEST_CASE("LOCK TIMELINE shows what became of a lock that nobody released", "[locks]") {
  const std::string taken = "anna SET lock a NX PX 9000; wait 1000; ";
  const struct {
    std::string steps;
    std::string row;
    std::string legend;
  } rows[] = {
      {taken + "bob FLUSHALL; wait 3000", held(10) + "F" + spaces(29), "F flushed"},
      {taken + "bob CONFIG SET maxmemory-policy allkeys-random maxmemory 1; wait 3000",
       held(10) + "V" + spaces(29), "V evicted"},
      {taken + "bob DEL lock; wait 3000", held(10) + "D" + spaces(29), "D deleted by another"},
      {taken + "anna leaves; wait 3000", held(10) + "/" + held(29), "/ disconnected"},
      {"anna SET lock a NX PX 1000; wait 1000; wait 3000", held(10) + "E" + spaces(29),
       "E expired"},
      {"anna SET lock a NX PX 1000; wait 1000; wait 1000; anna DEL lock; wait 2000",
       held(10) + "E" + spaces(9) + "L" + spaces(19), "L released too late"},
      {"anna SET lock a NX PX 1000; wait 1000; wait 1000; anna @compare-delete lock a; wait 2000",
       held(10) + "E" + spaces(9) + "?" + spaces(19), "? came back"},
      {"anna SETNX lock a; wait 1000; anna EXPIRE lock 60; wait 1000; anna PERSIST lock; "
       "wait 2000",
       held(10) + ">" + held(9) + ">" + held(19), "> deadline moved"},
      {taken + "anna @compare-delete lock a; wait 3000", held(10) + "R" + spaces(29), "R released"},
  };
  for (const auto& row : rows) {
    INFO(row.steps);
    Scene scene(row.steps);
    const std::string picture = picture_of(scene, "lock");
    INFO(picture);
    CHECK(row_of(picture, "anna") == row.row);
    CHECK(picture.find(row.legend) != std::string::npos);
  }
}

TEST_CASE("LOCK TIMELINE shows who waits, and each refusal", "[locks]") {
  Scene scene(
      "anna SET lock a NX PX 9000; wait 1000; bob SET lock b NX PX 9000; wait 1000; anna DEL lock; "
      "bob SET lock b NX PX 9000; wait 2000");
  const std::string picture = picture_of(scene, "lock");
  INFO(picture);
  CHECK(row_of(picture, "anna") == held(20) + "R" + spaces(19));
  CHECK(row_of(picture, "bob ") == spaces(10) + "x" + std::string(9, '.') + held(20));
  CHECK(picture.find("\n = held   . waiting   x refused   R released\n") != std::string::npos);
}

TEST_CASE("LOCK TIMELINE shows how often a lock that counts was taken and left", "[locks]") {
  const std::string id = "01234567-89ab-cdef-0123-456789abcdef:1";
  const std::string enter = "anna @enter jobs " + id + " 30000; wait 1000; ";
  const std::string leave = "anna @leave jobs " + id + " 30000; wait 1000; ";
  Scene scene(enter + enter + leave + "anna @leave jobs " + id + " 30000; wait 1000");
  // Each step moves the deadline, too, which is drawn over it.
  CHECK(row_of(picture_of(scene, "jobs"), "anna") ==
        ">" + held(9) + ">" + held(9) + ">" + held(9) + "R" + spaces(9));
  CHECK(scene.run("carl", "LOCK TIMELINE jobs WIDTH 200")
            .find("\n = held   > deadline moved   R released   + taken again   - left once\n") !=
        std::string::npos);
}

TEST_CASE("LOCK TIMELINE and DOCTOR tell of the tokens of a semaphore", "[locks]") {
  Scene scene(
      "admin RPUSH semaphore:jobs t1 t2 t3; wait 1000; anna LPOP semaphore:jobs; wait 1000; "
      "anna RPUSH semaphore:jobs t1; wait 1000; anna LPOP semaphore:jobs; wait 1000");
  const std::string picture = picture_of(scene, "semaphore:jobs", 5);
  INFO(picture);
  CHECK(row_of(picture, "admin") == "*" + spaces(39));
  CHECK(row_of(picture, "anna ") ==
        spaces(10) + "^" + spaces(9) + "v" + spaces(9) + "^" + spaces(9));
  CHECK(picture.find("\n * tokens made   ^ token taken   v token put\n  back\n") !=
        std::string::npos);
  CHECK(scene.run("carl", "LOCK DOCTOR semaphore:jobs") ==
        bulk("\"semaphore:jobs\" is a semaphore; 2 of its 3 tokens are there.\n"
             "Nothing is wrong that I could see.\n"));
}

TEST_CASE("LOCK TIMELINE as SVG writes names as text", "[locks]") {
  Scene scene;
  scene.client("an<na").run_words({"SET", "lock<\"&>", "a", "NX", "PX", "1000"});
  scene.play("wait 500");
  scene.client("an<na").run_words({"PEXPIRE", "lock<\"&>", "2000"});
  const std::string svg =
      scene.client("carl").run_words({"LOCK", "TIMELINE", "lock<\"&>", "FORMAT", "svg"});
  CHECK(svg.find(">lock&lt;&quot;&amp;&gt;</text>") != std::string::npos);
  CHECK(svg.find(">an&lt;na</text>") != std::string::npos);
  CHECK(svg.find("lock<") == std::string::npos);
}

TEST_CASE("LOCK DOCTOR begins with who holds the lock", "[locks]") {
  Scene scene("anna SET lock a NX PX 30000; wait 1500; bob SETNX mutex 1; wait 500");
  CHECK(scene.run("carl", "LOCK DOCTOR lock") ==
        bulk("\"lock\" is held by anna since 2023-11-26 12:00:00.000 (2 s), until 2023-11-26 "
             "12:00:30.000.\nNothing is wrong that I could see.\n"));
  CHECK(scene.run("carl", "LOCK DOCTOR mutex") ==
        bulk("\"mutex\" is held by bob since 2023-11-26 12:00:01.500 (500 ms), without a "
             "deadline.\nNothing is wrong that I could see.\n"));
  scene.play("anna DEL lock");
  CHECK(scene.run("carl", "LOCK DOCTOR lock") ==
        bulk("\"lock\" is held by nobody.\nNothing is wrong that I could see.\n"));
  CHECK(scene.run("carl", "LOCK DOCTOR lock mutex") ==
        error("ERR wrong number of arguments for 'lock|doctor' command"));
  scene.play("carl CONFIG SET lock-watch no");
  CHECK(scene.run("carl", "LOCK DOCTOR") ==
        bulk("Locks are not watched: CONFIG SET lock-watch yes watches them.\n"));
}

TEST_CASE("LOCK DOCTOR names the database, and since when a finding is made", "[locks]") {
  Scene scene(
      "anna SELECT 1; bob SELECT 1; anna SET lock a NX PX 1000; bob DEL lock; wait 1000; "
      "anna SET lock a NX PX 1000; bob DEL lock");
  const std::string report = scene.run("anna", "LOCK DOCTOR");
  INFO(report);
  CHECK(report.find("\n1. foreign-release (high): \"lock\" in database 1, 2023-11-26 12:00:01.000, "
                    "the latest of 2 since 2023-11-26 12:00:00.000\n") != std::string::npos);
  CHECK(report.find("There is 1 finding.\n") != std::string::npos);
  // The lock is not known in the first database.
  CHECK(scene.run("carl", "LOCK DOCTOR lock") == error("ERR no lock is known at that key"));
}

TEST_CASE("LOCK LIST shows the locks that a pattern covers", "[locks]") {
  Scene scene("anna SET lock:1 a NX PX 1000; anna SET lock:2 a NX PX 1000; anna SET mutex 1 NX");
  CHECK(scene.run("bob", "LOCK LIST PATTERN lock:*").starts_with("*2\r\n"));
  CHECK(scene.run("bob", "LOCK LIST PATTERN m*").starts_with("*1\r\n"));
  CHECK(scene.run("bob", "LOCK LIST").starts_with("*3\r\n"));
  CHECK(scene.run("bob", "LOCK LIST PATTERN") == error("ERR syntax error"));
  CHECK(scene.run("bob", "LOCK LIST lock:*") == error("ERR syntax error"));
  CHECK(scene.run("bob", "LOCK LOG 2").starts_with("*2\r\n"));
  CHECK(scene.run("bob", "LOCK LOG 0") == "*0\r\n");
  CHECK(scene.run("bob", "LOCK LOG lock:2").starts_with("*1\r\n"));
  CHECK(scene.run("bob", "LOCK LOG 5 lock:2").starts_with("*1\r\n"));
  CHECK(scene.run("bob", "LOCK LOG 5 lock:2 more") ==
        error("ERR wrong number of arguments for 'lock|log' command"));
  CHECK(scene.run("bob", "LOCK LOG -1") ==
        error("ERR value is out of range, value must between 0 and 9223372036854775807"));
}

TEST_CASE("Of those who were refused a lock the last 64 are remembered", "[locks]") {
  Scene scene("anna SET lock a NX PX 900000");
  for (int i = 0; i < 70; ++i)
    scene.play("c" + std::to_string(i) + " SET lock x NX PX 1000; wait 1");
  CHECK(scene.run("anna", "LOCK INFO lock").find("$15\r\nrefused-clients\r\n:64\r\n") !=
        std::string::npos);
}

TEST_CASE("A lock that a clock that was set back saw released is drawn between the two times",
          "[locks]") {
  Scene scene(
      "anna SET lock a NX; anna DEL lock; wait 10000; anna SET lock a NX; wait -5000; "
      "anna DEL lock; wait 10000");
  const std::string picture = scene.run("carl", "LOCK TIMELINE lock");
  INFO(picture);
  CHECK(picture.find("anna |R" + std::string(23, ' ') + "R" + std::string(24, '=') +
                     std::string(24, ' ') + "|\n") != std::string::npos);
  const std::string svg = scene.run("carl", "LOCK TIMELINE lock FORMAT svg");
  INFO(svg);
  CHECK(svg.find("<title>held 12:00:05.000 to 12:00:10.000</title>") != std::string::npos);
}

TEST_CASE("A timeline begins with the earliest of its events, also where the clock was set back",
          "[locks]") {
  Scene scene(
      "wait 60000; anna SET lock a NX PX 100000; bob SET lock b NX; wait -60000; "
      "bob SET lock b NX; anna DEL lock");
  const std::string picture = scene.run("carl", "LOCK TIMELINE lock");
  INFO(picture);
  CHECK(picture.find("anna |R" + std::string(72, '=') + "|\n") != std::string::npos);
  CHECK(scene.run("carl", "LOCK TIMELINE lock FORMAT svg").find("</svg>") != std::string::npos);
}

TEST_CASE("A lock has been held for no time where the clock was set back", "[locks]") {
  Scene scene("anna SET lock a NX; wait -5000");
  CHECK(scene.run("bob", "LOCK INFO lock").find("$7\r\nheld-ms\r\n:0\r\n") != std::string::npos);
  CHECK(scene.run("bob", "LOCK DOCTOR lock").find("(0 ms), without a deadline.") !=
        std::string::npos);
}

TEST_CASE("Locks that a rollback puts back are held as they were", "[locks]") {
  Scene scene("anna SET lock a NX PX 50000; bob SET lock b NX; carl CHECKPOINT CREATE");
  SECTION("that was released") {
    scene.play("anna DEL lock");
  }
  SECTION("that another has taken since") {
    scene.play("anna DEL lock; bob SET lock b NX");
  }
  SECTION("that has expired") {
    scene.play("anna PEXPIRE lock 10; wait 10; anna GET lock");
  }
  SECTION("whose database was flushed") {
    scene.play("bob FLUSHALL");
  }
  SECTION("that was prolonged") {
    scene.play("anna PEXPIRE lock 90000");
  }
  SECTION("that nobody has touched") {}
  scene.play("carl CHECKPOINT ROLLBACK");
  const locks::Record* record = scene.model().find(0, "lock");
  REQUIRE(record != nullptr);
  REQUIRE(record->hold.has_value());
  CHECK(record->hold->holder->shown() == "anna");
  CHECK(record->hold->token.text() == "a");
  CHECK(record->hold->deadline_ms == 1'701'000'050'000);
  CHECK(scene.findings().empty());
  scene.play("bob DEL lock");
  CHECK(scene.findings() == "foreign-release");
}

TEST_CASE("A lock that a rollback puts back may be without its holder", "[locks]") {
  Scene scene(
      "anna SET lock a NX; carl CHECKPOINT CREATE; anna DEL lock; anna leaves; "
      "carl CHECKPOINT ROLLBACK");
  const locks::Record* record = scene.model().find(0, "lock");
  REQUIRE(record != nullptr);
  REQUIRE(record->hold.has_value());
  CHECK(record->hold->holder_gone);
  CHECK(scene.run("bob", "DEL lock") == ":1\r\n");
  CHECK(scene.run("bob", "SET lock b NX") == "+OK\r\n");
  CHECK(scene.run("bob", "DEL lock") == ":1\r\n");
}

TEST_CASE("A semaphore that expires is one no more, however it expires", "[locks]") {
  Scene scene("anna RPUSH leaderboard:recent a b");
  REQUIRE(scene.model().has_semaphores());
  scene.events();
  SECTION("by itself") {
    scene.play("anna PEXPIRE leaderboard:recent 30; wait 1000");
  }
  SECTION("when somebody looks for it") {
    scene.play("anna PEXPIRE leaderboard:recent 30");
    scene.advance_ms(31);
    CHECK(scene.run("bob", "LLEN leaderboard:recent") == ":0\r\n");
  }
  SECTION("by a fault") {
    scene.play("bob FAULT ADD COMMAND llen DO EXPIRE");
    CHECK(scene.run("bob", "LLEN leaderboard:recent") == ":0\r\n");
  }
  SECTION("beside one that a transaction made") {
    scene.play(
        "anna MULTI; anna RPUSH semaphore a; anna RPUSH semaphore b; anna PEXPIRE semaphore 30; "
        "anna EXEC; wait 1000; anna PEXPIRE leaderboard:recent 30; wait 1000");
    CHECK(scene.database().size() == 0);
  }
  CHECK(scene.events().ends_with("expired leaderboard:recent"));
  CHECK_FALSE(scene.model().has_semaphores());
  CHECK(scene.findings().empty());
  scene.play("anna RPUSH leaderboard:recent a b c");
  CHECK(scene.run("anna", "LOCK INFO leaderboard:recent").find("$6\r\ntokens\r\n:3\r\n") !=
        std::string::npos);
}

TEST_CASE("A log of one event holds the latest", "[locks]") {
  Scene scene({}, "lock-log-max-len 1\n");
  scene.play("anna SET lock a NX PX 10000; anna PEXPIRE lock 50000; bob SET lock b NX");
  CHECK(scene.log() == "refused bob");
  scene.play("anna DEL lock");
  CHECK(scene.log() == "released-blind anna");
}
