#include <string>

#include "commands/groups.h"
#include "server/client/client_info.h"
#include "unit/catch.h"
#include "unit/propagation_recorder.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ImportServer : ServerFixture {
  explicit ImportServer(std::string_view settings = {})
      : ServerFixture(
            {commands::hash_rows(), commands::hash_counter_rows(), commands::hash_deadline_rows(),
             commands::hash_import_rows(), commands::hash_random_rows(), commands::key_rows(),
             commands::string_rows(), commands::connection_rows(), commands::transaction_rows()},
            settings) {}
  std::string encoding(std::string_view key) {
    return std::string(database().find(key)->encoding_name());
  }
};

const char* const kShared = "template-listpack";

}  // namespace

TEST_CASE("HIMPORT SET makes hashes of names that were sent once", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  CHECK(client.run("HIMPORT PREPARE user name email age") == status("OK"));
  CHECK(client.run("HIMPORT SET u:1 user anna a@x 30") == status("OK"));
  CHECK(client.run("HIMPORT SET u:2 user bert b@x 7") == status("OK"));
  CHECK(server.encoding("u:1") == kShared);
  CHECK(client.run("HMGET u:1 email age none") ==
        array({bulk("a@x"), bulk("30"), std::string(kNull)}));
  // In the order of the list that both share: by length, then by bytes.
  CHECK(client.run("HGETALL u:2") == bulks({"age", "7", "name", "bert", "email", "b@x"}));
  CHECK(client.run("HLEN u:2") == integer(3));
  CHECK(server.events() == "hset u:1, hset u:2");
}

TEST_CASE("HIMPORT HELP tells of all its subcommands", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  const std::string help = client.run("HIMPORT HELP");
  CHECK(help.starts_with("*11\r\n+HIMPORT <subcommand>"));
  CHECK(help.find("+SET <key> <fieldset-name> <value> [<value> ...]\r\n") != std::string::npos);
}

TEST_CASE("A fieldset belongs to its client and ends with RESET", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  TestClient other(server);
  const std::string none = error("ERR no such fieldset");
  client.run("HIMPORT PREPARE f a b");
  CHECK(other.run("HIMPORT SET h f 1 2") == none);
  CHECK(client.run("HIMPORT SET h f 1 2") == status("OK"));
  client.run("RESET");
  CHECK(client.run("HIMPORT SET h f 1 2") == none);
  CHECK(client.run("HIMPORT DISCARDALL") == integer(0));
  CHECK(client.run("HGETALL h") == bulks({"a", "1", "b", "2"}));
}

TEST_CASE("Fieldsets are replaced and discarded by name", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  client.run("HIMPORT PREPARE f a b");
  client.run("HIMPORT PREPARE f x y z");
  CHECK(client.run("HIMPORT SET h f 1 2") == error("ERR value count does not match the fieldset"));
  CHECK(client.run("HIMPORT SET h f 1 2 3") == status("OK"));
  client.run("HIMPORT PREPARE g a");
  CHECK(client.run("HIMPORT DISCARD f") == integer(1));
  CHECK(client.run("HIMPORT DISCARD f") == integer(0));
  CHECK(client.run("HIMPORT SET h f 1 2 3") == error("ERR no such fieldset"));
  CHECK(client.run("HIMPORT DISCARDALL") == integer(1));
  CHECK(client.run("HIMPORT SET h g 1") == error("ERR no such fieldset"));
  // Names and fields may be empty.
  CHECK(client.run_words({"HIMPORT", "PREPARE", "", "", "b"}) == status("OK"));
  CHECK(client.run_words({"HIMPORT", "SET", "e", "", "1", "2"}) == status("OK"));
  CHECK(client.run_words({"HGET", "e", ""}) == bulk("1"));
}

TEST_CASE("A fieldset has no field twice", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  const std::string twice = error("ERR duplicate field name in fieldset");
  client.run("HIMPORT PREPARE f a b");
  CHECK(client.run("HIMPORT PREPARE f x y x") == twice);
  CHECK(client.run("HIMPORT PREPARE g same same") == twice);
  // What there was under the name stays.
  CHECK(client.run("HIMPORT SET h f 1 2") == status("OK"));
  CHECK(client.run("HIMPORT SET h g 1 2") == error("ERR no such fieldset"));
}

TEST_CASE("HIMPORT SET takes the place of a hash, and of nothing else", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  PropagationRecorder stream(server);
  client.run("HIMPORT PREPARE f b a");
  client.run("SET s text");
  CHECK(client.run("HIMPORT SET s f 1 2") ==
        error("WRONGTYPE Operation against a key holding the wrong kind of value"));
  CHECK(client.run("GET s") == bulk("text"));
  client.run("HSET h old 1");
  client.run("PEXPIRE h 1000");
  stream.take();
  CHECK(client.run("HIMPORT SET h f 1 2") == status("OK"));
  CHECK(client.run("HGETALL h") == bulks({"a", "2", "b", "1"}));
  CHECK(server.database().find("h")->has_deadline() == false);
  // Nobody else knows the fieldset.
  CHECK(stream.take() == "MULTI; DEL h; HSET h a 2 b 1; EXEC");
  CHECK(client.run("HIMPORT SET new f 1 2") == status("OK"));
  CHECK(stream.take() == "HSET new a 2 b 1");
}

