// What a script is told of keys that it has not declared and that are not here.
#include <string>

#include "unit/catch.h"
#include "unit/cluster/played_node.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

struct Told {
  std::string settings;
  std::string elsewhere = "ERR Script attempted to access a non local key in a cluster node";
  std::string unserved = "ERR Script attempted to access a slot not served";
  std::string across =
      "ERR Command 'mget' in script attempted to access keys that don't hash to the same slot";
  std::string moving =
      "ERR Unable to execute command 'mget' in script because undeclared keys were accessed during "
      "rehashing of the slot";
};

// That has one text for all of them.
Told same(const std::string& settings, const std::string& text) {
  return {settings, text, text, text, text};
}

}  // namespace

TEST_CASE("A script is told why a key is not here, as far as the release tells", "[cluster]") {
  const Told told =
      GENERATE(Told{""}, Told{"emulate \"redis 8.0\"\n"}, Told{"emulate \"valkey 8.1\"\n"},
               same("emulate \"redis 7.0\"\n",
                    "ERR Script attempted to access a non local key in a cluster node"),
               same("emulate \"valkey 9.1\"\n",
                    "ERR Attempted to access a non local key in a cluster node"));
  INFO(told.settings);
  NodeWithPeer node(told.settings);
  TestClient client(node.server);
  const auto call = [&](const std::string& request) {
    return client.run_words({"EVAL", "return redis.pcall(" + request + ")", "0"});
  };
  // The slots 866, 12182 and 16383.
  REQUIRE(client.run("CONFIG SET cluster-require-full-coverage no") == kOk);
  REQUIRE(client.run("SET foo 1") == kOk);
  CHECK(call("'get', 'hello'") == error(told.elsewhere));
  CHECK(call("'mget', 'foo', '{6ZJ}'") == error(told.across));
  REQUIRE(client.run("CLUSTER SETSLOT 12182 MIGRATING " + NodeWithPeer::kPeer) == kOk);
  CHECK(call("'mget', 'foo', '{foo}gone'") == error(told.moving));
  CHECK(call("'get', '{foo}gone'") == error(told.elsewhere));
  CHECK(call("'get', 'foo'") == bulk("1"));
  REQUIRE(client.run("CLUSTER DELSLOTS 16383") == kOk);
  CHECK(call("'get', '{6ZJ}'") == error(told.unserved));
}

}  // namespace latchkey::tests
