#include "server/client/notifications.h"

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands/groups.h"
#include "persist/rows.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

// A server with a client, and a listener to all channels of events.
struct HeardServer : ServerFixture {
  HeardServer(std::initializer_list<std::span<const server::CommandRow>> groups,
              std::string_view settings)
      : ServerFixture(groups, settings), client(*this), listener(*this) {
    listener.run("PSUBSCRIBE __keyevent@0__:*");
  }
  // The events that a request has published, with their keys.
  std::string events_of(std::string_view line) {
    client.run(line);
    return heard();
  }
  std::string heard() {
    std::string text = listener.take_output();
    std::string events;
    constexpr std::string_view kBefore = "__keyevent@0__:";
    // The pattern and the channel come in turn.
    for (size_t at = text.find(kBefore); at != std::string::npos; at = text.find(kBefore, at)) {
      at += kBefore.size();
      const std::string event = text.substr(at, text.find('\r', at) - at);
      if (event == "*") continue;
      const size_t key = text.find("\r\n", text.find('$', at)) + 2;
      if (!events.empty()) events += ", ";
      events += event + " " + text.substr(key, text.find('\r', key) - key);
    }
    return events;
  }
  TestClient client;
  TestClient listener;
};

struct NotifyingServer : HeardServer {
  NotifyingServer()
      : HeardServer({commands::config_rows(), commands::hash_rows(), commands::key_rows(),
                     commands::list_rows(), commands::pubsub_rows(), commands::set_rows(),
                     commands::set_algebra_rows(), commands::string_batch_rows(),
                     commands::string_range_rows(), commands::string_rows()},
                    "notify-keyspace-events Eocgsl$h\n") {}
};

struct LookupServer : HeardServer {
  explicit LookupServer(const std::string& classes, const std::string& settings = {})
      : HeardServer({commands::bloom_filter_rows(), commands::list_rows(), commands::object_rows(),
                     commands::pubsub_rows(), commands::stream_reference_rows(),
                     commands::string_batch_rows(), commands::string_condition_rows(),
                     commands::string_rows(), persist::dump_rows()},
                    "notify-keyspace-events " + classes + "\n" + settings) {}
};

}  // namespace

TEST_CASE("A value that takes the place of another is told to have overwritten it",
          "[notifications]") {
  NotifyingServer server;
  CHECK(server.events_of("SET name x") == "set name");
  CHECK(server.events_of("SET name y") == "overwritten name, set name");
  CHECK(server.events_of("APPEND name z") == "append name");
  CHECK(server.events_of("MSET name a other b name c") ==
        "overwritten name, set name, set other, overwritten name, set name");
}

TEST_CASE("A value of another type is told to have changed the type", "[notifications]") {
  NotifyingServer server;
  server.events_of("HSET hash a 1");
  CHECK(server.events_of("SET hash x") == "overwritten hash, type_changed hash, set hash");
  server.events_of("RPUSH list a");
  CHECK(server.events_of("RENAME list hash") ==
        "rename_from list, rename_to hash, overwritten hash, type_changed hash");
  server.events_of("SADD set a");
  CHECK(server.events_of("SUNIONSTORE hash set") ==
        "overwritten hash, type_changed hash, sunionstore hash");
  CHECK(server.events_of("COPY set hash REPLACE") == "copy_to hash, overwritten hash");
}

TEST_CASE("What is overwritten is published only where it is asked for", "[notifications]") {
  NotifyingServer server;
  server.events_of("SET name x");
  CHECK(server.client.run("CONFIG SET notify-keyspace-events Eg$") == kOk);
  CHECK(server.events_of("SET name y") == "set name");
  CHECK(server.client.run("CONFIG SET notify-keyspace-events Ec") == kOk);
  CHECK(server.events_of("SADD name x").empty());
  server.events_of("DEL name");
  server.events_of("SADD name x");
  CHECK(server.events_of("SET name y") == "type_changed name");
}

