// A master with hostile replicas: whatever they say, in whatever order, while its dataset changes,
// snapshots are made and fail, and clients come and go. Ordinary clients get one well-formed reply
// for each request, and in the end nothing is left.
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/groups.h"
#include "input.h"
#include "replication/rows.h"
#include "reply_check.h"
#include "unit/replication/replication_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

// "<id>", "<other-id>" and "<offset>" are near what the master has, "<number>" is any, "<client>"
// the id of a client that may be there, "<text>" any word.
constexpr std::string_view kOfReplicas[] = {
    "PSYNC ? -1",
    "PSYNC <id> <offset>",
    "PSYNC <other-id> <offset>",
    "PSYNC <id> <number>",
    "PSYNC <text> <number>",
    "PSYNC <id> <offset> FAILOVER",
    "PSYNC <id> <text>",
    "SYNC",
    "REPLCONF capa eof",
    "REPLCONF capa psync2",
    "REPLCONF capa eof capa psync2 capa rdb-channel-repl",
    "REPLCONF capa eof capa psync2 capa dual-channel",
    "REPLCONF capa <text>",
    "REPLCONF listening-port <number>",
    "REPLCONF ip-address <text>",
    "REPLCONF rdb-only <number>",
    "REPLCONF rdb-only 1 rdb-filter-only <text>",
    "REPLCONF rdb-filter-only functions",
    "REPLCONF capa eof rdb-only 1 rdb-channel 1 main-ch-client-id <client>",
    "REPLCONF rdb-channel <number>",
    "REPLCONF capa eof rdb-only 1 rdb-channel 1",
    "REPLCONF set-rdb-client-id <client>",
    "REPLCONF set-rdb-client-id <number>",
    "REPLCONF main-ch-client-id <client>",
    "REPLCONF ACK <offset>",
    "REPLCONF ACK <number>",
    "REPLCONF ACK <offset> FACK <offset>",
    "REPLCONF ACK <number> FACK <number>",
    "REPLCONF ACK <text>",
    "REPLCONF GETACK *",
    "REPLCONF <text> <text>",
    "REPLCONF <text>",
    "REPLCONF",
    "SET <text> <text>",
    "GET <text>",
    "MULTI",
    "EXEC",
    "DISCARD",
    "SUBSCRIBE <text>",
    "CLIENT REPLY OFF",
    "CLIENT REPLY ON",
    "HELLO 3",
    "RESET",
    "QUIT",
    "PING",
    "WAIT 1 1",
    "SELECT <number>",
};
constexpr std::string_view kOfUsers[] = {
    "SET <text> <text>",
    "SET <text> <text> PX 5",
    "APPEND <text> <text>",
    "INCR <text>",
    "SELECT 1",
    "SELECT 0",
    "FLUSHALL",
    "ROLE",
    "INFO replication",
    "CLIENT LIST",
    "CLIENT KILL TYPE replica",
    "CLIENT KILL ID <client>",
    "CLIENT PAUSE 10 WRITE",
    "CLIENT UNPAUSE",
    "WAIT 1 10",
    "WAIT 2 <number>",
    "FAILOVER TIMEOUT 10",
    "FAILOVER TO 10.0.0.1 7000 TIMEOUT 10",
    "FAILOVER ABORT",
    "DEBUG CHANGE-REPL-ID",
    "CONFIG SET repl-diskless-sync yes",
    "CONFIG SET repl-diskless-sync no",
    "CONFIG SET repl-diskless-sync-delay 0",
    "CONFIG SET repl-diskless-sync-delay 1",
    "CONFIG SET repl-rdb-channel yes",
    "CONFIG SET repl-rdb-channel no",
    "CONFIG SET repl-backlog-size 16384",
    "CONFIG SET repl-backlog-size 200",
    "CONFIG SET repl-backlog-ttl 1",
    "CONFIG SET min-replicas-to-write 1",
    "CONFIG SET min-replicas-to-write 0",
    "CONFIG SET repl-timeout 2",
    "CONFIG SET repl-ping-replica-period 1",
    "PUBLISH <text> <text>",
    "MULTI",
    "EXEC",
    "DISCARD",
};

// A client without a socket, which may be closed behind its back.
class End {
 public:
  explicit End(tests::ServerFixture& server) : server_(server), client_(server), id_(client_->id) {}
  bool is_there() const { return server_.server.clients().find(id_) != nullptr; }
  bool is_blocked() { return client_->has(server::kClientBlocked); }
  tests::TestClient& client() { return client_; }
  uint64_t id() const { return id_; }
  void close() {
    if (is_there()) client_->close();
  }

 private:
  tests::ServerFixture& server_;
  tests::TestClient client_;
  uint64_t id_;
};

