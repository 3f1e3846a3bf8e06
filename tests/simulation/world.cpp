#include "simulation/world.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "replication/replica_role.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::simulation {

namespace {

constexpr int kDatabases = 3;
constexpr size_t kMaxWaiting = 10;  // requests of a client

// How far files of this process may grow; RLIM_INFINITY: as they like.
void limit_files(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

World::Plan::Plan(Dice& dice) {
  const size_t choice = dice.below(4);
  disk = choice == 0 ? Disk::kAlways : choice == 1 ? Disk::kMayFail : Disk::kNone;
  const size_t count = dice.between(2, 3);
  const bool is_chain = dice.percent(40);
  for (size_t i = 0; i < count; ++i)
    masters.push_back(i == 0 ? -1 : is_chain ? static_cast<int>(i) - 1 : 0);
  settings = "repl-diskless-sync " + std::string(dice.percent(70) ? "yes" : "no") + "\n";
  settings += "repl-backlog-size " + std::string(dice.percent(50) ? "1mb" : "16kb") + "\n";
  script_instructions = static_cast<int>(dice.between(500, 8000));
}

World::World(uint64_t seed, std::filesystem::path directory, Steps& steps, std::string log)
    : dice_(seed),
      steps_(steps),
      plan_(dice_),
      directory_(std::move(directory)),
      nodes_(make_nodes(directory_, log)),
      network_(nodes_, dice_, steps),
      workload_(dice_, plan_.disk == Disk::kNone) {}

World::Nodes World::make_nodes(const std::filesystem::path& directory, const std::string& log) {
  Nodes nodes;
  for (const int follows : plan_.masters) {
    const std::string number = std::to_string(nodes.size());
    const std::filesystem::path own = directory / number;
    std::filesystem::create_directories(own);
    const bool is_master = follows < 0;
    Node::Shape shape{.index = static_cast<int>(nodes.size()),
                      .follows = follows,
                      .append_only = is_master && plan_.disk != Disk::kNone,
                      .settings = plan_.settings,
                      .script_instructions = plan_.script_instructions};
    if (is_master && plan_.disk == Disk::kMayFail) shape.settings += "appendfsync no\n";
    nodes.push_back(std::make_unique<Node>(std::move(shape), clock_, dice_, own,
                                           log.empty() ? log : log + number));
  }
  return nodes;
}

void World::start(Node& node) {
  node.start();
  steps_.note(node.name() + " starts");
}

void World::run() {
  for (const auto& node : nodes_) start(*node);
  master().run({"FUNCTION", "LOAD", kLibrary});
  for (size_t i = dice_.between(2, 4); i > 0; --i) add_player(master());
  if (dice_.percent(60)) add_player(any_replica());
  for (size_t i = dice_.between(200, 500); i > 0; --i) step();
  come_to_rest();
}

void World::step() {
  clients_ask();
  if (dice_.percent(70)) network_.carry();
  for (const auto& node : nodes_) {
    if (node->up() && dice_.percent(50)) node->snapshots().work(/*may_fail=*/true);
  }
  end_turns();
  let_time_pass();
  meddle();
}

void World::clients_ask() {
  Player& player = *dice_.pick(players_);
  if (player.closed()) return;
  const bool is_masters = &player.node() == &master();
  if (is_masters && player.is_idle() && player.node().state() == 0 && dice_.percent(5)) {
    workload_.ask_silently(player);
    return player.arrive(static_cast<size_t>(-1));
  }
  if (player.conversation().waiting() < kMaxWaiting) {
    for (size_t i = dice_.below(5); i > 0; --i)
      is_masters ? workload_.ask(player) : workload_.ask_replica(player);
  }
  player.arrive(dice_.percent(60) ? static_cast<size_t>(-1) : dice_.below(200));
}

void World::let_time_pass() {
  const size_t kind = dice_.below(100);
  if (kind < 60) return clock_.advance_ms(static_cast<int64_t>(dice_.below(20)));
  if (kind < 70) return clock_.advance_ms(static_cast<int64_t>(dice_.between(300, 2500)));
  if (kind != 70) return;
  const size_t seconds = dice_.between(5, 90);
  steps_.note(std::to_string(seconds) + " seconds pass");
  clock_.advance_ms(static_cast<int64_t>(seconds) * 1000);
}

void World::end_turns() {
  for (const auto& node : nodes_) {
    if (node->up() && dice_.percent(70)) end_turn(*node);
  }
}

void World::end_turn(Node& node) {
  if (&node == &master() && disk_full_) {
    end_turn_of_full_disk(node);
  } else {
    node.end_turn();
  }
  for (const auto& player : players_) {
    if (&player->node() == &node) player->turn_ended();
  }
  for (const auto& listener : listeners_) {
    if (&listener->node() == &node) listener->read();
  }
  if (&node == &master()) {
    ledger_.acknowledged();
    flushed_in_turn_ = false;
  }
  network_.collect(node);
}

void World::end_turn_of_full_disk(Node& node) {
  // Some bytes more than the file holds by now may be written, and no more.
  uintmax_t largest = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_ / "0")) {
    if (entry.path().string().find(".incr.") != std::string::npos)
      largest = std::max(largest, entry.file_size());
  }
  limit_files(static_cast<rlim_t>(largest + dice_.below(40)));
  node.end_turn();
  limit_files(RLIM_INFINITY);
}

