#include "unit/sentinel/world.h"

#include <algorithm>

#include "base/text/text.h"
#include "sentinel/directives.h"
#include "sentinel/hello.h"
#include "sentinel/instance_report.h"
#include "server/config/config_parse.h"

namespace latchkey::sentinel::testing {

namespace {

Reply status(std::string text) {
  return {.type = Reply::Type::kStatus, .text = std::move(text), .elements = {}};
}
Reply bulk(std::string text) {
  return {.type = Reply::Type::kBulk, .text = std::move(text), .elements = {}};
}
Reply integer(int64_t value) {
  return {.type = Reply::Type::kInteger, .text = {}, .integer = value, .elements = {}};
}
Reply array(std::vector<Reply> elements) {
  return {.type = Reply::Type::kArray, .text = {}, .elements = std::move(elements)};
}

}  // namespace

// A connection. Messages arrive in their order; one that is lost makes all later ones wait for
// ever, as a cut does to TCP.
class Wire final : public Channel {
 public:
  // What both ends know, and outlives them while messages are on their way.
  struct State {
    Wire* wire = nullptr;  // null: closed by the Sentinel
    bool stuck = false;
    int64_t arrives_ms = 0;
    int64_t returns_ms = 0;
  };

  Wire(World& world, std::string from, Address to, Listener& listener)
      : from_ip(std::move(from)),
        address(std::move(to)),
        world_(world),
        listener_(listener),
        state_(std::make_shared<State>()) {
    state_->wire = this;
    const FakeServer* const server = world_.server_at(address.ip);
    const Node* const node = world_.node_at(address.ip);
    const bool refused = (server != nullptr && !server->up) || (node != nullptr && !node->up) ||
                         (server == nullptr && node == nullptr);
    if (!world_.reaches(from_ip, address.ip)) {
      state_->stuck = true;
    } else if (refused) {
      fail_soon();
    }
  }
  ~Wire() override {
    state_->wire = nullptr;
    if (FakeServer* const server = world_.server_at(address.ip))
      std::erase(server->subscribers, this);
  }

  void send(std::span<const std::string_view> words) override {
    const std::vector<std::string> copied(words.begin(), words.end());
    deliver(&State::arrives_ms, [this, copied] {
      for (const Reply& reply : world_.answer(*this, copied)) receive(reply);
    });
  }
  std::string local_ip() override { return from_ip; }

  // A reply, or a message, on its way back.
  void receive(const Reply& reply) {
    deliver(&State::returns_ms, [this, reply] { listener_.channel_received(*this, reply); });
  }
  void fail_soon() {
    world_.at(world_.now_ms() + 1, [state = state_] {
      if (state->wire != nullptr) state->wire->listener_.channel_failed(*state->wire);
    });
  }
  bool is_stuck() const { return state_->stuck; }
  void stick() { state_->stuck = true; }

  const std::string from_ip;
  const Address address;

 private:
  void deliver(int64_t State::*last, std::function<void()> action) {
    const auto longest = static_cast<uint64_t>(world_.longest_delay_ms);
    const int64_t delay = 1 + static_cast<int64_t>(world_.random().below(longest));
    State& state = *state_;
    state.*last = std::max(state.*last, world_.now_ms() + delay);
    world_.at(state.*last, [state = state_, action = std::move(action), &world = world_] {
      if (state->wire == nullptr || state->stuck) return;
      Wire& wire = *state->wire;
      if (!world.reaches(wire.from_ip, wire.address.ip)) {
        state->stuck = true;
        return;
      }
      if (world.random().unit() < world.breaks) return wire.fail_soon();
      action();
    });
  }

