#include "sentinel/directives.h"

#include <algorithm>
#include <string>
#include <vector>

#include "server/config/config_parse.h"
#include "unit/catch.h"
#include "unit/sentinel/world.h"

namespace latchkey::sentinel {
namespace {

using testing::Node;
using testing::World;

// The reason why the lines are refused; empty: they are not.
std::string apply(Sentinel& sentinel, const std::vector<std::string>& lines) {
  std::vector<server::DeferredDirective> directives;
  for (const std::string& line : lines) {
    auto words = *server::split_arguments(line);
    words.erase(words.begin());
    directives.push_back({std::move(words), 1, line});
  }
  const auto applied = apply_directives(directives, &sentinel);
  return applied ? "" : applied.error().message;
}

const std::string kMonitor = "sentinel monitor m 127.0.0.1 6379 2";
const std::string kId(40, 'a');

TEST_CASE("What a Sentinel writes it reads again", "[sentinel]") {
  World world(1);
  Node node(world, "10.0.1.1", kId);
  // The settings of a master may stand before it.
  REQUIRE(
      apply(node.sentinel(), {"sentinel auth-pass m \"a b\"",
                              "sentinel down-after-milliseconds m 1234",
                              kMonitor,
                              "sentinel failover-timeout m 99",
                              "sentinel parallel-syncs m 3",
                              "sentinel master-reboot-down-after-period m 7",
                              "sentinel notification-script m /bin/sh",
                              "sentinel client-reconfig-script m /bin/sh",
                              "sentinel auth-user m u",
                              "sentinel rename-command m CONFIG GUESS",
                              "sentinel known-slave m 127.0.0.1 6380",
                              "sentinel known-sentinel m 127.0.0.1 26380 " + std::string(40, 'b'),
                              "sentinel config-epoch m 4",
                              "sentinel leader-epoch m 5",
                              "sentinel announce-ip 1.2.3.4",
                              "sentinel announce-port 77",
                              "sentinel sentinel-user x",
                              "sentinel sentinel-pass y",
                              "sentinel resolve-hostnames yes",
                              "sentinel announce-hostnames yes",
                              "sentinel deny-scripts-reconfig no",
                              "sentinel current-epoch 9"}) == "");
  const std::vector<std::string> written = directive_lines(node.sentinel());
  CHECK(std::count(written.begin(), written.end(), "sentinel auth-pass m \"a b\"") == 1);
  CHECK(std::count(written.begin(), written.end(), "sentinel known-replica m 127.0.0.1 6380") == 1);

  Node again(world, "10.0.1.2", std::string(40, 'c'));
  REQUIRE(apply(again.sentinel(), written) == "");
  CHECK(directive_lines(again.sentinel()) == written);
  CHECK(again.sentinel().id() == kId);
  CHECK(again.sentinel().current_epoch() == 9);
  CHECK(again.sentinel().find_master("m")->leader_epoch == 5);
}

TEST_CASE("Valkey's name for the period of a reboot is read by any, and written for Valkey",
          "[sentinel]") {
  World world(1);
  Node node(world, "10.0.1.1", kId);
  const std::string line = "sentinel primary-reboot-down-after-period m 7";
  REQUIRE(apply(node.sentinel(), {kMonitor, line}) == "");
  const auto is_among = [](const std::string& wanted, const std::vector<std::string>& lines) {
    return std::count(lines.begin(), lines.end(), wanted) == 1;
  };
  CHECK(is_among(line, directive_lines(node.sentinel(), *server::Edition::parse("valkey 9.1"))));
  const std::string of_redis = "sentinel master-reboot-down-after-period m 7";
  CHECK(is_among(of_redis, directive_lines(node.sentinel())));
  CHECK(is_among(of_redis, directive_lines(node.sentinel(), *server::Edition::parse("redis 8.6"))));
}

TEST_CASE("An epoch in which a vote was given is not forgotten", "[sentinel]") {
  World world(2);
  Node node(world, "10.0.1.1", kId);
  REQUIRE(apply(node.sentinel(), {kMonitor, "sentinel leader-epoch m 12"}) == "");
  CHECK(node.sentinel().current_epoch() == 12);
}

TEST_CASE("An epoch that was counted on from the greatest one that others tell can be read again",
          "[sentinel]") {
  World world(2);
  Node node(world, "10.0.1.1", kId);
  REQUIRE(apply(node.sentinel(), {kMonitor, "sentinel current-epoch 4611686018427387904"}) == "");
  CHECK(node.sentinel().current_epoch() == 4611686018427387904);
  CHECK(apply(node.sentinel(), {"sentinel current-epoch 9223372036854775807"}) ==
        "argument must be a number within range.");
}

TEST_CASE("Settings that are as they would be are not written", "[sentinel]") {
  World world(3);
  Node node(world, "10.0.1.1", kId);
  REQUIRE(apply(node.sentinel(), {kMonitor, "sentinel parallel-syncs m 1"}) == "");
  for (const std::string& line : directive_lines(node.sentinel())) {
    CHECK(line.find("parallel-syncs") == std::string::npos);
    CHECK(line.find("announce") == std::string::npos);
  }
}

TEST_CASE("Replicas and Sentinels whose names cannot be resolved are kept until they can be",
          "[sentinel]") {
  World world(5);
  Node node(world, "10.0.1.1", kId);
  const std::vector<std::string> known = {
      "sentinel resolve-hostnames yes",
      "sentinel monitor m main.test 6379 2",
      "sentinel known-replica m one.test 6380",
      "sentinel known-replica m two.test 6380",
      "sentinel known-sentinel m three.test 26380 " + std::string(40, 'b'),
  };
  REQUIRE(apply(node.sentinel(), known) == "");
  const std::vector<std::string> written = directive_lines(node.sentinel());
  for (const std::string& line : known)
    CHECK(std::count(written.begin(), written.end(), line) == 1);
  CHECK(apply(node.sentinel(), {"sentinel known-replica m one.test 6380"}) ==
        "Duplicate hostname and port for replica.");

  // When the master tells of it first, it is the replica that is known.
  world.names["one.test"] = "10.0.0.2";
  const Address resolved = node.sentinel().make_address("one.test", 6380);
  CHECK(resolved.ip == "10.0.0.2");
  CHECK(node.sentinel().add_replica(*node.sentinel().find_master("m"), resolved) == nullptr);
}

TEST_CASE("Directives that are wrong are refused with the reason", "[sentinel]") {
  World world(4);
  Node node(world, "10.0.1.1", kId);
  const auto refused = [&](const std::string& line) { return apply(node.sentinel(), {line}); };
  const std::string unknown = "Unrecognized sentinel configuration statement.";
  CHECK(refused("sentinel sing") == unknown);
  CHECK(refused("sentinel monitor m 127.0.0.1 6379") == unknown);
  CHECK(refused("sentinel monitor m 127.0.0.1 6379 0") == "Quorum must be 1 or greater.");
  CHECK(refused("sentinel monitor m 127.0.0.1 65536 1") == "Invalid port number.");
  CHECK(refused("sentinel monitor m nowhere 6379 1") == "Can't resolve instance hostname.");
  CHECK(refused("sentinel parallel-syncs m 2") == "No such master with specified name.");
  CHECK(refused("sentinel myid 12") == "Malformed Sentinel id in myid option.");
  CHECK(refused("sentinel announce-port x") == "Invalid port number.");
  CHECK(refused("sentinel current-epoch -1") != "");
  REQUIRE(refused(kMonitor) == "");
  CHECK(refused(kMonitor) == "Duplicate master name.");
  CHECK(refused("sentinel down-after-milliseconds m 0") == "negative or zero time parameter.");
  CHECK(refused("sentinel master-reboot-down-after-period m -1") == "negative time parameter.");
  CHECK(refused("sentinel notification-script m /no/such/script") ==
        "Notification script seems non existing or non executable.");
  CHECK(refused("sentinel client-reconfig-script m /no/such/script") ==
        "Client reconfiguration script seems non existing or non executable.");
  CHECK(refused("sentinel deny-scripts-reconfig maybe") ==
        "Please specify yes or no for the deny-scripts-reconfig options.");
  CHECK(refused("sentinel resolve-hostnames maybe") ==
        "Please specify yes or no for the resolve-hostnames option.");
  CHECK(refused("sentinel announce-hostnames maybe") ==
        "Please specify yes or no for the announce-hostnames option.");
  CHECK(refused("sentinel announce-hostnames YES") == "");
  CHECK(refused("sentinel announce-hostnames No") == "");
  CHECK(refused("sentinel down-after-milliseconds m 1") == "");
  CHECK(refused("sentinel failover-timeout m 0") == "negative or zero time parameter.");
  CHECK(refused("sentinel failover-timeout m 1") == "");
  CHECK(refused("sentinel parallel-syncs m 0") == "argument must be a number within range.");
  CHECK(refused("sentinel parallel-syncs m 1") == "");
  CHECK(refused("sentinel rename-command m CONFIG other") == "");
  CHECK(refused("sentinel rename-command m CONFIG another") ==
        "Same command renamed multiple times with rename-command.");
  CHECK(refused("sentinel config-epoch m 99999999999999999999") != "");
  REQUIRE(refused("sentinel known-replica m 127.0.0.1 6380") == "");
  CHECK(refused("sentinel known-replica m 127.0.0.1 6380") ==
        "Duplicate hostname and port for replica.");
  CHECK(refused("sentinel known-replica m nowhere 6380") == "Wrong hostname or port for replica.");
  CHECK(refused("sentinel known-sentinel m nowhere 26380 " + kId) ==
        "Wrong hostname or port for sentinel.");
  CHECK(refused("sentinel known-replica m 127.0.0.1 x") == "Invalid port number.");
  CHECK(refused("sentinel known-replica m 127.0.0.1 65536") == "Invalid port number.");
  CHECK(refused("sentinel known-replica m 127.0.0.1 -1") == "Invalid port number.");
  CHECK(refused("sentinel known-sentinel m 127.0.0.1 x " + kId) == "Invalid port number.");
  CHECK(refused("sentinel known-sentinel m 127.0.0.1 65536 " + kId) == "Invalid port number.");
}

}  // namespace
}  // namespace latchkey::sentinel