class Master : public tests::ReplicationFixture {
 public:
  Master()
      : ReplicationFixture(
            {commands::string_rows(), commands::string_range_rows(), commands::counter_rows(),
             commands::database_rows(), commands::client_rows(), commands::info_rows(),
             commands::transaction_rows(), commands::pubsub_rows(), commands::connection_rows(),
             commands::config_rows(), commands::debug_rows(), replication::sync_rows(),
             replication::role_rows()},
            "save \"\"\nenable-debug-command yes\nrepl-backlog-size 16384\n") {}
};

class World {
 public:
  explicit World(Input& input) : input_(input) {
    for (auto& replica : replicas_) replica = std::make_unique<End>(master_);
    for (auto& user : users_) user = std::make_unique<End>(master_);
  }

  void run() {
    constexpr int kMaxSteps = 400;
    for (int step = 0; step < kMaxSteps && !input_.empty(); ++step) take_step();
    finish();
  }

 private:
  void take_step() {
    const uint8_t choice = input_.byte();
    if (choice < 96) return replica_speaks(replicas_[choice % replicas_.size()]);
    if (choice < 192) return user_speaks(users_[choice % users_.size()]);
    if (choice < 208) return child_works();
    if (choice < 224) return master_.tick();
    if (choice < 240) {
      master_.advance_ms(input_.byte() * 10);
      return master_.tick();
    }
    if (choice < 248) return replicas_[choice % replicas_.size()]->close();
    users_[choice % users_.size()]->close();
  }

  // Whoever has gone is followed by another.
  void revive(std::unique_ptr<End>& end) {
    if (!end->is_there()) end = std::make_unique<End>(master_);
  }

  void replica_speaks(std::unique_ptr<End>& end) {
    revive(end);
    const std::vector<std::string> words =
        request(kOfReplicas[input_.byte() % std::size(kOfReplicas)]);
    // As bytes: what a client that waits says is kept for later, here lost.
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      bytes.append("$" + std::to_string(word.size()) + "\r\n").append(word).append("\r\n");
    end->client().send(bytes);
    if (end->is_there()) end->client()->on_flushed();
  }

  void user_speaks(std::unique_ptr<End>& end) {
    revive(end);
    const std::vector<std::string> texts = request(kOfUsers[input_.byte() % std::size(kOfUsers)]);
    if (end->is_blocked()) return;
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    // What a wait has ended with before.
    if (end->is_there()) check(end->client().take_output(), 1);
    const std::string output = end->client().run_words(words);
    if (!end->is_there() || end->is_blocked()) return;
    const auto replies = fuzz::ReplyCheck(output).count();
    require(replies == 1);
  }
  static void check(std::string_view output, size_t most) {
    const auto replies = fuzz::ReplyCheck(output).count();
    require(replies.has_value() && *replies <= most);
  }

  void child_works() {
    tests::FakeSnapshots& snapshots = *master_.snapshots;
    const uint8_t choice = input_.byte();
    snapshots.fail_to_begin = choice == 255;
    if (!snapshots.is_busy()) return;
    if (choice < 128) return snapshots.write(std::string(choice, 'D'));
    if (choice < 160) {
      snapshots.end_writing();
      return;
    }
    snapshots.end(/*ok=*/choice < 224);
  }

  std::vector<std::string> request(std::string_view shape) {
    std::vector<std::string> words;
    while (!shape.empty()) {
      const std::string_view part = shape.substr(0, shape.find(' '));
      shape.remove_prefix(std::min(part.size() + 1, shape.size()));
      words.push_back(word(part));
    }
    return words;
  }
  std::string word(std::string_view part) {
    const server::ReplicationHistory& history = master_.server.history();
    if (part == "<id>") return history.id();
    if (part == "<other-id>") return history.second_id();
    if (part == "<offset>") return near_offset();
    if (part == "<number>")
      return std::to_string(static_cast<int64_t>(input_.word()) >> (input_.byte() % 64));
    if (part == "<client>") {
      const uint8_t choice = input_.byte();
      return std::to_string(choice < 192 ? replicas_[choice % replicas_.size()]->id()
                                         : users_[choice % users_.size()]->id());
    }
    if (part == "<text>") return input_.text();
    return std::string(part);
  }
  std::string near_offset() {
    constexpr int kSpan = 128;
    const int64_t offset = master_.server.replication_offset();
    return std::to_string(offset + 1 + input_.byte() - kSpan);
  }

  void finish() {
    for (const auto& replica : replicas_) replica->close();
    for (const auto& user : users_) user->close();
    if (master_.snapshots->is_busy()) master_.snapshots->end(false);
    master_.tick();
    require(master_.replication->replicas().empty());
    require(master_.server.clients().size() == 0);
    require(master_.server.clients().blocked() == 0);
  }

  Input& input_;
  Master master_;
  std::array<std::unique_ptr<End>, 4> replicas_;
  std::array<std::unique_ptr<End>, 2> users_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  Input input(data, size);
  World(input).run();
  return 0;
}
