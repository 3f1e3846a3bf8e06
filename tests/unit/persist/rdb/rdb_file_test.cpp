#include "persist/rdb/rdb_file.h"

#include <cerrno>
#include <string>
#include <vector>

#include "commands/groups.h"
#include "server/observe/dataset_digest.h"
#include "unit/catch.h"
#include "unit/persist/rdb/rdb_bytes.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using persist::ReadOptions;
using persist::ReadReport;
using std::string_literals::operator""s;

struct FileServer : ServerFixture {
  explicit FileServer(std::string_view settings = {})
      : ServerFixture(
            {commands::connection_rows(), commands::database_rows(), commands::expire_rows(),
             commands::hash_deadline_rows(), commands::hash_rows(), commands::key_rows(),
             commands::list_rows(), commands::object_rows(), commands::set_rows(),
             commands::sorted_set_rows(), commands::stream_group_rows(),
             commands::stream_read_rows(), commands::stream_rows(), commands::string_rows()},
            settings) {}

  std::string save() { return save(persist::write_options(server)); }
  std::string save(const persist::WriteOptions& options) {
    std::string file;
    persist::StringSink sink(file);
    REQUIRE(persist::write_dataset(sink, server, options));
    return file;
  }
  ReadReport load(const std::string& file, const ReadOptions& options = {}) {
    persist::MemorySource source(file);
    return persist::read_dataset(source, server, options);
  }
};

