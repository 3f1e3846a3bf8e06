// Scenes with locks: steps of several clients against a server with all commands, on virtual time.
//
//     Scene scene("anna SET lock a NX PX 1000; wait 1500; bob SET lock b NX; anna DEL lock");
//     CHECK(scene.findings() == "late-release");
//
// A step is a client's name and a request, or `wait <milliseconds>` (keys whose time has come
// expire), or `<name> leaves`, whose connection is then closed. Scripts are named:
//
//     @compare-delete <key> <value>    @setnx-expire <key> <value> <seconds>
//     @delete <key>                    @setnx-expire-anyway <key> <value> <seconds>
//     @compare-prolong <key> <value> <milliseconds>
//     @exists-set <key> <value> <milliseconds>
//     @enter <key> <field> <milliseconds>    @leave <key> <field> <milliseconds>   a lock that
//     counts
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "all_commands.h"
#include "locks/lock_watch.h"
#include "script/engine.h"
#include "testing/checkpoints.h"
#include "testing/clock_control.h"
#include "testing/faults.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class Scene : public ServerFixture {
 public:
  explicit Scene(std::string_view steps = {}, std::string_view settings = {})
      : ServerFixture({}, settings) {
    add_all_commands(server);
    server.add_layer(std::make_shared<script::Engine>(server));
    server.add_layer(std::make_shared<testing::ClockControl>(server));
    server.add_layer(std::make_shared<testing::Checkpoints>(server));
    const auto faults = std::make_shared<testing::Faults>(server);
    server.add_layer(faults);
    server.set_fault_injector(faults.get());
    server.add_layer(std::make_shared<locks::LockWatch>(server));
    clock.advance_ms(kStart);
    server.refresh_clock();
    play(steps);
  }

  void play(std::string_view steps) {
    for (size_t start = 0; start < steps.size();) {
      const size_t end = std::min(steps.find("; ", start), steps.size());
      step(steps.substr(start, end - start));
      start = end + 2;
    }
  }
  // Replies as protocol text.
  std::string run(const std::string& name, std::string_view request) {
    return client(name).run_words(words_of(request));
  }
  TestClient& client(const std::string& name) {
    std::unique_ptr<TestClient>& client = clients_[name];
    if (client == nullptr) {
      client = std::make_unique<TestClient>(*this);
      // "bob.2" is a second connection of "bob".
      (*client)->name = name.substr(0, name.find('.'));
    }
    return *client;
  }
  locks::LockModel& model() { return server.layer<locks::LockWatch>().model(); }
  // The names of what was found, in order.
  std::string findings() {
    std::string text;
    for (const locks::Finding& finding : model().findings())
      text += (text.empty() ? "" : ", ") + std::string(locks::description_of(finding.kind).name);
    return text;
  }
  // "taken anna, refused bob, expired".
  std::string log() {
    std::string text;
    for (const locks::Event& event : model().log()) {
      if (!text.empty()) text += ", ";
      text += locks::name_of(event.kind);
      if (event.client != nullptr) text += " " + event.client->shown();
      if (event.count > 1) text += " x" + std::to_string(event.count);
    }
    return text;
  }

 private:
  // Then it is 12:00:00 on 2023-11-26, 1701000000 in seconds.
  static constexpr int64_t kStart = 1'000'000'000;

  void step(std::string_view text) {
    const size_t space = text.find(' ');
    const std::string name(text.substr(0, space));
    const std::string_view rest = text.substr(space + 1);
    if (name == "wait") {
      advance_ms(std::stoll(std::string(rest)));
      tick();
    } else if (rest == "leaves") {
      (*client(name)).close();
      clients_.erase(name);
    } else {
      run(name, rest);
    }
  }

  std::vector<std::string_view> words_of(std::string_view request) {
    std::vector<std::string_view> words;
    for (size_t start = 0; start <= request.size();) {
      const size_t end = std::min(request.find(' ', start), request.size());
      words.push_back(request.substr(start, end - start));
      start = end + 1;
    }
    static const std::map<std::string_view, std::string_view> kScripts = {
        {"@compare-delete",
         "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
         "return 0"},
        {"@compare-prolong",
         "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], "
         "ARGV[2]) end return 0"},
        // As Redisson does it.
        {"@enter",
         "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 "
         "then redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) "
         "return nil end return redis.call('pttl', KEYS[1])"},
        {"@leave",
         "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
         "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then "
         "redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end "
         "redis.call('del', KEYS[1]) return 1"},
        {"@exists-set",
         "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
         "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1"},
        {"@delete", "return redis.call('DEL', KEYS[1])"},
        {"@setnx-expire",
         "local won = redis.call('SETNX', KEYS[1], ARGV[1]) if won == 1 then "
         "redis.call('EXPIRE', KEYS[1], ARGV[2]) end return won"},
        {"@setnx-expire-anyway",
         "local won = redis.call('SETNX', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], "
         "ARGV[2]) return won"}};
    const auto script = kScripts.find(words[0]);
    if (script == kScripts.end()) return words;
    std::vector<std::string_view> eval = {"EVAL", script->second, "1"};
    eval.insert(eval.end(), words.begin() + 1, words.end());
    return eval;
  }

  std::map<std::string, std::unique_ptr<TestClient>> clients_;
};

}  // namespace latchkey::tests
