#include "cluster/node_state.h"

#include <catch2/catch.hpp>

namespace latchkey::cluster {

namespace {

const std::string kId(40, 'a');
const std::string kShard(40, 'b');

std::string line(std::string_view flags, std::string_view rest) {
  return kId + " :7000@17000,,tls-port=0,shard-id=" + kShard + " " + std::string(flags) + " " +
         std::string(rest) + "\n";
}

std::string error_of(std::string_view text) {
  NodeState state;
  std::string error;
  REQUIRE_FALSE(parse_file(text, &state, &error));
  return error;
}

}  // namespace

TEST_CASE("a node's state comes back from its file", "[cluster]") {
  NodeState state = new_node();
  state.current_epoch = 7;
  state.config_epoch = 5;
  state.last_vote_epoch = 3;
  for (const int slot : {0, 1, 2, 5, 16383}) state.slots.add(slot);
  const std::string text =
      file_text(state, {.ip = "10.0.0.1", .port = 7000, .bus_port = 17000, .hostname = "here"});
  NodeState read;
  std::string error;
  REQUIRE(parse_file(text, &read, &error));
  CHECK(read.id == state.id);
  CHECK(read.shard_id == state.shard_id);
  CHECK(read.current_epoch == 7);
  CHECK(read.config_epoch == 5);
  CHECK(read.last_vote_epoch == 3);
  CHECK(read.slots.text() == " 0-2 5 16383");
}

TEST_CASE("a node is written down as the reference does it", "[cluster]") {
  NodeState state;
  state.id = kId;
  state.shard_id = kShard;
  state.slots.add(1);
  const NodeAddress address{.ip = "", .port = 7000, .bus_port = 17000, .hostname = ""};
  CHECK(file_text(state, address) ==
        line("myself,master", "- 0 0 0 connected 1") + "vars currentEpoch 0 lastVoteEpoch 0\n");
  CHECK(describe(state, address) == kId + " :7000@17000 myself,master - 0 0 0 connected 1");
}

TEST_CASE("a file that is damaged or tells of other nodes is refused", "[cluster]") {
  const std::string good = line("myself,master", "- 0 0 0 connected 0-100");
  CHECK(error_of("") == "it tells of no node");
  CHECK(error_of("vars currentEpoch 0 lastVoteEpoch 0\n") == "it tells of no node");
  CHECK(error_of(good + good).starts_with("it tells of other nodes"));
  for (const std::string& bad :
       {line("myself,master", "- 0 0 0 connected 16384"),
        line("myself,master", "- 0 0 0 connected 9-3"), line("myself,master", "- 0 0 x connected"),
        line("myself,master", "- 0 0"), "short " + good, good + "vars currentEpoch\n",
        good + "vars currentEpoch -1\n"})
    CHECK(error_of(bad).starts_with("it is damaged at '"));
}

TEST_CASE("the highest epoch a node knows is at least its own", "[cluster]") {
  NodeState state;
  std::string error;
  REQUIRE(parse_file(line("myself,master", "- 0 0 9 connected"), &state, &error));
  CHECK(state.current_epoch == 9);
}

}  // namespace latchkey::cluster
