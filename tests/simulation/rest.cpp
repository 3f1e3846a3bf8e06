// The end of a run: everything comes to rest, and is compared.
#include <algorithm>

#include "replication/replica_role.h"
#include "server/observe/dataset_digest.h"
#include "server/server.h"
#include "server/tasks.h"
#include "simulation/world.h"

namespace latchkey::simulation {

namespace {

constexpr int kMaxRounds = 600;
constexpr int64_t kRoundMs = 260;
// Longer than anything is to live.
constexpr int64_t kAllHasExpiredMs = 40'000;
constexpr uint32_t kUnrest = server::kStateBusy | server::kStateLoading |
                             server::kStateAsyncLoading | server::kStateDiskError;

Value value_at(Node& node, const std::string& key, const std::string& type, int database) {
  Value value;
  if (type == "string") {
    value.text = content(node.run({"GET", key}, database));
  } else if (type == "list") {
    value.type = Value::Type::kList;
    for (const std::string& element : elements(node.run({"LRANGE", key, "0", "-1"}, database)))
      value.list.push_back(content(element));
  } else if (type == "hash" || type == "zset") {
    const bool is_hash = type == "hash";
    value.type = is_hash ? Value::Type::kHash : Value::Type::kSortedSet;
    const Words request =
        is_hash ? Words{"HGETALL", key} : Words{"ZRANGE", key, "0", "-1", "WITHSCORES"};
    const std::vector<std::string> parts = elements(node.run(request, database));
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      value.fields[content(parts[i])] = content(parts[i + 1]);
  } else {
    throw CheckFailed(key + " is a " + type);
  }
  return value;
}

}  // namespace

void World::come_to_rest() {
  steps_.note("everything is to come to rest");
  disk_full_ = false;
  network_.heal();
  go_on_until_rest();
  for (const auto& player : players_) player->leave();
  for (const auto& listener : listeners_) listener->leave();
  clock_.advance_ms(kAllHasExpiredMs);
  for (int i = 0; i < 5; ++i) go_on_quietly();
  go_on_until_rest();
  check_datasets();
  if (plan_.disk == Disk::kNone) return check_replicas();
  // What the files hold is the same.
  steps_.note("the master starts anew");
  master().crash();
  start(master());
  check_datasets();
  go_on_until_rest();
  check_replicas();
}

void World::go_on_quietly() {
  for (const auto& node : nodes_) {
    const int wanted = plan_.masters[static_cast<size_t>(node->index())];
    if (node->master() != wanted) change_role(*node);
    stop_script(*node);
  }
  for (const auto& player : players_) player->arrive(static_cast<size_t>(-1));
  network_.carry();
  for (const auto& node : nodes_) {
    node->snapshots().work(/*may_fail=*/false);
    end_turn(*node);
  }
  clock_.advance_ms(kRoundMs);
}

void World::go_on_until_rest() {
  std::string why;
  for (int round = 0; round < kMaxRounds; ++round) {
    go_on_quietly();
    why = unrest();
    if (why.empty()) return;
  }
  throw CheckFailed("does not come to rest: " + why);
}

std::string World::unrest() {
  for (const auto& node : nodes_) {
    server::Server& server = node->server();
    if ((server.state() & kUnrest) != 0)
      return node->name() + " is in state " + std::to_string(server.state());
    if (server.tasks().any()) return node->name() + " has tasks";
    if (server.clients().blocked() != 0) return node->name() + " has clients that wait";
    if (node->snapshots().is_busy()) return node->name() + " writes a snapshot";
    if (node.get() == &master()) continue;
    if (node->replica_role().session() == nullptr)
      return node->name() + " is not connected, but " +
             std::string(replication::name_of(node->replica_role().state()));
    if (server.replication_offset() != master().server().replication_offset())
      return node->name() + " is at " + std::to_string(server.replication_offset()) + " of " +
             std::to_string(master().server().replication_offset());
  }
  for (const auto& player : players_) {
    if (!player->closed() && !player->is_idle()) {
      return player->name() + " waits for " + std::to_string(player->conversation().waiting()) +
             " replies";
    }
  }
  return {};
}

void World::check_counters(Node& node) {
  size_t expected = node.replica_role().active() ? 1 : 0;
  for (const auto& other : nodes_) expected += other->master() == node.index() ? 1 : 0;
  const size_t found = node.server().clients().size();
  if (found != expected) {
    throw CheckFailed(node.name() + " has " + std::to_string(found) + " clients and should have " +
                      std::to_string(expected));
  }
}

void World::check_replicas() {
  const server::Digest expected = server::dataset_digest(master().server());
  const std::string libraries = master().run({"FUNCTION", "DUMP"});
  for (const auto& node : nodes_) {
    check_counters(*node);
    if (server::dataset_digest(node->server()) != expected)
      throw CheckFailed(node->name() + " has another dataset than its master");
    if (node->run({"FUNCTION", "DUMP"}) != libraries)
      throw CheckFailed(node->name() + " has other functions than its master");
  }
}

Model World::stored(const Player& player) {
  std::map<std::string, Value> values;
  for (const char* name : {"s", "t", "n", "l", "h", "z"}) {
    const std::string key = player.name() + ":" + name;
    const std::string type = content(master().run({"TYPE", key}, player.database()));
    if (type != "none") values[key] = value_at(master(), key, type, player.database());
  }
  return Model(std::move(values));
}

void World::check_player(Player& player) {
  const Model found = stored(player);
  std::string expected;
  for (Model model : player.conversation().possible()) {
    model.expire(clock_.wall_ms());
    if (model == found) return;
    expected = model.text();
  }
  throw CheckFailed("of " + player.name() + " there is " + found.text() + "and should be " +
                    expected);
}

void World::check_datasets() {
  for (const auto& player : players_) {
    if (&player->node() == &master()) check_player(*player);
  }
  std::vector<std::string> queue;
  for (const std::string& element : elements(master().run({"LRANGE", kQueue, "0", "-1"})))
    queue.push_back(content(element));
  ledger_.check(queue);
}

}  // namespace latchkey::simulation