namespace {

// What a listener to all channels that name fields hears of a request: "channel message" each.
struct FieldServer : ServerFixture {
  explicit FieldServer(const std::string& classes)
      : ServerFixture(
            {commands::config_rows(), commands::hash_counter_rows(), commands::hash_deadline_rows(),
             commands::hash_rows(), commands::key_rows(), commands::pubsub_rows()},
            "notify-keyspace-events " + classes + "\n"),
        client(*this),
        listener(*this) {
    listener.run("PSUBSCRIBE __subkey*");
  }
  std::vector<std::string> heard() {
    std::vector<std::string> messages;
    std::string text = listener.take_output();
    // Each is an array of four bulk strings: "pmessage", the pattern, the channel, the message.
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size();) {
      const size_t line = text.find("\r\n", at);
      if (text[at] == '*') {
        at = line + 2;
        continue;
      }
      const size_t size = std::stoul(text.substr(at + 1));
      words.push_back(text.substr(line + 2, size));
      at = line + 2 + size + 2;
    }
    for (size_t i = 0; i + 3 < words.size(); i += 4)
      messages.push_back(words[i + 2] + " " + words[i + 3]);
    return messages;
  }
  std::vector<std::string> heard_of(std::string_view line) {
    client.run(line);
    return heard();
  }
  TestClient client;
  TestClient listener;
};

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("Channels name the fields of a hash that have changed", "[subkeys]") {
  FieldServer server("STIVh");
  CHECK(server.heard_of("HSET hash one 1 second 2") ==
        Messages{"__subkeyspace@0__:hash hset|3:one,6:second",
                 "__subkeyevent@0__:hset 4:hash|3:one,6:second",
                 "__subkeyspaceitem@0__:hash\none hset", "__subkeyspaceitem@0__:hash\nsecond hset",
                 "__subkeyspaceevent@0__:hset|hash 3:one,6:second"});
}

TEST_CASE("Each of the channels that name fields is asked for by a letter", "[subkeys]") {
  for (const auto& [letter, channel] : {std::pair{"S", "__subkeyspace@0__:h hset|1:f"},
                                        std::pair{"T", "__subkeyevent@0__:hset 1:h|1:f"},
                                        std::pair{"I", "__subkeyspaceitem@0__:h\nf hset"},
                                        std::pair{"V", "__subkeyspaceevent@0__:hset|h 1:f"}}) {
    FieldServer server(std::string(letter) + "h");
    CHECK(server.heard_of("HSET h f v") == Messages{channel});
    // The class of hashes must be asked for too, and keys' own channels are no matter.
    server.client.run(std::string("CONFIG SET notify-keyspace-events KE") + letter);
    CHECK(server.heard_of("HSET h f v").empty());
    CHECK(server.client.run("CONFIG GET notify-keyspace-events") ==
          bulks({"notify-keyspace-events", std::string("KE") + letter}));
    server.client.run_words({"CONFIG", "SET", "notify-keyspace-events", ""});
    CHECK(server.heard_of("HSET h f v").empty());
  }
}

TEST_CASE("Commands on hashes name the fields that they changed, and no others", "[subkeys]") {
  FieldServer server("Sh");
  const auto heard_of = [&](std::string_view line) {
    Messages messages = server.heard_of(line);
    for (std::string& message : messages)
      message.erase(0, std::string("__subkeyspace@0__:h ").size());
    return messages;
  };
  CHECK(heard_of("HSETNX h a 1") == Messages{"hset|1:a"});
  CHECK(heard_of("HSETNX h a 1").empty());
  CHECK(heard_of("HMSET h b 1 c 2 d 3") == Messages{"hset|1:b,1:c,1:d"});
  CHECK(heard_of("HINCRBY h b 1") == Messages{"hincrby|1:b"});
  CHECK(heard_of("HINCRBYFLOAT h b 1.5") == Messages{"hincrbyfloat|1:b"});
  CHECK(heard_of("HDEL h none c") == Messages{"hdel|1:c"});
  CHECK(heard_of("HDEL h none").empty());
  CHECK(heard_of("HGETDEL h FIELDS 2 none d") == Messages{"hdel|1:d"});
  CHECK(heard_of("HEXPIRE h 100 FIELDS 3 a none b") == Messages{"hexpire|1:a,1:b"});
  CHECK(heard_of("HPERSIST h FIELDS 2 none a") == Messages{"hpersist|1:a"});
  CHECK(heard_of("HPERSIST h FIELDS 1 a").empty());
  CHECK(heard_of("HGETEX h PX 5000 FIELDS 1 a") == Messages{"hexpire|1:a"});
  CHECK(heard_of("HGETEX h PERSIST FIELDS 2 a b") == Messages{"hpersist|1:a,1:b"});
  CHECK(heard_of("HSETEX h FIELDS 2 x 1 y 2") == Messages{"hset|1:x,1:y"});
  CHECK(heard_of("HSETEX h EX 9 FIELDS 1 x 1") == Messages{"hset|1:x", "hexpire|1:x"});
  CHECK(heard_of("HEXPIREAT h 1 FIELDS 2 x y") == Messages{"hdel|1:x,1:y"});
  CHECK(heard_of("HGET h a").empty());
}