void World::meddle() {
  Node& node = any_node();
  switch (dice_.below(100)) {
    case 0:
    case 1:
      return network_.cut(any_replica().index());
    case 2:
    case 3:
    case 4:
      return player_leaves();
    case 5:
      return player_is_killed();
    case 6:
      if (dice_.percent(30)) flush_all();
      return;
    case 7:
      return save(any_replica());
    case 8:
      return crash(node);
    case 9:
      return change_role(any_replica());
    case 10:
    case 11:
    case 12:
      return fill_or_empty_disk();
    case 13:
      if (node.up()) listeners_.push_back(std::make_unique<Listener>(++numbers_, node));
      return;
    case 14:
    case 15:
      if (players_.size() < 20) add_player(dice_.percent(80) ? master() : any_replica());
      return;
    case 16:
    case 17:
    case 18:
    case 19:
    case 20:
      return stop_script(node);
    default:
      return;
  }
}

void World::add_player(Node& node) {
  if (!node.up()) return;
  const int database = dice_.percent(60) ? 0 : static_cast<int>(dice_.below(kDatabases));
  players_.push_back(std::make_unique<Player>(++numbers_, node, database, ledger_));
  steps_.note(players_.back()->name() + " connects to " + node.name());
}

void World::player_leaves() {
  Player& player = *dice_.pick(players_);
  if (player.closed()) return;
  steps_.note(player.name() + " leaves");
  player.leave();
  add_player(player.node());
}

void World::player_is_killed() {
  Player& player = *dice_.pick(players_);
  if (player.closed()) return;
  player.read();
  const std::string reply =
      player.node().run({"CLIENT", "KILL", "ID", std::to_string(player.client_id())});
  steps_.note(player.name() + " is to be killed: " + shown(reply));
  player.read();
  add_player(player.node());
}

void World::stop_script(Node& node) {
  if (!node.up() || (node.state() & server::kStateBusy) == 0) return;
  for (const char* kind : {"SCRIPT", "FUNCTION"}) {
    const std::string reply = node.run({kind, "KILL"});
    steps_.note(std::string(kind) + " KILL at " + node.name() + ": " + shown(reply));
    if (reply != kOk) continue;
    for (const auto& player : players_) {
      if (&player->node() == &node) player->conversation().saw_kill();
    }
    return;
  }
}

void World::read_all(Node& node) {
  for (const auto& player : players_) {
    if (&player->node() == &node) player->read();
  }
}

void World::flush_all() {
  if (!master().up()) return;
  read_all(master());
  const std::string reply = master().run({"FLUSHALL"});
  steps_.note("FLUSHALL: " + shown(reply));
  if (reply != kOk) return;
  flushed_in_turn_ = true;
  for (const auto& player : players_) {
    if (&player->node() == &master()) player->conversation().flushed();
  }
  ledger_.flushed();
}

void World::save(Node& node) {
  if (node.up()) steps_.note("SAVE at " + node.name() + ": " + shown(node.run({"SAVE"})));
}

void World::crash(Node& node) {
  const bool is_master = &node == &master();
  if (!node.up()) return;
  // What the master would lose without a file, nobody can tell.
  if (is_master && (plan_.disk != Disk::kAlways || flushed_in_turn_)) return;
  steps_.note(node.name() + " crashes");
  for (const auto& player : players_) {
    if (&player->node() == &node) player->crashed();
  }
  if (is_master) ledger_.crashed();
  node.crash();
  start(node);
  add_player(node);
}

void World::change_role(Node& node) {
  if (!node.up()) return;
  const int wanted = plan_.masters[static_cast<size_t>(node.index())];
  const bool leads = node.master() < 0;
  Words request = {"REPLICAOF", "NO", "ONE"};
  if (leads)
    request = {"REPLICAOF", "node" + std::to_string(wanted), std::to_string(Node::port(wanted))};
  steps_.note(node.name() + ": " + request[0] + " " + request[1] + ": " + shown(node.run(request)));
}

void World::fill_or_empty_disk() {
  if (plan_.disk != Disk::kMayFail) return;
  disk_full_ = !disk_full_ && dice_.percent(60);
  steps_.note(disk_full_ ? "the disk is full" : "the disk has room");
}

}  // namespace latchkey::simulation