TEST_CASE("HIMPORT refuses what is no request", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  for (const char* request : {"HIMPORT PREPARE", "HIMPORT PREPARE f", "HIMPORT SET k f",
                              "HIMPORT DISCARD", "HIMPORT DISCARD a b", "HIMPORT DISCARDALL x"}) {
    INFO(request);
    CHECK(client.run(request).find("ERR wrong number of arguments for 'himport|") == 1);
  }
  CHECK(client.run("HIMPORT") == error("ERR wrong number of arguments for 'himport' command"));
  CHECK(client.run("HIMPORT WHAT x").find("ERR unknown subcommand 'WHAT'") == 1);
}

TEST_CASE("A hash with shared names takes other fields and loses some", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  client.run("HIMPORT PREPARE f a b c");
  client.run("HIMPORT SET h f 1 2 3");
  client.run("HIMPORT SET other f 4 5 6");
  CHECK(client.run("HSET h b x") == integer(0));
  CHECK(client.run("HSET h bb new aa first zzz last") == integer(3));
  CHECK(server.encoding("h") == kShared);
  CHECK(client.run("HGETALL h") ==
        bulks({"a", "1", "b", "x", "c", "3", "aa", "first", "bb", "new", "zzz", "last"}));
  CHECK(client.run("HDEL h a aa zzz none") == integer(3));
  CHECK(client.run("HGETALL h") == bulks({"b", "x", "c", "3", "bb", "new"}));
  CHECK(server.encoding("h") == kShared);
  CHECK(client.run("HINCRBY h c 39") == integer(42));
  CHECK(client.run("HDEL h b c bb") == integer(3));
  CHECK(client.run("EXISTS h") == integer(0));
  CHECK(client.run("HGETALL other") == bulks({"a", "4", "b", "5", "c", "6"}));
}

TEST_CASE("Shared names end with a deadline and beyond the limits", "[hash_import]") {
  ImportServer server("hash-max-listpack-entries 4\nhash-max-listpack-value 8\n");
  TestClient client(server);
  client.run("HIMPORT PREPARE f a b c d");
  client.run("HIMPORT SET h f 1 2 3 4");
  client.run("COPY h deadline");
  CHECK(server.encoding("deadline") == kShared);
  CHECK(client.run("HPEXPIRE deadline 1000 FIELDS 1 b") == "*1\r\n:1\r\n");
  CHECK(server.encoding("deadline") == "listpackex");
  CHECK(client.run("HGET deadline d") == bulk("4"));
  client.run("COPY h long");
  client.run("HSET long a 123456789");
  CHECK(server.encoding("long") == "hashtable");
  CHECK(client.run("HMGET long a d") == bulks({"123456789", "4"}));
  client.run("COPY h wide");
  client.run("HSET wide e 5");
  CHECK(server.encoding("wide") == "hashtable");
  CHECK(client.run("HLEN wide") == integer(5));
  client.run("HIMPORT PREPARE g a b c d e");
  client.run("HIMPORT SET many g 1 2 3 4 5");
  CHECK(server.encoding("many") == "hashtable");
  CHECK(client.run("HGET many e") == bulk("5"));
  client.run("HIMPORT SET long f 1 2 3 123456789");
  CHECK(server.encoding("long") == "hashtable");
  CHECK(client.run("HGETALL h") == bulks({"a", "1", "b", "2", "c", "3", "d", "4"}));
}

TEST_CASE("Hashes that are written share their names where the settings say so", "[hash_import]") {
  ImportServer server("hash-min-template-entries 2\nhash-max-template-entries 3\n");
  TestClient client(server);
  client.run("HSET one a 1");
  CHECK(server.encoding("one") == "listpack");
  client.run("HSET one b 2");
  CHECK(server.encoding("one") == kShared);
  client.run("HSET four a 1 b 2 c 3 d 4");
  CHECK(server.encoding("four") == "listpack");
  client.run("HSET one c 3 d 4");
  // What shares them goes on doing so.
  CHECK(server.encoding("one") == kShared);
  CHECK(client.run("HGETALL one") == client.run("HGETALL four"));
  client.run("HSETEX expiring EX 100 FIELDS 2 a 1 b 2");
  CHECK(server.encoding("expiring") == "listpackex");
  for (const char* request : {"HSETNX k b 1", "HINCRBY k b 1", "HINCRBYFLOAT k b 0.5",
                              "HSETEX k FIELDS 1 b 1", "HMSET k b 1"}) {
    INFO(request);
    client.run("DEL k");
    client.run("HSET k a 1");
    client.run(request);
    CHECK(server.encoding("k") == kShared);
    CHECK(client.run("HGET k a") == bulk("1"));
  }
}

TEST_CASE("A client is charged for its fieldsets", "[hash_import]") {
  ImportServer server;
  TestClient client(server);
  const size_t before = server::memory_usage(*client);
  for (int i = 0; i < 100; ++i)
    client.run("HIMPORT PREPARE f" + std::to_string(i) + " some_field another_field_of_it");
  CHECK(server::memory_usage(*client) > before + 100 * 30);
  for (int i = 0; i < 50; ++i) client.run("HIMPORT DISCARD f" + std::to_string(i));
  CHECK(client.run("HIMPORT DISCARDALL") == integer(50));
  CHECK(server::memory_usage(*client) == before);
}

}  // namespace latchkey::tests
