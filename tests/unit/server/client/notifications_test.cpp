#include "server/client/notifications.h"

#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct NotifyingServer : ServerFixture {
  NotifyingServer()
      : ServerFixture({commands::config_rows(), commands::hash_rows(), commands::key_rows(),
                       commands::list_rows(), commands::pubsub_rows(), commands::set_rows(),
                       commands::set_algebra_rows(), commands::string_batch_rows(),
                       commands::string_range_rows(), commands::string_rows()},
                      "notify-keyspace-events Eocgsl$h\n"),
        client(*this),
        listener(*this) {
    listener.run("PSUBSCRIBE __keyevent@0__:*");
  }
  // The events that a request has published, with their keys.
  std::string events_of(std::string_view line) {
    client.run(line);
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

}  // namespace latchkey::tests