// Some of everything, in small and in large encodings.
void fill(TestClient& client) {
  client.run("SET text hello");
  client.run("SET number -12345");
  client.run("SET long " + std::string(2'000, 'a'));
  client.run("SET volatile soon PX 100000");
  client.run("HSET volatile-fields f v g w");
  client.run("HPEXPIRE volatile-fields 50000 FIELDS 1 f");
  client.run("XADD stream 1-1 a b");
  client.run("XADD stream 1-2 a c d e");
  client.run("XGROUP CREATE stream group 0");
  client.run("XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >");
  client.run("SELECT 3");
  for (int i = 0; i < 700; ++i) {
    const std::string n = std::to_string(i);
    client.run("RPUSH list element" + n + " " + std::string(40, 'e'));
    client.run("HSET hash field" + n + " " + n);
    client.run("SADD set member" + n);
    client.run("SADD integers " + std::to_string(i * i));
    client.run("ZADD sorted " + n + ".5 member" + n);
    if (i > 10) continue;
    client.run("HSET small field" + n + " " + n);
    client.run("ZADD small-sorted " + n + " member" + n);
    client.run("SADD small-set member" + n);
  }
  client.run("HPEXPIRE hash 50000 FIELDS 2 field1 field2");
}

std::string selected(std::string_view rest) {
  return byte(0xfe) + byte(0) + std::string(rest);
}
std::string string_key(std::string_view key, std::string_view value) {
  return byte(0) + rdb_string(key) + rdb_string(value);
}

}  // namespace

TEST_CASE("A dataset is the same when it has been written and read", "[rdb]") {
  for (const std::string_view settings :
       {"", "rdbcompression no", "rdbchecksum no", "list-compress-depth 1"}) {
    FileServer server(settings);
    TestClient client(server);
    fill(client);
    FileServer other(settings);
    const ReadReport report = other.load(server.save());
    CHECK(report.ok);
    CHECK(report.keys_loaded == server.database(0).size() + server.database(3).size());
    CHECK(server::dataset_digest(server.server) == server::dataset_digest(other.server));
    TestClient reader(other);
    CHECK(reader.run("PTTL volatile") == integer(100000));
    CHECK(reader.run("HPTTL volatile-fields FIELDS 2 f g") == array({integer(50000), integer(-1)}));
    for (const int index : {0, 3}) {
      server.database(index).for_each([&](const store::Entry& entry) {
        const store::KeyRef ref = other.database(index).find(entry.key());
        CHECK(ref->encoding_name() == entry.encoding_name());
      });
    }
    // Deadlines that have been read are kept.
    other.advance_ms(100'001);
    other.tick();
    CHECK(reader.run("EXISTS volatile") == integer(0));
    reader.run("SELECT 3");
    CHECK(reader.run("HLEN hash") == integer(698));
  }
}

TEST_CASE("A file begins and ends as the reference's", "[rdb]") {
  FileServer server;
  TestClient client(server);
  client.run("SET a b");
  const std::string file = server.save();
  CHECK(file.starts_with("REDIS0012" + byte(0xfa) + rdb_string("redis-ver") + rdb_string("8.6.3") +
                         byte(0xfa) + rdb_string("redis-bits") + from_hex("c040") + byte(0xfa) +
                         rdb_string("ctime")));
  const std::string end = byte(0xfa) + rdb_string("aof-base") + from_hex("c000") +
                          from_hex("fe00fb0100") + string_key("a", "b") + byte(0xff);
  CHECK(file.substr(0, file.size() - 8).ends_with(end));
  CHECK(file.substr(file.size() - 8) ==
        number(base::crc64(0, std::string_view(file).substr(0, file.size() - 8)), 8));
  persist::WriteOptions options;
  options.checksum = false;
  options.is_aof_preamble = true;
  options.aux = {{"repl-offset", "17"}};
  const std::string other = server.save(options);
  CHECK(other.ends_with(byte(0xff) + std::string(8, '\0')));
  FileServer reader;
  const ReadReport report = reader.load(other);
  REQUIRE(report.find_aux("repl-offset") != nullptr);
  CHECK(*report.find_aux("repl-offset") == "17");
  CHECK(*report.find_aux("aof-base") == "1");
  CHECK(report.find_aux("repl-id") == nullptr);
}

TEST_CASE("Accesses are kept where the policy goes by them", "[rdb]") {
  FileServer recent("maxmemory-policy allkeys-lru");
  TestClient client(recent);
  client.run("SET a b");
  recent.advance_ms(5'000);
  FileServer other("maxmemory-policy allkeys-lru");
  other.advance_ms(60'000);
  CHECK(other.load(recent.save()).ok);
  CHECK(TestClient(other).run("OBJECT IDLETIME a") == integer(5));

  FileServer counting("maxmemory-policy allkeys-lfu");
  CHECK(counting.load(rdb_file(selected(byte(0xf9) + byte(77) + string_key("a", "b")))).ok);
  CHECK(TestClient(counting).run("OBJECT FREQ a") == integer(77));
  CHECK(counting.save().find(byte(0xf9) + byte(77) + string_key("a", "b")) != std::string::npos);
}

TEST_CASE("Files of every version are read, those of later ones refused", "[rdb]") {
  for (int version = 1; version <= 13; ++version) {
    FileServer server;
    CHECK(server.load(rdb_file(selected(string_key("a", "b")), version)).ok);
    CHECK(server.database().size() == 1);
  }
  FileServer server;
  const ReadReport newer = server.load(rdb_file(selected(string_key("a", "b")), 14));
  CHECK(newer.errors == std::vector<std::string>{"Can't handle RDB format version 14"});
  CHECK_FALSE(newer.is_damaged);
  CHECK(server.load("REDIX0012").errors ==
        std::vector<std::string>{"Wrong signature trying to load DB from file"});
}

TEST_CASE("Keys past their deadline are dropped when a master loads", "[rdb]") {
  FileServer server;
  const auto now = static_cast<uint64_t>(server.now_ms());
  const std::string gone = byte(0xfc) + number(now - 1, 8) + string_key("gone", "x");
  const std::string old = byte(0xfd) + number(1, 4) + string_key("old", "x");
  const std::string oldest = byte(0xfc) + number(0, 8) + string_key("oldest", "x");
  const std::string there = byte(0xfc) + number(now + 1000, 8) + string_key("there", "x");
  const std::string file =
      rdb_file(selected(gone + old + oldest + there + string_key("free", "x")));
  const ReadReport report = server.load(file);
  CHECK(report.ok);
  CHECK(report.keys_expired == 3);
  CHECK(report.keys_loaded == 2);
  TestClient client(server);
  CHECK(client.run("PTTL there") == integer(1000));
  CHECK(client.run("PTTL free") == integer(-1));

  FileServer replica;
  replica.server.environment().expired = store::Environment::Expired::kShow;
  ReadOptions options;
  options.drop_expired = false;
  CHECK(replica.load(file, options).keys_loaded == 5);
}

TEST_CASE("A key that is there is refused unless it may be replaced", "[rdb]") {
  const std::string file = rdb_file(selected(string_key("a", "1") + string_key("a", "2")));
  FileServer server;
  const ReadReport report = server.load(file);
  CHECK_FALSE(report.ok);
  CHECK(report.is_damaged);
  CHECK(report.errors.back() == "RDB has duplicated key 'a' in DB 0");
  ReadOptions options;
  options.replace_existing = true;
  CHECK(server.load(file, options).ok);
  CHECK(TestClient(server).run("GET a") == bulk("2"));
}

TEST_CASE("Damage is told with offset and reason", "[rdb]") {
  FileServer server;
  const std::string file = rdb_file(selected(string_key("a", "b")));
  ReadReport report = server.load(file.substr(0, 12));
  CHECK(report.is_damaged);
  CHECK(report.errors.front() ==
        "Short read or OOM loading DB. Unrecoverable error, aborting now.");
  CHECK(report.errors.back() ==
        "Internal error in RDB reading offset 12 -> Unexpected EOF reading RDB file");

  FileServer other;
  std::string damaged = file;
  damaged[damaged.size() - 1] = static_cast<char>(damaged.back() ^ 1);
  report = other.load(damaged);
  CHECK(report.errors.front().starts_with("Wrong RDB checksum expected: ("));
  CHECK(report.errors.back() == "Internal error in RDB reading offset 25 -> RDB CRC error");

  FileServer careless;
  ReadOptions options;
  options.verify_checksum = false;
  CHECK(careless.load(damaged, options).ok);

  const auto reason = [&](const std::string& body) {
    FileServer fresh;
    return fresh.load(rdb_file(selected(body))).errors.back();
  };
  CHECK(reason(byte(48)) ==
        "Internal error in RDB reading offset 12 -> Unknown RDB encoding type 48");
  CHECK(reason(byte(16) + rdb_string("h") + rdb_string("abc")) ==
        "Internal error in RDB reading offset 18 -> Hash listpack integrity check failed.");
}

TEST_CASE("A file that cannot be used here is refused", "[rdb]") {
  const auto refusal = [](const std::string& body) {
    FileServer server;
    const ReadReport report = server.load(rdb_file(body));
    CHECK_FALSE(report.is_damaged);
    return report.errors.back();
  };
  CHECK(refusal(byte(0xfe) + byte(32) + string_key("a", "b")) ==
        "FATAL: Data file was created with a Redis server configured to handle more than 16 "
        "databases. Exiting");
  CHECK(refusal(byte(0xf5) + rdb_string("#!lua name=lib")) ==
        "There is no engine for the file's functions");
  CHECK(refusal(byte(0xf7) + from_hex("810102030405060708") + from_hex("020100")) ==
        "The RDB file contains AUX module data I can't load: no matching module 'AQIDBAUGB'");
}

TEST_CASE("Empty collections are left out and counted", "[rdb]") {
  FileServer server;
  const ReadReport report = server.load(
      rdb_file(selected(byte(4) + rdb_string("empty") + rdb_length(0) + string_key("a", "b"))));
  CHECK(report.ok);
  CHECK(report.empty_keys_skipped == 1);
  CHECK(report.keys_loaded == 1);
}

TEST_CASE("Writing and reading tell how far they are, and writing can be stopped", "[rdb]") {
  FileServer server;
  TestClient client(server);
  for (const char* key : {"a", "b", "c"}) client.run_words({"SET", key, "1"});
  std::vector<uint64_t> written;
  persist::WriteOptions options;
  options.after_key = [&](uint64_t keys) {
    written.push_back(keys);
    return true;
  };
  const std::string file = server.save(options);
  CHECK(written == std::vector<uint64_t>{1, 2, 3});
  FileServer other;
  std::vector<uint64_t> read;
  ReadOptions reading;
  reading.after_key = [&](uint64_t keys) { read.push_back(keys); };
  CHECK(other.load(file, reading).ok);
  CHECK(read == written);

  options.after_key = [](uint64_t keys) { return keys < 2; };
  std::string part;
  persist::StringSink sink(part);
  CHECK_FALSE(persist::write_dataset(sink, server.server, options));
  CHECK(sink.error() == ECANCELED);
}

TEST_CASE("A file tells which slots are coming to the node that wrote it", "[rdb]") {
  FileServer server;
  const std::string begin = "VALKEY080" + byte(0xf3);
  const std::string end = byte(0xff) + std::string(8, '\0');
  const std::string name(40, 'a');
  const ReadReport report =
      server.load(begin + rdb_string(name) + byte(2) + byte(0) + byte(7) + byte(9) + byte(9) + end);
  REQUIRE(report.ok);
  REQUIRE(report.slots.imports.size() == 1);
  CHECK(report.slots.imports[0].name == name);
  CHECK(report.slots.imports[0].ranges == std::vector<std::pair<int, int>>{{0, 7}, {9, 9}});
  const ReadReport damaged =
      server.load(begin + rdb_string("a") + byte(1) + byte(0) + byte(0) + end);
  CHECK_FALSE(damaged.ok);
  CHECK(damaged.errors.back().find("Invalid slot import job name length 1") != std::string::npos);
  CHECK_FALSE(server.load(begin + rdb_string(name) + byte(1) + byte(9) + byte(8) + end).ok);
}

TEST_CASE("What is unknown in a version that is only tried is not damage", "[rdb]") {
  FileServer server("rdb-version-check relaxed\n");
  const auto refusal = [&](int version) {
    const ReadReport report = server.load(rdb_file(selected(byte(150)), version));
    CHECK_FALSE(report.is_damaged);
    return report.errors.back();
  };
  CHECK(refusal(75) == "Can't handle foreign type or opcode 150 in RDB with version 75");
  CHECK(refusal(987) ==
        "Unknown type or opcode when loading DB. Unrecoverable error, aborting now.");
  CHECK(server.load(rdb_file(selected(byte(150)), 12)).is_damaged);
}

TEST_CASE("What is only told about a file or a slot is passed over", "[rdb]") {
  FileServer server;
  const std::string key = string_key("a", "b");
  CHECK(server.load(rdb_file(selected(byte(0xf4) + from_hex("010203") + key))).ok);
  CHECK(TestClient(server).run("GET a") == bulk("b"));
  FileServer other;
  CHECK(other.load(rdb_file(byte(0xfa) + rdb_string("%slots") + rdb_string("some") + selected(key)))
            .ok);
  CHECK(TestClient(other).run("GET a") == bulk("b"));
  // One length less, and the key's type is taken for the third.
  FileServer damaged;
  CHECK_FALSE(damaged.load(rdb_file(selected(byte(0xf4) + from_hex("0102") + key))).ok);
}

TEST_CASE("Functions of a release before 7.0, and opcodes that do not exist, are refused",
          "[rdb]") {
  FileServer server;
  ReadReport report = server.load(rdb_file(byte(0xf6) + rdb_string("lib")));
  CHECK_FALSE(report.ok);
  CHECK_FALSE(report.is_damaged);
  CHECK(report.errors == std::vector<std::string>{"Pre-release function format not supported."});
}

TEST_CASE("The functions of a file can be kept instead of loaded", "[rdb]") {
  FileServer server;
  std::vector<std::string> functions;
  ReadOptions options;
  options.functions = &functions;
  CHECK(server
            .load(rdb_file(byte(0xf5) + rdb_string("#!lua name=one") + byte(0xf5) +
                           rdb_string("#!lua name=two")),
                  options)
            .ok);
  CHECK(functions == std::vector<std::string>{"#!lua name=one", "#!lua name=two"});
}

TEST_CASE("Idle times are kept by the policies of recency, frequencies by those of use", "[rdb]") {
  const auto access = [](const std::string& policy) {
    FileServer server("maxmemory-policy " + policy);
    TestClient(server).run("SET a b");
    server.advance_ms(5'000);
    const std::string file = server.save();
    if (file.find(byte(0xf8) + byte(5) + string_key("a", "b")) != std::string::npos) return "idle";
    const size_t at = file.find(string_key("a", "b"));
    return file[at - 2] == static_cast<char>(0xf9) ? "frequency" : "none";
  };
  for (const char* policy : {"volatile-lru", "allkeys-lru"}) CHECK(access(policy) == "idle"s);
  for (const char* policy : {"volatile-lfu", "allkeys-lfu"}) CHECK(access(policy) == "frequency"s);
  for (const char* policy : {"noeviction", "volatile-ttl", "volatile-random", "allkeys-random"})
    CHECK(access(policy) == "none"s);
}

TEST_CASE("Fields of hashes that are loaded share their names when there are enough", "[rdb]") {
  const std::string hash = byte(4) + rdb_string("h") + rdb_length(2) + rdb_string("f") +
                           rdb_string("1") + rdb_string("g") + rdb_string("2");
  for (const char* most : {"1", "2"}) {
    CAPTURE(most);
    FileServer server(
        "hash-rdb-load-min-template-entries 1\n"
        "hash-rdb-load-max-template-entries " +
        std::string(most));
    REQUIRE(server.load(rdb_file(selected(hash))).ok);
    TestClient client(server);
    CHECK(server.database().find("h")->encoding_name() ==
          (most == "2"s ? "template-listpack" : "listpack"));
    CHECK(client.run("HSET h f 3 k 4") == integer(1));
    CHECK(client.run("HMGET h f g k") == bulks({"3", "2", "4"}));
  }
}

}  // namespace latchkey::tests
