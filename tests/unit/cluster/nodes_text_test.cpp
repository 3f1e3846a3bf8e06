#include "cluster/nodes_text.h"

#include <string>

#include "unit/catch.h"

namespace latchkey::cluster {

namespace {

constexpr int64_t kNow = 1000;
const std::string kId(40, 'a');
const std::string kOther(40, 'c');
const std::string kShard(40, 'b');

std::string line(std::string_view flags, std::string_view rest, const std::string& id = kId) {
  return id + " :7000@17000,,tls-port=0,shard-id=" + kShard + " " + std::string(flags) + " " +
         std::string(rest) + "\n";
}

Node& add(NodeTable& nodes, const std::string& id, uint16_t flags) {
  Node& node = nodes.add(id, flags, kNow);
  node.shard_id = kShard;
  node.address = {.ip = "", .port = 7000, .bus_port = 17000};
  return node;
}

std::string error_of(std::string_view text) {
  NodeTable nodes;
  const base::Result<> parsed = parse_file(text, kNow, &nodes);
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

}  // namespace

TEST_CASE("what a node knows comes back from its file", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  me.address.ip = "10.0.0.1";
  me.hostname = "here";
  me.human_name = "anna";
  me.address.tls_port = 7001;
  me.config_epoch = 5;
  for (const int slot : {0, 1, 2, 5, 16383}) nodes.assign(slot, me);
  Node& other = add(nodes, kOther, kMaster | kFailing);
  other.address.ip = "::1";
  nodes.make_replica(add(nodes, std::string(40, 'd'), kReplica), &me);
  nodes.set_migrating(5, &other);
  nodes.set_importing(7, &other);
  nodes.current_epoch = 7;
  nodes.last_vote_epoch = 3;

  NodeTable read;
  REQUIRE(parse_file(file_text(nodes), kNow, &read));
  CHECK(file_text(read) == file_text(nodes));
  CHECK(read.myself().human_name == "anna");
  CHECK(read.myself().address.tls_port == 7001);
  CHECK(read.myself().slots.text() == " 0-2 5 16383");
  CHECK(read.find(kOther)->address.ip == "::1");
  CHECK(read.migrating_to(5) == read.find(kOther));
  CHECK(read.importing_from(7) == read.find(kOther));
  CHECK(read.myself().replicas.size() == 1);
  CHECK(read.current_epoch == 7);
  CHECK(read.last_vote_epoch == 3);
}

TEST_CASE("a node is written down as the reference does it", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  nodes.assign(1, me);
  CHECK(file_text(nodes) ==
        line("myself,master", "- 0 0 0 connected 1") + "vars currentEpoch 0 lastVoteEpoch 0\n");
  CHECK(describe(nodes, me) == kId + " :7000@17000 myself,master - 0 0 0 connected 1");
  me.hostname = "here";
  CHECK(describe(nodes, me) == kId + " :7000@17000,here myself,master - 0 0 0 connected 1");
  // A node whose id is not known is nothing to remember.
  add(nodes, kOther, kHandshake);
  CHECK(file_text(nodes).find(kOther) == std::string::npos);
  // Clients with TLS are told the other port, which the file has beside the first one.
  me.address.tls_port = 7001;
  CHECK(describe(nodes, me, {.secure = true}) ==
        kId + " :7001@17000,here myself,master - 0 0 0 connected 1");
  CHECK(file_text(nodes).starts_with(kId + " :7000@17000,here,tls-port=7001,shard-id="));
  CHECK(describe_all(nodes).find(kOther + " :7000@17000 handshake - 0 0 0 disconnected\n") !=
        std::string::npos);
}

TEST_CASE("a node shows clients the address that is announced for their family", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  me.address.ip = "10.0.0.1";
  me.hostname = "here";
  me.client_ipv4 = "203.0.113.5";
  CHECK(describe(nodes, me).starts_with(kId + " 203.0.113.5:7000@17000,here "));
  CHECK(describe(nodes, me, {.ipv6 = true}).starts_with(kId + " 10.0.0.1:7000@17000,here "));
  me.client_ipv6 = "2001:db8::5";
  CHECK(describe(nodes, me, {.ipv6 = true}).starts_with(kId + " 2001:db8::5:7000@17000,here "));
  // Nodes reach each other as before; the file has all three.
  const std::string text = file_text(nodes);
  CHECK(text.starts_with(kId + " 10.0.0.1:7000@17000,here,client-ipv6=2001:db8::5,"
                               "client-ipv4=203.0.113.5,tls-port=0,shard-id="));
  NodeTable read;
  REQUIRE(parse_file(text, 0, &read));
  CHECK(read.myself().hostname == "here");
  CHECK(read.myself().client_ipv4 == "203.0.113.5");
  CHECK(read.myself().client_ipv6 == "2001:db8::5");
}

TEST_CASE("a node shows clients the ports that are announced for them", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  me.client_port = 6401;
  me.client_tls_port = 6402;
  CHECK(describe(nodes, me).starts_with(kId + " :6401@17000 "));
  // There is no port for TLS that could be announced otherwise.
  CHECK(describe(nodes, me, {.secure = true}).starts_with(kId + " :0@17000 "));
  me.address.tls_port = 7001;
  CHECK(describe(nodes, me, {.secure = true}).starts_with(kId + " :6402@17000 "));
}

TEST_CASE("a file has replicas of replicas, of which a node knows while others are down",
          "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  Node& other = add(nodes, kOther, kMaster);
  Node& down = add(nodes, std::string(40, 'd'), kReplica | kFailing);
  nodes.make_replica(down, &me);
  nodes.make_replica(me, &other);
  SECTION("in a chain") {}
  SECTION("in a circle") {
    nodes.make_replica(other, &me);
  }
  NodeTable read;
  REQUIRE(parse_file(file_text(nodes), kNow, &read));
  CHECK(file_text(read) == file_text(nodes));
  CHECK(read.find(std::string(40, 'd'))->master == &read.myself());
  CHECK(read.myself().master == read.find(kOther));
}

TEST_CASE("the file of nodes has the zone of a node and its ports for clients", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  me.client_port = 6401;
  me.client_tls_port = 6402;
  me.availability_zone = "zone-a";
  const std::string text = file_text(nodes);
  CHECK(text.starts_with(kId + " :7000@17000,,availability-zone=zone-a,client-tls-port=6402,"
                               "client-tcp-port=6401,tls-port=0,shard-id="));
  NodeTable read;
  REQUIRE(parse_file(text, 0, &read));
  CHECK(read.myself().client_port == 6401);
  CHECK(read.myself().client_tls_port == 6402);
  CHECK(read.myself().availability_zone == "zone-a");
  NodeTable damaged;
  std::string wrong = text;
  wrong.replace(wrong.find("6402"), 4, "64x2");
  CHECK_FALSE(parse_file(wrong, 0, &damaged));
}

TEST_CASE("a replica shows its master and that one's epoch", "[cluster]") {
  NodeTable nodes;
  Node& me = add(nodes, kId, kMyself | kMaster);
  me.config_epoch = 4;
  Node& replica = add(nodes, kOther, kReplica | kSuspect | kNoFailover);
  nodes.make_replica(replica, &me);
  CHECK(describe(nodes, replica) ==
        kOther + " :7000@17000 slave,fail?,nofailover " + kId + " 0 0 4 disconnected");
}

TEST_CASE("a file of nodes that is damaged is refused", "[cluster]") {
  const std::string good = line("myself,master", "- 0 0 0 connected 0-100");
  CHECK(error_of("") == "it tells of no node");
  CHECK(error_of("vars currentEpoch 0 lastVoteEpoch 0\n") == "it tells of no node");
  CHECK(error_of(line("master", "- 0 0 0 connected")) == "it does not say which node this is");
  for (const std::string& bad :
       {line("myself,master", "- 0 0 0 connected 16384"),
        line("myself,master", "- 0 0 0 connected 9-3"), line("myself,master", "- 0 0 x connected"),
        line("myself,master", "- 0 0"), "short " + good, good + "vars currentEpoch\n",
        good + "vars currentEpoch -1\n", good + good,
        good + line("myself,master", "- 0 0 0 connected", kOther),
        good + line("master,slave", "- 0 0 0 connected", kOther),
        good + line("slave", kOther + " 0 0 0 connected", kOther),
        good + line("slave", kId + " 0 0 0 connected 7", kOther),
        good + line("slave", kId.substr(1) + " 0 0 0 connected", kOther),
        line("myself,master", "127.0.0.1 0 0 0 connected"),
        line("myself,master", "- 0 0 0 connected [1->-" + kOther + "]"),
        line("myself,wise", "- 0 0 0 connected")})
    CHECK(error_of(bad).starts_with("it is damaged at '"));
}

TEST_CASE("the highest epoch a node knows is at least that of any node", "[cluster]") {
  NodeTable nodes;
  REQUIRE(parse_file(line("myself,master", "- 0 0 9 connected"), kNow, &nodes));
  CHECK(nodes.current_epoch == 9);
}

}  // namespace latchkey::cluster