TEST_CASE("Fields that expire are named, together with others of their hash", "[subkeys]") {
  FieldServer server("Sh");
  server.client.run("HSET h a 1 b 2 c 3");
  server.client.run("HPEXPIRE h 30 FIELDS 2 a b");
  server.heard();
  server.advance_ms(31);
  CHECK(server.heard_of("HMGET h a b c") == Messages{"__subkeyspace@0__:h hexpired|1:a,1:b"});
}

TEST_CASE("What separates the parts of a channel is not in them", "[subkeys]") {
  FieldServer server("STIVh");
  server.client.run_words({"HSET", "a\nb", "f|,", "v"});
  CHECK(server.heard() == Messages{"__subkeyspace@0__:a\nb hset|3:f|,",
                                   "__subkeyevent@0__:hset 3:a\nb|3:f|,",
                                   "__subkeyspaceevent@0__:hset|a\nb 3:f|,"});
}

TEST_CASE("Keys that are not there are told to be missed where the reference tells it",
          "[notifications]") {
  LookupServer server("Em");
  CHECK(server.events_of("GET no") == "keymiss no");
  CHECK(server.events_of("XACKDEL no g IDS 1 1-1") == "keymiss no");
  CHECK(server.events_of("XACKDEL no g nosuch 1 1-1") == "keymiss no");
  CHECK(server.events_of("XDELEX no IDS 1 1-1") == "");
  CHECK(server.events_of("DELEX no IFEQ x") == "keymiss no");
  CHECK(server.events_of("DELEX no") == "");
  for (const char* request : {"OBJECT ENCODING no", "OBJECT FREQ no", "OBJECT IDLETIME no"})
    CHECK(server.events_of(request) == "");
}

TEST_CASE("OBJECT, XACKDEL and DELEX with a condition count as hits and misses",
          "[notifications]") {
  LookupServer server("Em");
  server.client.run("SET name x");
  const store::Environment& environment = server.database().environment();
  const auto counted = [&](std::string_view line) {
    const uint64_t hits = environment.figures.hits;
    const uint64_t misses = environment.figures.misses;
    server.client.run(line);
    return std::make_pair(environment.figures.hits - hits, environment.figures.misses - misses);
  };
  const auto hit = std::make_pair(uint64_t{1}, uint64_t{0});
  const auto miss = std::make_pair(uint64_t{0}, uint64_t{1});
  CHECK(counted("OBJECT ENCODING name") == hit);
  CHECK(counted("OBJECT ENCODING no") == miss);
  CHECK(counted("XACKDEL name g IDS 1 1-1") == hit);
  CHECK(counted("XACKDEL no g IDS 1 1-1") == miss);
  CHECK(counted("DELEX name IFEQ y") == hit);
  CHECK(counted("DELEX no IFEQ y") == miss);
  CHECK(counted("DELEX name") == std::make_pair(uint64_t{0}, uint64_t{0}));
}

TEST_CASE("RESTORE tells of a new key also where it replaces one", "[notifications]") {
  LookupServer server("Engoc");
  server.client.run("SET name x");
  server.client.run("RPUSH list x");
  std::string dump = server.client.run("DUMP name");
  dump = dump.substr(dump.find("\r\n") + 2);
  dump.resize(dump.size() - 2);
  server.listener.take_output();
  const auto events_of_restore = [&](std::string_view key) {
    server.client.run_words({"RESTORE", key, "0", dump, "REPLACE"});
    return server.heard();
  };
  CHECK(events_of_restore("other") == "new other, restore other");
  CHECK(events_of_restore("name") == "new name, restore name, overwritten name");
  CHECK(events_of_restore("list") == "new list, restore list, overwritten list, type_changed list");
}

TEST_CASE("MSETEX tells of deadlines before values, and for Valkey behind them",
          "[notifications]") {
  CHECK(LookupServer("E$g").events_of("MSETEX 2 a 1 b 2 EX 10") ==
        "expire a, set a, expire b, set b");
  CHECK(LookupServer("E$g", "emulate \"valkey 9.1\"\n").events_of("MSETEX 2 a 1 b 2 EX 10") ==
        "set a, expire a, set b, expire b");
}

TEST_CASE("A deadline that is told before a new value overwrites nothing", "[notifications]") {
  LookupServer server("E$go");
  CHECK(server.events_of("MSETEX 1 a 1 EX 10") == "expire a, set a");
  CHECK(server.events_of("MSETEX 1 a 1 EX 10") == "expire a, overwritten a, set a");
}

TEST_CASE("A key that its command has made without a word is overwritten by the next one",
          "[notifications]") {
  LookupServer server("E$oc");
  CHECK(server.events_of("BF.ADD key a").empty());
  CHECK(server.events_of("SET key x") == "overwritten key, type_changed key, set key");
}

}  // namespace latchkey::tests