  World& world_;
  Listener& listener_;
  std::shared_ptr<State> state_;
};

// ---- Nodes

Node::Node(World& world, std::string the_ip, std::string id)
    : ip(std::move(the_ip)), world_(world), id_(std::move(id)) {
  sentinel_ = std::make_unique<Sentinel>(*this);
  sentinel_->set_id(id_);
  schedule_tick();
}

void Node::schedule_tick() {
  const auto delay = static_cast<int64_t>(sentinel_->next_tick_ms());
  world_.at(world_.now_ms() + delay, [this, life = life_] {
    if (life != life_) return;
    sentinel_->tick();
    if (life == life_) schedule_tick();
  });
}

bool Node::has_event(std::string_view type) const {
  return std::any_of(events_.begin(), events_.end(),
                     [&](const auto& event) { return event.first == type; });
}

void Node::stop() {
  up = false;
  ++life_;
  for (const auto& [name, master] : sentinel_->masters()) sentinel_->reset(*master, false);
}

void Node::restart() {
  up = true;
  ++life_;
  sentinel_ = std::make_unique<Sentinel>(*this);
  std::vector<server::DeferredDirective> directives;
  for (const std::string& line : file_) {
    auto words = *server::split_arguments(line);
    words.erase(words.begin());
    directives.push_back({std::move(words), 0, line});
  }
  if (const auto applied = apply_directives(directives, sentinel_.get()); !applied)
    throw std::runtime_error(applied.error().message);
  schedule_tick();
}

int64_t Node::now_ms() {
  return world_.now_ms();
}

uint64_t Node::random_below(uint64_t bound) {
  return world_.random().below(bound);
}

std::string Node::resolve(const std::string& name) {
  const auto found = world_.names.find(name);
  return found != world_.names.end() ? found->second : "";
}

void Node::publish(std::string_view channel, std::string_view message) {
  events_.emplace_back(channel, message);
  if (channel == "+elected-leader") world_.elected[master().failover_epoch].insert(ip);
}

bool Node::save() {
  if (!file_is_writable) return false;
  file_ = directive_lines(*sentinel_);
  return true;
}

std::unique_ptr<Channel> Node::open(const Address& address, Channel::Listener& listener) {
  return std::make_unique<Wire>(world_, ip, address, listener);
}

// ---- The world

World::~World() {
  // Before the servers, whose subscribers their connections are.
  nodes_.clear();
}

void World::build(int replicas, int sentinels, unsigned quorum, int64_t down_after_ms) {
  const auto id = [](char kind, int number) {
    std::string text(40, kind);
    text.back() = static_cast<char>('0' + number);
    return text;
  };
  for (int i = 0; i <= replicas; ++i) {
    auto server = std::make_unique<FakeServer>();
    server->ip = "10.0.0." + std::to_string(i + 1);
    server->run_id = id('a', i);
    if (i > 0) {
      server->master_ip = "10.0.0.1";
      server->master_port = server->port;
    }
    servers_.push_back(std::move(server));
  }
  for (int i = 0; i < sentinels; ++i) {
    auto node = std::make_unique<Node>(*this, "10.0.1." + std::to_string(i + 1), id('b', i));
    Sentinel& sentinel = node->sentinel();
    Master& master =
        sentinel.add_master("mymaster", sentinel.make_address("10.0.0.1", 6379), quorum);
    sentinel.set_down_after(master, down_after_ms);
    master.failover_timeout_ms = 20'000;
    node->save();
    nodes_.push_back(std::move(node));
  }
}

void World::at(int64_t time_ms, std::function<void()> action) {
  actions_.emplace(std::max(time_ms, now_ms_), std::move(action));
}

bool World::run_until(const std::function<bool()>& condition, int64_t most_ms) {
  const int64_t end = now_ms_ + most_ms;
  while (!actions_.empty() && actions_.begin()->first <= end) {
    if (condition()) return true;
    auto next = actions_.extract(actions_.begin());
    now_ms_ = std::max(now_ms_, next.key());
    replicate();
    next.mapped()();
  }
  now_ms_ = end;
  return condition();
}

void World::run_for(int64_t ms) {
  run_until([] { return false; }, ms);
}

void World::cut(const std::set<std::string>& group) {
  group_ = group;
}

// A second of a master is a hundred bytes of its stream, and replicas that reach it have it at
// once.
void World::replicate() {
  constexpr int64_t kPeriodMs = 1000;
  if (now_ms_ - replicated_ms_ < kPeriodMs) return;
  replicated_ms_ = now_ms_;
  for (const auto& server : servers_) {
    if (server->up && server->is_master()) server->offset += 100;
  }
  for (const auto& server : servers_) {
    if (server->is_master() || !server->up) continue;
    const FakeServer* const master = server_at(server->master_ip);
    if (master->up && !master->frozen && reaches(server->ip, master->ip))
      server->offset = master->offset;
  }
}

FakeServer* World::server_at(std::string_view ip) {
  for (const auto& server : servers_) {
    if (server->ip == ip) return server.get();
  }
  return nullptr;
}

Node* World::node_at(std::string_view ip) {
  for (const auto& node : nodes_) {
    if (node->ip == ip) return node.get();
  }
  return nullptr;
}

FakeServer* World::agreed_master() {
  std::set<std::string> ips;
  for (const auto& node : nodes_) {
    if (node->up) ips.insert(Sentinel::current_address(node->master()).ip);
  }
  return ips.size() == 1 ? server_at(*ips.begin()) : nullptr;
}

bool World::is_stable() {
  const FakeServer* const master = agreed_master();
  if (master == nullptr || !master->up || !master->is_master()) return false;
  std::set<uint64_t> epochs;
  for (const auto& node : nodes_) {
    if (!node->up) continue;
    epochs.insert(node->master().config_epoch);
    if (node->master().has(kFailover | kSdown | kOdown)) return false;
  }
  return epochs.size() == 1 &&
         std::all_of(servers_.begin(), servers_.end(), [&](const auto& server) {
           return !server->up || server.get() == master || server->master_ip == master->ip;
         });
}

std::string World::description() {
  std::string text;
  for (const auto& server : servers_) {
    text += server->ip + (server->up ? "" : " down") +
            (server->is_master() ? " master" : " of " + server->master_ip) + '\n';
  }
  for (const auto& node : nodes_) {
    const Master& master = node->master();
    text += node->ip + ": " + master.address.ip + ' ' + flag_names(master) + ' ' +
            std::string(failover_state_name(master.failover_state)) + " epoch " +
            std::to_string(master.config_epoch) + " of " +
            std::to_string(node->sentinel().current_epoch()) + ", started " +
            std::to_string(now_ms_ - master.failover_started_ms) + " ms ago;";
    for (const auto& [name, replica] : master.replicas)
      text += ' ' + name + ' ' + flag_names(*replica);
    for (const auto& [id, other] : master.sentinels)
      text += ' ' + other->address.ip + ' ' + flag_names(*other);
    text += '\n';
    constexpr size_t kShown = 6;
    const auto& events = node->events();
    for (size_t i = events.size() - std::min(events.size(), kShown); i < events.size(); ++i)
      text += "    " + events[i].first + ' ' + events[i].second + '\n';
  }
  return text;
}

// ---- Answers

std::vector<Reply> World::answer(Wire& wire, const std::vector<std::string>& words) {
  if (FakeServer* const server = server_at(wire.address.ip); server != nullptr) {
    if (!server->up) {
      wire.fail_soon();
      return {};
    }
    // What a frozen one is sent waits in its sockets.
    if (server->frozen) {
      wire.stick();
      return {};
    }
    return answer_as(*server, wire, words);
  }
  Node* const node = node_at(wire.address.ip);
  if (node == nullptr || !node->up) {
    wire.fail_soon();
    return {};
  }
  return answer_as(*node, words);
}

std::vector<Reply> World::answer_as(FakeServer& server, Wire& wire,
                                    const std::vector<std::string>& words) {
  const std::string name = base::lower_case(words[0]);
  // It would wait for the end of the pause, and all that is behind it on the connection.
  if (name == "publish" && server.pauses_writes) wire.stick();
  if (wire.is_stuck()) return {};
  if (name == "ping") {
    const bool error = server.ping_reply.starts_with('-');
    Reply reply = status(server.ping_reply.substr(1));
    if (error) reply.type = Reply::Type::kError;
    return {reply};
  }
  if (name == "info") {
    ++server.infos;
    return {bulk(server.garbage.empty() ? info_of(server) : server.garbage)};
  }
  if (name == "subscribe") {
    server.subscribers.push_back(&wire);
    return {array({bulk("subscribe"), bulk(words[1]), integer(1)})};
  }
  if (name == "publish") {
    for (Wire* const subscriber : server.subscribers)
      subscriber->receive(array({bulk("message"), bulk(words[1]), bulk(words[2])}));
    return {integer(static_cast<int64_t>(server.subscribers.size()))};
  }
  if (name == "slaveof") {
    const bool promoted = base::lower_case(words[1]) == "no";
    server.master_ip = promoted ? "" : words[1];
    server.master_port = promoted ? 0 : std::stoi(words[2]);
    return {status("QUEUED")};
  }
  if (name == "client" && words[1] == "PAUSE") server.pauses_writes = true;
  if (name == "client" && words[1] == "UNPAUSE") server.pauses_writes = false;
  if (name == "failover" && words[1] == "TO") fail_over(server, words[2], std::stoi(words[3]));
  if (name == "exec" && std::exchange(server.has_refused, false)) {
    Reply error = status("ERR FAILOVER target replica is not online.");
    error.type = Reply::Type::kError;
    return {array({status("OK"), error})};
  }
  return {name == "exec" ? array({status("OK")}) : status("OK")};
}

void World::fail_over(FakeServer& master, const std::string& ip, int port) {
  master.has_refused = master.hands_over == FakeServer::HandsOver::kRefuses;
  if (master.hands_over != FakeServer::HandsOver::kYes) return;
  FakeServer& replica = *server_at(ip);
  replica.master_ip.clear();
  replica.offset = master.offset;
  master.master_ip = ip;
  master.master_port = port;
}

std::vector<Reply> World::answer_as(Node& node, const std::vector<std::string>& words) {
  const std::string name = base::lower_case(words[0]);
  if (name == "ping") return {status("PONG")};
  if (name == "publish") {
    node.sentinel().discovery().process_hello(words[2]);
    return {integer(1)};
  }
  if (name != "sentinel") return {status("OK")};
  Sentinel& sentinel = node.sentinel();
  Master* const master = sentinel.find_master_at(words[2], std::stoi(words[3]));
  std::string leader = "*";
  uint64_t epoch = 0;
  if (master != nullptr && words[5] != "*") {
    sentinel.election().vote(*master, std::stoull(words[4]), words[5]);
    if (!master->leader.empty()) leader = master->leader;
    epoch = master->leader_epoch;
  }
  const bool down = master != nullptr && master->has(kSdown) && !sentinel.in_tilt();
  return {array({integer(down ? 1 : 0), bulk(leader), integer(static_cast<int64_t>(epoch))})};
}

std::string World::info_of(const FakeServer& server) {
  std::string text = "# Server\r\nrun_id:" + server.run_id + "\r\n# Replication\r\n";
  if (server.is_master()) {
    text += "role:master\r\nmaster_failover_state:no-failover\r\n";
    int number = 0;
    for (const auto& replica : servers_) {
      if (!replica->up || replica->master_ip != server.ip || !reaches(replica->ip, server.ip))
        continue;
      const std::string& host = replica->name.empty() ? replica->ip : replica->name;
      text += "slave" + std::to_string(number++) + ":ip=" + host + ",port=6379,state=online\r\n";
    }
    return text;
  }
  const FakeServer* const master = server_at(server.master_ip);
  const bool up = master->up && !master->frozen && reaches(server.ip, master->ip);
  text += "role:slave\r\nmaster_host:" + server.master_ip +
          "\r\nmaster_port:" + std::to_string(server.master_port) +
          "\r\nmaster_link_status:" + (up ? "up" : "down") + "\r\n";
  if (!up) text += "master_link_down_since_seconds:1\r\n";
  return text + "slave_repl_offset:" + std::to_string(server.offset) +
         "\r\nslave_priority:" + std::to_string(server.priority) + "\r\n";
}

}  // namespace latchkey::sentinel::testing
