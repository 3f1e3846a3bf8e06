// Several Sentinels, a master and its replicas on virtual time, joined by a network that a test, or
// a seed, delays, cuts and breaks. Each has an IP address of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sentinel/sentinel.h"

namespace latchkey::sentinel::testing {

class World;
class Wire;

// A server as far as a Sentinel sees it: it answers PING, INFO, SUBSCRIBE, PUBLISH and SLAVEOF.
struct FakeServer {
  std::string ip;
  std::string name;  // what a replica announces to its master; empty: its IP address
  int port = 6379;
  std::string run_id;
  bool up = true;       // else connections are refused
  bool frozen = false;  // it answers nothing
  std::string ping_reply = "+PONG";
  std::string garbage;    // sent in place of INFO, unless it is empty
  std::string master_ip;  // empty: it is a master
  int master_port = 0;
  int priority = 100;
  uint64_t offset = 0;
  std::vector<Wire*> subscribers;
  uint64_t infos = 0;  // requests of INFO so far
  // What it does with FAILOVER TO: it hands over, says an error, or waits for its replica.
  enum class HandsOver { kYes, kRefuses, kWaits } hands_over = HandsOver::kYes;
  bool has_refused = false;  // within the transaction
  bool pauses_writes = false;

  bool is_master() const { return master_ip.empty(); }
};

// One Sentinel with what is around it.
class Node final : public Host, private Network {
 public:
  Node(World& world, std::string the_ip, std::string id);

  Sentinel& sentinel() { return *sentinel_; }
  Master& master() { return *sentinel_->find_master("mymaster"); }
  // The types of the events so far, and whether one of a type was among them.
  const std::vector<std::pair<std::string, std::string>>& events() const { return events_; }
  bool has_event(std::string_view type) const;
  // Ends the process, and begins it again with what the file says.
  void stop();
  void restart();

  const std::string ip;
  bool up = true;
  bool file_is_writable = true;
  std::vector<std::vector<std::string>> scripts;

  // Host
  int64_t now_ms() override;
  uint64_t random_below(uint64_t bound) override;
  Network& network() override { return *this; }
  int port() override { return 26379; }
  std::string password() override { return {}; }
  std::string resolve(const std::string& name) override;
  void log(base::LogLevel, std::string_view) override {}
  void publish(std::string_view channel, std::string_view message) override;
  bool save() override;
  void run_script(std::vector<std::string> words) override { scripts.push_back(std::move(words)); }
  void crash() override { stop(); }

 private:
  std::unique_ptr<Channel> open(const Address& address, Channel::Listener& listener) override;
  void schedule_tick();

  World& world_;
  std::string id_;
  std::unique_ptr<Sentinel> sentinel_;
  std::vector<std::string> file_;
  std::vector<std::pair<std::string, std::string>> events_;
  uint64_t life_ = 0;  // ticks of an earlier one are dropped
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}
  ~World();

  // A master, so many replicas, and so many Sentinels that watch the master.
  void build(int replicas, int sentinels, unsigned quorum, int64_t down_after_ms = 5000);

  void run_for(int64_t ms);
  // False when it has not come true after that time.
  bool run_until(const std::function<bool()>& condition, int64_t most_ms);

  int64_t now_ms() const { return now_ms_; }
  base::Random& random() { return random_; }
  void at(int64_t time_ms, std::function<void()> action);

  // Cuts two groups from each other, by IP address, or joins them all again.
  void cut(const std::set<std::string>& group);
  void heal() { group_.clear(); }
  bool reaches(const std::string& from, const std::string& to) const {
    return group_.contains(from) == group_.contains(to);
  }
  // The names of hosts that can be resolved, with their IP addresses.
  std::map<std::string, std::string> names;
  // The chance that a message breaks its connection, and the longest delay of one.
  double breaks = 0;
  int64_t longest_delay_ms = 5;

  std::vector<std::unique_ptr<FakeServer>>& servers() { return servers_; }
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  FakeServer* server_at(std::string_view ip);
  Node* node_at(std::string_view ip);
  // The server that all Sentinels which run take for the master; null while they do not agree.
  FakeServer* agreed_master();
  // Whether everything is as it should be: one master, followed by all others that are up, and
  // known to all Sentinels by the same configuration.
  bool is_stable();

  // What everybody is and knows, for messages of tests that fail.
  std::string description();

  // Which Sentinels were elected, by epoch.
  std::map<uint64_t, std::set<std::string>> elected;

  // The replies of what is at that address.
  std::vector<Reply> answer(Wire& wire, const std::vector<std::string>& words);

 private:
  friend class Wire;
  std::vector<Reply> answer_as(FakeServer& server, Wire& wire,
                               const std::vector<std::string>& words);
  std::vector<Reply> answer_as(Node& node, const std::vector<std::string>& words);
  std::string info_of(const FakeServer& server);
  void replicate();
  void fail_over(FakeServer& master, const std::string& ip, int port);

  base::Random random_;
  int64_t now_ms_ = 1'700'000'000'000;
  std::multimap<int64_t, std::function<void()>> actions_;
  std::set<std::string> group_;
  std::vector<std::unique_ptr<FakeServer>> servers_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int64_t replicated_ms_ = 0;
};

}  // namespace latchkey::sentinel::testing
