#include <cstdint>
#include <string>
#include <string_view>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct ObjectServer : ServerFixture {
  explicit ObjectServer(std::string_view settings = {})
      : ServerFixture(
            {commands::debug_rows(), commands::string_rows(), commands::key_rows(),
             commands::list_rows(), commands::set_rows(), commands::hash_rows(),
             commands::hash_deadline_rows(), commands::sorted_set_rows(), commands::bitmap_rows(),
             commands::stream_rows(), commands::stream_group_rows(), commands::vector_set_rows(),
             commands::config_rows(), persist::dump_rows()},
            "enable-debug-command yes\n" + std::string(settings)) {
    server.add_debug_subcommands(persist::object_debug_subcommands());
  }
};

// `name`:<value> in what DEBUG OBJECT says of the key; empty when it says nothing of it.
std::string figure(TestClient& client, std::string_view key, std::string_view name) {
  const std::string told = client.run("DEBUG OBJECT " + std::string(key));
  const std::string start = " " + std::string(name) + ":";
  const size_t found = told.find(start);
  if (found == std::string::npos) return {};
  const size_t value = found + start.size();
  return told.substr(value, told.find_first_of(" \r", value) - value);
}

// "first0 second0 first1 second1 ...", `count` times; an empty `second` is left out.
std::string numbered(std::string_view first, std::string_view second, int count) {
  std::string words;
  for (int i = 0; i < count; ++i) {
    words.append(" ").append(first).append(std::to_string(i));
    if (!second.empty()) words.append(" ").append(second).append(std::to_string(i));
  }
  return words;
}

}  // namespace

TEST_CASE("DEBUG OBJECT tells how a key is stored") {
  ObjectServer server;
  TestClient client(server);
  client.run("SET name value");
  server.advance_ms(3000);
  const std::string told = client.run("DEBUG OBJECT name");
  CHECK(told.starts_with("+Value at:0x"));
  CHECK(told.find(" refcount:1 encoding:embstr serializedlength:6 lru:") != std::string::npos);
  CHECK(told.ends_with(" lru_seconds_idle:3\r\n"));
  CHECK(client.run("DEBUG OBJECT missing") == tests::error("ERR no such key"));
  client.run("DEBUG SET-ACTIVE-EXPIRE 0");
  client.run("SET name value PX 1");
  server.advance_ms(2);
  CHECK(client.run("DEBUG OBJECT name").starts_with("+Value at:0x"));
  CHECK(client.run("GET name") == tests::kNull);
}

TEST_CASE("DEBUG OBJECT tells the serialized length that the reference tells, of any encoding") {
  struct Case {
    std::string request;
    std::string encoding;
    std::string length;  // as Redis 8.6.3 tells it
  };
  // Not of streams and vector sets, which Redis 8.6 writes in a layout of its own, nor of hashes
  // with deadlines, of which it forgets to count eight bytes.
  ObjectServer server;
  TestClient client(server);
  const Case cases[] = {
      {"SET key 12", "int", "2"},
      {"SET key 1234", "int", "3"},
      {"SET key 123456", "int", "5"},
      {"SET key 12345678901", "int", "12"},
      {"SET key 0123", "embstr", "5"},
      {"SET key " + std::string(300, 'x'), "raw", "16"},
      {"SETBIT key 1000 1", "raw", "13"},
      {"RPUSH key a b c 1 2 3", "listpack", "25"},
      {"RPUSH key" + numbered("element", {}, 2000), "quicklist", "10109"},
      {"RPUSH key " + std::string(9000, 'y'), "quicklist", "118"},
      {"SADD key 1 2 3 70000", "intset", "25"},
      {"SADD key a b c", "listpack", "17"},
      {"SADD key" + numbered("m", {}, 500), "hashtable", "2392"},
      {"ZADD key 1 a 2 b 3.5 c", "listpack", "26"},
      {"ZADD key" + numbered("", "m", 500), "skiplist", "6392"},
      {"HSET key a 1 b 2", "listpack", "18"},
      {"HSET key" + numbered("f", "v", 700), "hashtable", "6782"},
  };
  for (const Case& each : cases) {
    INFO(each.request.substr(0, 40));
    client.run("DEL key");
    client.run(each.request);
    CHECK(figure(client, "key", "encoding") == each.encoding);
    CHECK(figure(client, "key", "serializedlength") == each.length);
  }
}

TEST_CASE("The serialized length is that of the value in a dump, compressed as is configured") {
  // A dump adds a byte for the type, and ten for version and checksum.
  constexpr uint64_t kAround = 11;
  ObjectServer server;
  TestClient client(server);
  const auto check = [&](std::string_view key) {
    INFO(key);
    // "$<length>\r\n..."
    const std::string dump = client.run("DUMP " + std::string(key));
    CHECK(std::stoull(figure(client, key, "serializedlength")) ==
          std::stoull(dump.substr(1)) - kAround);
  };
  client.run("SET string " + std::string(300, 'x'));
  client.run("RPUSH list" + numbered("element", {}, 2000));
  client.run("HSET hash a 1 b 2");
  client.run("HPEXPIREAT hash 2000000000000 FIELDS 1 a");
  client.run("XADD stream 1-0 a 1");
  client.run("XGROUP CREATE stream group 0");
  client.run("VADD vectors VALUES 3 1 2 3 one");
  for (const std::string setting : {"yes", "no"}) {
    client.run("CONFIG SET rdbcompression " + setting);
    for (const auto* key : {"string", "list", "hash", "stream", "vectors"}) check(key);
  }
  CHECK(figure(client, "string", "serializedlength") == "302");
}

}  // namespace latchkey::tests
