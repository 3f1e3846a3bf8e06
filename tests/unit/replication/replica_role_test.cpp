// A server that follows a master, which the test plays: it reads what the replica says and writes
// what a master would.
#include "replication/replica_role.h"

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "commands/groups.h"
#include "persist/byte_stream.h"
#include "persist/persistence.h"
#include "persist/rdb_file.h"
#include "persist/rows.h"
#include "replication/master_session.h"
#include "replication/rows.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/tasks.h"
#include "unit/catch.h"
#include "unit/faulty_disk.h"
#include "unit/replication/replication_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

namespace {

namespace fs = std::filesystem;
using replication::ReplicaRole;

const std::string kId(40, 'a');
const std::string kOtherId(40, 'b');
const std::string kMark(40, 'm');

struct Server : TemporaryDirectory, ReplicationFixture {
  explicit Server(std::string_view settings = {}, base::FileSystem& files = base::disk())
      : ReplicationFixture({commands::string_rows(),      commands::string_range_rows(),
                            commands::counter_rows(),     commands::key_rows(),
                            commands::expire_rows(),      commands::database_rows(),
                            commands::client_rows(),      commands::info_rows(),
                            commands::transaction_rows(), commands::list_rows(),
                            commands::list_wait_rows(),   commands::stream_rows(),
                            commands::stream_read_rows(), commands::connection_rows(),
                            commands::config_rows(),      commands::server_rows(),
                            script::script_rows(),        persist::snapshot_rows(),
                            replication::sync_rows(),     replication::role_rows()},
                           setting() + std::string(settings), files),
        log_file(path() / "log"),
        persistence(std::make_shared<persist::Persistence>(server, persist::ChildProcessParts{})) {
    log.set_level(base::LogLevel::kNotice);
    log.set_file(log_file);
    server.add_layer(persistence);
    server.add_layer(std::make_shared<script::Engine>(server));
  }

  ReplicaRole& replica_role() { return replication->replica_role(); }
  bool logged(std::string_view text) const {
    return base::read_file(log_file).value_or("").find(text) != std::string::npos;
  }
  std::string dataset(const persist::WriteOptions& options = {}) {
    std::string bytes;
    persist::StringSink sink(bytes);
    REQUIRE(persist::write_dataset(sink, server, options));
    return bytes;
  }

  std::string log_file;
  std::shared_ptr<persist::Persistence> persistence;
};

std::string text_of(resp::OutputBuffer& out) {
  struct Piece {
    char* data;
    size_t size;
  };
  std::string text;
  while (!out.empty()) {
    Piece pieces[16];
    const size_t count = out.gather(pieces, std::size(pieces));
    size_t taken = 0;
    for (const Piece& piece : std::span(pieces, count)) {
      text.append(piece.data, piece.size);
      taken += piece.size;
    }
    out.take(taken);
  }
  return text;
}

// The other end of the replica's link.
class Master {
 public:
  explicit Master(Server& replica) : replica_(replica) {}

  // Before the stream flows.
  std::string says(std::string bytes) {
    replication::MasterConnection& link = *replica_.replica_role().link();
    std::string rest = std::move(bytes);
    const size_t consumed = link.on_input(rest);
    left_ = rest.substr(consumed);
    // A dataset that is whole is put in place in the next turn.
    replica_.server.tasks().resume_ready();
    return heard();
  }
  std::string heard() {
    if (replica_.replica_role().session() != nullptr)
      return text_of(replica_.replica_role().session()->client().out());
    replication::MasterConnection* link = replica_.replica_role().link();
    return link != nullptr ? text_of(link->out()) : std::string();
  }
  // Comes to the point where PSYNC is answered, and gives what the replica has asked.
  std::string accept() {
    replica_.replica_role().link()->connected(nullptr);
    says("+PONG\r\n");
    says("+OK\r\n");
    return says("+OK\r\n");
  }
  // And what the replica says to it.
  std::string give_dataset(const std::string& dataset, int64_t offset = 100) {
    accept();
    says("+FULLRESYNC " + kId + " " + std::to_string(offset) + "\r\n");
    return says("$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  }
  // Bytes of the stream.
  void sends(std::string bytes) {
    server::Client& client = replica_.replica_role().session()->client();
    bytes = std::exchange(left_, {}) + bytes;
    const size_t consumed = client.on_input(bytes);
    left_ = bytes.substr(consumed);
  }
  void hangs_up() {
    left_.clear();
    replica_.replica_role().session()->client().close();
  }

 private:
  Server& replica_;
  std::string left_;
};

std::string empty_dataset() {
  Server other;
  return other.dataset();
}

// A replica that has the master's dataset, with nothing in it.
struct Follower : Server {
  explicit Follower(std::string_view settings = {}) : Server(settings), master(*this), user(*this) {
    user.run("REPLICAOF master 6379");
    master.give_dataset(empty_dataset());
  }
  Master master;
  TestClient user;
};

}  // namespace

TEST_CASE("REPLICAOF brings the master's dataset in the place of the server's own") {
  Server source;
  TestClient author(source);
  author.run("SET name theirs");
  author.run("SET late gone PX 1");
  source.advance_ms(10);

  Server replica;
  replica.advance_ms(10);
  Master master(replica);
  TestClient user(replica);
  user.run("SET name ours");
  user.run("SET other ours");
  CHECK(user.run("REPLICAOF master 6379") == kOk);
  CHECK(replica.info("role") == "slave");
  CHECK(replica.info("master_link_status") == "down");
  CHECK(user.run("GET name") == bulk("ours"));
  CHECK(master.give_dataset(source.dataset()) == bulks({"REPLCONF", "ACK", "100"}));
  CHECK(replica.info("master_link_status") == "up");
  CHECK(replica.info("master_replid") == kId);
  CHECK(replica.info("master_repl_offset") == "100");
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("EXISTS other") == integer(0));
  // What has expired is there until the master says otherwise, and is not shown.
  CHECK(user.run("DBSIZE") == integer(2));
  CHECK(user.run("GET late") == kNull);
}

TEST_CASE("A dataset whose end is marked is loaded as well") {
  Server source;
  TestClient author(source);
  author.run("SET name theirs");
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 7\r\n");
  master.says("\n\n$EOF:" + kMark + "\r\n");
  CHECK(replica.info("master_sync_in_progress") == "1");
  master.says(source.dataset());
  master.says(kMark);
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(replica.info("master_repl_offset") == "7");
}

TEST_CASE("The dataset may come by a connection of its own") {
  Server source;
  TestClient author(source);
  author.run("SET name theirs");
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+RDBCHANNELSYNC 17\r\n");
  REQUIRE(replica.replica_role().channel() != nullptr);
  CHECK(user.run("ROLE").find("connecting") != std::string::npos);
  replication::MasterConnection& channel = *replica.replica_role().channel();
  const auto on_channel = [&](std::string bytes) {
    channel.on_input(bytes);
    replica.server.tasks().resume_ready();
  };
  channel.connected(nullptr);
  CHECK(user.run("ROLE").find("handshake") != std::string::npos);
  on_channel("+OK\r\n");
  on_channel("+FULLRESYNC " + kId + " 100\r\n");
  CHECK(user.run("ROLE").find("sync") != std::string::npos);
  const std::string dataset = source.dataset();
  on_channel("$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  CHECK(replica.replica_role().channel() == nullptr);
  CHECK(replica.info("master_link_status") == "up");
  CHECK(master.heard() == bulks({"REPLCONF", "ACK", "100"}));
  master.sends(bulks({"SET", "key", "value"}));
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("GET key") == bulk("value"));
}

TEST_CASE("What comes of the stream before the dataset is in place is kept") {
  Server source;
  TestClient author(source);
  author.run("SET name theirs");
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  const std::string dataset = source.dataset();
  std::string transfer = "$" + std::to_string(dataset.size()) + "\r\n" + dataset;
  replication::MasterConnection& link = *replica.replica_role().link();
  CHECK(link.on_input(transfer) == transfer.size());
  std::string stream = bulks({"SET", "key", "value"});
  CHECK(link.on_input(stream) == 0);
  CHECK(user.run("ROLE").find("sync") != std::string::npos);
  replica.server.tasks().resume_ready();
  master.sends(stream);
  CHECK(user.run("GET name") == bulk("theirs"));
  CHECK(user.run("GET key") == bulk("value"));
}

TEST_CASE("A link or an RDB channel that breaks is begun anew, both of them") {
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  for (const bool link_breaks : {false, true}) {
    REQUIRE(replica.replica_role().link() != nullptr);
    master.accept();
    master.says("+RDBCHANNELSYNC 17\r\n");
    REQUIRE(replica.replica_role().channel() != nullptr);
    replication::MasterConnection* broken =
        link_breaks ? replica.replica_role().link() : replica.replica_role().channel();
    broken->on_end_of_input();
    // The stream had begun, so that the break of the link is one of the transfer.
    CHECK((replica.replica_role().link() != nullptr) == link_breaks);
    CHECK(replica.replica_role().link() != broken);
    CHECK(replica.replica_role().channel() == nullptr);
    replica.advance_seconds(2);
  }
}

TEST_CASE("A full resynchronisation that breaks off is begun anew at once, but not in a hot loop") {
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  const auto break_off = [&] {
    master.accept();
    master.says("+FULLRESYNC " + kId + " 100\r\n");
    master.says("$1000\r\nREDIS");
    replica.replica_role().link()->on_end_of_input();
  };
  replica.advance_ms(19);
  break_off();
  CHECK(replica.replica_role().link() == nullptr);
  replica.advance_seconds(2);
  REQUIRE(replica.replica_role().link() != nullptr);
  CHECK_FALSE(replica.logged("Reconnecting to MASTER master:6379 after failure"));
  replica.advance_ms(20);
  break_off();
  CHECK(replica.replica_role().link() != nullptr);
  CHECK(replica.logged("Reconnecting to MASTER master:6379 after failure"));
}

namespace {

// What the master says on the RDB channel; what is left of the stream that came with it is lost.
std::string says_on_channel(Server& replica, std::string bytes) {
  replication::MasterConnection& channel = *replica.replica_role().channel();
  if (channel.stage() == replication::MasterConnection::Stage::kConnecting)
    channel.connected(nullptr);
  channel.on_input(bytes);
  std::string heard = replica.replica_role().channel() != nullptr ? text_of(channel.out()) : "";
  replica.server.tasks().resume_ready();
  return heard;
}

// A replica that fetches the dataset by Valkey's form of the RDB channel.
struct DualFollower : Server {
  DualFollower() : master(*this), user(*this) {
    Server source;
    TestClient author(source);
    author.run("SET name theirs");
    dataset = source.dataset();
    user.run("REPLICAOF master 6379");
    master.accept();
    master.says("+DUALCHANNELSYNC\r\n");
    REQUIRE(replica_role().channel() != nullptr);
    says_on_channel(*this, "+OK\r\n");
  }
  void bring_dataset() {
    says_on_channel(*this, "$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  }
  Master master;
  TestClient user;
  std::string dataset;
};

}  // namespace

TEST_CASE("The stream may be joined before the dataset is there, and after it was loaded") {
  const std::string stream = bulks({"SET", "key", "value"});
  for (const bool joins_first : {true, false}) {
    DualFollower f;
    CHECK(says_on_channel(f, "\n$ENDOFF:100 " + kId + " 0 5\r\n").empty());
    CHECK(f.master.heard() == bulks({"REPLCONF", "set-rdb-client-id", "5"}));
    CHECK(f.master.says("+OK\r\n") == bulks({"PSYNC", kId, "101"}));
    if (joins_first) f.master.says("+CONTINUE\r\n");
    f.bring_dataset();
    CHECK(f.user.run("GET name") == bulk("theirs"));
    if (!joins_first) {
      CHECK(f.info("master_link_status") == "down");
      CHECK(f.master.says("+CONTINUE\r\n") == bulks({"REPLCONF", "ACK", "100"}));
      CHECK(f.logged("Psync established after rdb load"));
    }
    CHECK(f.info("master_link_status") == "up");
    CHECK(f.replica_role().channel() == nullptr);
    f.master.sends(stream);
    CHECK(f.user.run("GET key") == bulk("value"));
    CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(stream.size()));
  }
}

TEST_CASE("A stream that is not joined is asked for again, from the end of the dataset on") {
  DualFollower f;
  says_on_channel(f, "$ENDOFF:100 " + kId + " 0 5\r\n");
  f.master.says("+OK\r\n");
  f.bring_dataset();
  f.replica_role().link()->on_end_of_input();
  CHECK(f.replica_role().link() == nullptr);
  f.advance_seconds(2);
  CHECK(f.master.accept() == bulks({"PSYNC", kId, "101"}));
  f.master.says("+CONTINUE\r\n");
  CHECK(f.info("master_link_status") == "up");
  CHECK(f.user.run("GET name") == bulk("theirs"));
}

TEST_CASE("A history that was renamed while the dataset came goes on by its new name") {
  for (const bool joins_first : {true, false}) {
    DualFollower f;
    says_on_channel(f, "$ENDOFF:100 " + kId + " 0 5\r\n");
    f.master.says("+OK\r\n");
    if (joins_first) f.master.says("+CONTINUE " + kOtherId + "\r\n");
    f.bring_dataset();
    if (!joins_first) f.master.says("+CONTINUE " + kOtherId + "\r\n");
    CHECK(f.info("master_replid") == kOtherId);
    CHECK(f.info("master_repl_offset") == "100");
  }
}

TEST_CASE("A place that nobody waits for, or a bad one, ends both connections") {
  DualFollower bad;
  says_on_channel(bad, "$ENDOFF:-7 " + kId + " 0 5\r\n");
  CHECK(bad.replica_role().link() == nullptr);
  CHECK(bad.replica_role().channel() == nullptr);
  DualFollower refused;
  says_on_channel(refused, "$ENDOFF:100 " + kId + " 0 5\r\n");
  refused.master.says("+OK\r\n");
  refused.master.says("+FULLRESYNC " + kId + " 200\r\n");
  CHECK(refused.replica_role().link() == nullptr);
  CHECK(refused.replica_role().channel() == nullptr);
}

TEST_CASE("The stream is applied, counted, and acknowledged each second") {
  Follower f;
  const std::string set = bulks({"SELECT", "2"}) + bulks({"SET", "key", "value"});
  f.master.sends(set);
  CHECK(f.user.run("GET key") == kNull);
  f.user.run("SELECT 2");
  CHECK(f.user.run("GET key") == bulk("value"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(set.size()));
  CHECK(f.master.heard().empty());
  f.advance_seconds(2);
  const std::string offset = std::to_string(f.server.replication_offset());
  CHECK(f.master.heard().find(bulks({"REPLCONF", "ACK", offset})) != std::string::npos);
}

TEST_CASE("GETACK is answered with what came before it") {
  Follower f;
  const std::string set = bulks({"SET", "key", "value"});
  f.master.sends(set + bulks({"REPLCONF", "GETACK", "*"}) + bulks({"SET", "key", "other"}));
  CHECK(f.master.heard() == bulks({"REPLCONF", "ACK", std::to_string(100 + set.size())}));
}

TEST_CASE("Requests of the stream come in pieces") {
  Follower f;
  const std::string set = bulks({"SET", "key", "value"});
  for (const char byte : set) f.master.sends(std::string(1, byte));
  CHECK(f.user.run("GET key") == bulk("value"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(set.size()));
}

TEST_CASE("Clients of a replica read and do not write") {
  Follower f;
  f.master.sends(bulks({"SET", "key", "value"}));
  CHECK(f.user.run("GET key") == bulk("value"));
  const std::string refused = error("READONLY You can't write against a read only replica.");
  CHECK(f.user.run("SET key other") == refused);
  f.user.run("MULTI");
  CHECK(f.user.run("SET key other") == refused);
  CHECK(f.user.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
  CHECK(f.user.run_words({"EVAL_RO", "return redis.call('get', KEYS[1])", "1", "key"}) ==
        bulk("value"));
  CHECK(f.user.run_words({"EVAL", "return redis.call('del', KEYS[1])", "1", "key"})
            .starts_with("-READONLY You can't write against a read only replica. script: "));
  f.user.run("CONFIG SET replica-read-only no");
  CHECK(f.user.run("SET key other") == kOk);
  CHECK(f.server.replication_offset() ==
        100 + static_cast<int64_t>(bulks({"SET", "key", "value"}).size()));
}

TEST_CASE("A replica hides what has expired, and leaves it to the master to remove it") {
  Follower f;
  const std::string deadline = std::to_string(f.now_ms() + 50);
  f.master.sends(bulks({"SET", "key", "value", "PXAT", deadline}));
  f.advance_ms(60);
  f.tick();
  CHECK(f.user.run("GET key") == kNull);
  CHECK(f.user.run("TTL key") == integer(-2));
  CHECK(f.user.run("DBSIZE") == integer(1));
  // The master has seen it alive.
  f.master.sends(bulks({"APPEND", "key", "more"}) + bulks({"PERSIST", "key"}));
  CHECK(f.user.run("GET key") == bulk("valuemore"));
  f.master.sends(bulks({"DEL", "key"}));
  CHECK(f.user.run("DBSIZE") == integer(0));
}

TEST_CASE("Without a link a replica serves what it has, unless it must not") {
  Follower f;
  f.master.sends(bulks({"SET", "key", "value"}));
  f.master.hangs_up();
  CHECK(f.user.run("GET key") == bulk("value"));
  f.user.run("CONFIG SET replica-serve-stale-data no");
  const std::string refused =
      error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
  CHECK(f.user.run("GET key") == refused);
  CHECK(f.user.run("PING") == refused);
  CHECK(f.user.run("MULTI") == kOk);
  CHECK(f.user.run("GET key") == refused);
  CHECK(f.user.run("EXEC") == error("EXECABORT Transaction discarded because of previous errors."));
  CHECK(f.info("role") == "slave");
}

TEST_CASE("INFO counts attempts to reach the master, and the time without it") {
  Server f;
  Master master(f);
  TestClient user(f);
  const auto counts = [&] {
    return f.info("master_current_sync_attempts") + " of " + f.info("master_total_sync_attempts");
  };
  user.run("REPLICAOF master 6379");
  f.advance_seconds(3);
  CHECK(f.info("total_disconnect_time_sec") == "0");
  master.give_dataset(empty_dataset());
  CHECK(f.info("total_disconnect_time_sec") == "0");
  CHECK(counts() == "1 of 1");
  master.hangs_up();
  CHECK(counts() == "1 of 2");
  f.advance_seconds(2);
  CHECK(f.info("total_disconnect_time_sec") == "2");
  master.accept();
  master.says("+CONTINUE\r\n");
  CHECK(counts() == "1 of 2");
  CHECK(f.info("total_disconnect_time_sec") == "2");

  // The time as a master counts when there is a link again.
  user.run("REPLICAOF NO ONE");
  f.advance_seconds(4);
  user.run("REPLICAOF other 6379");
  CHECK(counts() == "1 of 1");
  CHECK(f.info("total_disconnect_time_sec") == "2");
  f.replica_role().link()->on_disconnect();
  CHECK(f.replica_role().link() == nullptr);
  f.advance_seconds(1);
  f.tick();
  CHECK(counts() == "2 of 2");
  master.give_dataset(empty_dataset());
  CHECK(f.info("total_disconnect_time_sec") == "7");
}

TEST_CASE("A broken link is taken up where the stream was") {
  Follower f;
  const std::string set = bulks({"SELECT", "3"}) + bulks({"SET", "key", "value"});
  f.master.sends(set);
  const auto next = std::to_string(101 + set.size());
  f.master.hangs_up();
  CHECK(f.logged("Caching the disconnected master state."));
  CHECK(f.master.accept() == bulks({"PSYNC", kId, next}));
  f.master.says("+CONTINUE\r\n");
  CHECK(f.info("master_link_status") == "up");
  // The database that was selected is selected still.
  f.master.sends(bulks({"SET", "other", "value"}));
  f.user.run("SELECT 3");
  CHECK(f.user.run("GET other") == bulk("value"));
}

TEST_CASE("A transaction that the link broke in comes anew as a whole") {
  Follower f;
  const std::string before = bulks({"SET", "key", "1"});
  f.master.sends(before + bulks({"MULTI"}) + bulks({"INCR", "key"}));
  CHECK(f.user.run("GET key") == bulk("1"));
  f.master.hangs_up();
  CHECK(f.master.accept() == bulks({"PSYNC", kId, std::to_string(101 + before.size())}));
  f.master.says("+CONTINUE\r\n");
  const std::string unit = bulks({"MULTI"}) + bulks({"INCR", "key"}) + bulks({"EXEC"});
  f.master.sends(unit);
  CHECK(f.user.run("GET key") == bulk("2"));
  CHECK(f.server.replication_offset() == 100 + static_cast<int64_t>(before.size() + unit.size()));
}

TEST_CASE("What is no request ends the link, and nothing is gone on from") {
  Follower f;
  SECTION("words of the inline kind") {
    f.master.sends("SET key value\r\n");
    CHECK(f.logged("Receiving inline protocol from master"));
  }
  SECTION("broken lengths") {
    f.master.sends("*2\r\n$3\r\nGET\r\n$x\r\n");
  }
  CHECK(f.user.run("EXISTS key") == integer(0));
  CHECK(f.info("master_link_status") == "down");
  CHECK(f.master.accept() == bulks({"PSYNC", "?", "-1"}));
}

TEST_CASE("A request of the stream that fails is told in the log, and the stream goes on") {
  Follower f;
  f.master.sends(bulks({"SET", "key", "text"}) + bulks({"INCR", "key"}) +
                 bulks({"SET", "key", "other"}));
  CHECK(
      f.logged("== CRITICAL == This replica is sending an error to its master: 'value is not an "
               "integer or out of range' after processing the command 'incr'"));
  CHECK(f.user.run("GET key") == bulk("other"));
  CHECK(f.master.heard().empty());
}

TEST_CASE("A replica that is promoted goes on under another name, and covers the one before") {
  Follower f;
  f.master.sends(bulks({"SET", "key", "value"}));
  const int64_t offset = f.server.replication_offset();
  CHECK(f.user.run("REPLICAOF NO ONE") == kOk);
  CHECK(f.info("role") == "master");
  CHECK(f.info("master_replid") != kId);
  CHECK(f.info("master_replid2") == kId);
  CHECK(f.info("second_repl_offset") == std::to_string(offset + 1));
  CHECK(f.user.run("SET key mine") == kOk);
  f.tick();
  // One that followed the same master finds what it lacks.
  TestClient other(f);
  other.run("REPLCONF listening-port 1 capa psync2");
  const std::string reply = other.run("PSYNC " + kId + " " + std::to_string(offset + 1));
  CHECK(reply == "+CONTINUE " + f.info("master_replid") + "\r\n" + bulks({"SELECT", "0"}) +
                     bulks({"SET", "key", "mine"}));
  TestClient ahead(f);
  CHECK(ahead.run("PSYNC " + kId + " " + std::to_string(offset + 2)).starts_with("+CONTINUE") ==
        false);
}

TEST_CASE("A master that becomes a replica asks for what follows its own stream") {
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("SET key value");
  user.run("REPLICAOF master 6379");
  const std::string id = replica.info("master_replid");
  CHECK(master.accept() ==
        bulks({"PSYNC", id, std::to_string(replica.server.replication_offset() + 1)}));
  master.says("+CONTINUE " + kOtherId + "\r\n");
  CHECK(user.run("GET key") == bulk("value"));
  CHECK(replica.info("master_replid") == kOtherId);
  CHECK(replica.info("master_replid2") == id);
}

TEST_CASE("Replicas of a replica get the master's bytes as they came") {
  Follower f;
  TestClient below(f);
  below.run("REPLCONF listening-port 7777 capa psync2");
  CHECK(below.run("PSYNC " + kId + " 101") == "+CONTINUE " + kId + "\r\n");
  const std::string bytes = bulks({"SELECT", "5"}) + bulks({"SET", "key", "value"}) +
                            bulks({"PING"}) + bulks({"DEL", "nothing"});
  f.master.sends(bytes);
  f.tick();
  CHECK(below.take_output() == bytes);
  // And not what happens here besides.
  f.user.run("CONFIG SET replica-read-only no");
  f.user.run("SET local value");
  f.advance_seconds(20);
  CHECK(below.take_output().empty());
}

TEST_CASE("A replica asks its master for the clock when a replica of its own comes") {
  Follower f;
  const std::string question = bulks({"REPLCONF", "CLOCK", "?"});
  TestClient below(f);
  const auto join = [&](TestClient& replica) {
    f.master.heard();
    replica.run("REPLCONF listening-port 7777 capa psync2 capa clock");
    replica.run("PSYNC " + kId + " " + std::to_string(f.replication->offset() + 1));
    f.tick();
    return f.master.heard();
  };
  SECTION("if the master has told of one") {
    f.master.sends(bulks({"REPLCONF", "CLOCK", "frozen:1000000000000000:1"}));
    CHECK(join(below).find(question) != std::string::npos);
    // A replica of the replica below asks by way of it.
    CHECK(below.run("REPLCONF CLOCK ?").empty());
    f.tick();
    CHECK(f.master.heard().find(question) != std::string::npos);
    // The answer goes down to all of them as it came.
    below.take_output();
    const std::string answer = bulks({"REPLCONF", "CLOCK", "frozen:1000000030000000:1"});
    f.master.sends(answer);
    f.tick();
    CHECK(below.take_output() == answer);
  }
  SECTION("not if it may be one that knows nothing of it") {
    f.server.data_clock().freeze();
    CHECK(join(below).find(question) == std::string::npos);
  }
  SECTION("not if the clock is that of the machine") {
    f.master.sends(bulks({"REPLCONF", "CLOCK", "wall"}));
    CHECK(join(below).find(question) == std::string::npos);
  }
}

TEST_CASE("Replicas of a replica are let go when the history is another") {
  Follower f;
  TestClient below(f);
  below.run("PSYNC " + kId + " 101");
  CHECK(f.info("connected_slaves") == "1");
  SECTION("because the master is another") {
    f.master.hangs_up();
    f.master.accept();
    f.master.says("+CONTINUE " + kOtherId + "\r\n");
  }
  SECTION("because the dataset comes anew") {
    f.master.hangs_up();
    f.master.give_dataset(empty_dataset(), 500);
  }
  SECTION("because there is no master any more") {
    f.user.run("REPLICAOF NO ONE");
  }
  CHECK(f.info("connected_slaves") == "0");
}

TEST_CASE("A replica without a link takes on none") {
  Follower f;
  f.master.hangs_up();
  TestClient below(f);
  CHECK(below.run("PSYNC ? -1") ==
        error("NOMASTERLINK Can't SYNC while not connected with my master"));
}

TEST_CASE("Waiting clients are let go when the server becomes a replica") {
  Server replica;
  TestClient waiting(replica);
  CHECK(waiting.run("BLPOP list 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(waiting.take_output() ==
        error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
              "replica?)"));
  CHECK(waiting->has(server::kClientCloseAfterReply));
}

TEST_CASE("Waiting clients of Valkey follow the master who can") {
  Server replica("emulate \"valkey 9.1\"\n");
  const std::string unblocked = error(
      "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
      "replica?)");
  TestClient plain(replica);
  TestClient reader(replica);
  TestClient follower(replica);
  TestClient reading_follower(replica);
  reader->set(server::kClientReadsAnywhere);
  follower.run("CLIENT CAPA redirect");
  reading_follower.run("CLIENT CAPA redirect");
  reading_follower->set(server::kClientReadsAnywhere);
  for (TestClient* client : {&plain, &reader, &follower, &reading_follower})
    CHECK(client->run("BLPOP list 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(plain.take_output() == unblocked);
  CHECK(reader.take_output() == unblocked);
  CHECK(follower.take_output() == error("REDIRECT master:6379"));
  CHECK(reading_follower.take_output() == error("REDIRECT master:6379"));
  CHECK_FALSE(follower->has(server::kClientCloseAfterReply));
}

TEST_CASE("Clients of Valkey that wait for what a replica may read wait on") {
  Server replica("emulate \"valkey 9.1\"\n");
  TestClient plain(replica);
  TestClient reader(replica);
  TestClient follower(replica);
  reader->set(server::kClientReadsAnywhere);
  follower.run("CLIENT CAPA redirect");
  for (TestClient* client : {&plain, &reader, &follower})
    CHECK(client->run("XREAD BLOCK 0 STREAMS stream 0").empty());
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  CHECK(plain.take_output().starts_with("-UNBLOCKED"));
  CHECK(follower.take_output() == error("REDIRECT master:6379"));
  CHECK(reader.take_output().empty());
  CHECK(reader->has(server::kClientBlocked));
  user.run("REPLICAOF NO ONE");
  user.run("XADD stream 1-1 a b");
  CHECK(reader.take_output().find("1-1") != std::string::npos);
}

TEST_CASE("ROLE tells how far the link is") {
  Server replica;
  Master master(replica);
  TestClient user(replica);
  const auto role = [&](std::string_view state, int64_t offset) {
    return array({bulk("slave"), bulk("master"), integer(6379), bulk(state), integer(offset)});
  };
  user.run("REPLICAOF master 6379");
  CHECK(user.run("ROLE") == role("connecting", -1));
  master.accept();
  CHECK(user.run("ROLE") == role("handshake", -1));
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  CHECK(user.run("ROLE") == role("sync", -1));
  const std::string dataset = empty_dataset();
  master.says("$" + std::to_string(dataset.size()) + "\r\n" + dataset);
  CHECK(user.run("ROLE") == role("connected", 100));
  CHECK(user.run("WAIT 0 0").starts_with("-ERR WAIT cannot be used with replica instances."));
  CHECK(user.run("REPLICAOF master 6379") == status("OK Already connected to specified master"));
}

TEST_CASE("A master that is silent for too long is left, and tried again") {
  Follower f("repl-timeout 5\n");
  f.advance_seconds(5);
  CHECK(f.info("master_link_status") == "up");
  f.advance_seconds(2);
  CHECK(f.logged("MASTER timeout: no data nor PING received..."));
  CHECK(f.info("master_link_status") == "down");
  REQUIRE(f.replica_role().link() != nullptr);
  f.advance_seconds(7);
  CHECK(f.logged("Timeout connecting to the MASTER..."));
}

TEST_CASE("A dataset that cannot be read leaves the replica empty, and is asked for anew") {
  Follower f;
  f.master.sends(bulks({"SET", "key", "value"}));
  f.master.hangs_up();
  std::string damaged = empty_dataset();
  damaged[damaged.size() - 12] = static_cast<char>(0x7f);
  f.master.give_dataset(damaged);
  CHECK(f.info("master_link_status") == "down");
  CHECK(f.user.run("DBSIZE") == integer(0));
  f.advance_seconds(2);
  CHECK(f.master.accept() == bulks({"PSYNC", "?", "-1"}));
}

TEST_CASE("A master's dataset takes the place of the former one, or not, when the disk fails",
          "[durable-files]") {
  Server source;
  TestClient(source).run("SET name theirs");
  const std::string dataset = source.dataset();
  const std::string former = empty_dataset();
  const size_t count = fail_each_call([&](const Trial& trial) {
    TemporaryDirectory directory;
    directory.write("dump.rdb", former);
    FaultyDisk disk(directory.path());
    bool is_up = false;
    {
      Server replica(directory.setting(), disk);
      TestClient user(replica);
      user.run("SET name ours");
      Master master(replica);
      user.run("REPLICAOF master 6379");
      disk.fail(trial.fault);
      master.give_dataset(dataset);
      is_up = replica.info("master_link_status") == "up";
      CAPTURE(told(trial, disk), is_up);
      CHECK((is_up || disk.has_failed()));
      if (is_up) CHECK(user.run("GET name") == bulk("theirs"));
      if (!is_up) CHECK(replica.logged("MASTER <-> REPLICA"));
      if (trial.fault.kind == FaultKind::kOnce && !is_up) {
        replica.advance_seconds(2);
        master.give_dataset(dataset);
        CHECK(replica.info("master_link_status") == "up");
        CHECK(user.run("GET name") == bulk("theirs"));
        CHECK(files_with(directory.path(), "temp-").empty());
      }
      disk.cut_power();
    }
    disk.restore(trial.lost);
    CAPTURE(told(trial, disk), is_up);
    const std::string found = directory.read("dump.rdb");
    CHECK((found == dataset || (found == former && !is_up)));
    return disk.has_failed();
  });
  CHECK(count > 20);
}

TEST_CASE("A master that announces nonsense in the place of a dataset is left") {
  const std::string announced = GENERATE(as<std::string>(), "$-5\r\n", "$x\r\n", "$EOF:short\r\n",
                                         "+OK\r\n", "-ERR no\r\n", "*3\r\n");
  Server replica;
  Master master(replica);
  TestClient user(replica);
  user.run("REPLICAOF master 6379");
  master.accept();
  master.says("+FULLRESYNC " + kId + " 100\r\n");
  master.says(announced);
  CHECK(replica.replica_role().link() == nullptr);
  CHECK(replica.info("master_link_status") == "down");
  replica.advance_seconds(2);
  CHECK(replica.replica_role().link() != nullptr);
}

TEST_CASE("What a replica has saved tells its place, and it goes on from there when it is back") {
  Follower f;
  f.master.sends(bulks({"SELECT", "4"}) + bulks({"SET", "key", "value"}));
  CHECK(f.user.run("SAVE") == kOk);
  const std::string next = std::to_string(f.server.replication_offset() + 1);

  Server again("replicaof master 6379\n");
  fs::copy_file(f.path() / "dump.rdb", again.path() / "dump.rdb");
  CHECK(again.persistence->loading().load_at_start() == persist::Loading::Result::kDone);
  REQUIRE(again.persistence->loading().place_at_start());
  again.replication->resume_from(*again.persistence->loading().place_at_start());
  again.advance_seconds(2);
  Master master(again);
  CHECK(master.accept() == bulks({"PSYNC", kId, next}));
  master.says("+CONTINUE\r\n");
  master.sends(bulks({"APPEND", "key", "more"}));
  TestClient user(again);
  user.run("SELECT 4");
  CHECK(user.run("GET key") == bulk("valuemore"));
}

TEST_CASE("A dump file whose place in the stream cannot be counted on from tells none") {
  for (const std::string offset : {"9223372036854775807", "4611686018427387905"}) {
    for (const std::string role : {"", "replicaof master 6379\n"}) {
      Server again(role);
      persist::WriteOptions options;
      options.aux = {{"repl-stream-db", "0"}, {"repl-id", kOtherId}, {"repl-offset", offset}};
      again.write("dump.rdb", again.dataset(options));
      persist::Loading& loading = again.persistence->loading();
      CHECK(loading.load_at_start() == persist::Loading::Result::kDone);
      if (loading.place_at_start()) again.replication->resume_from(*loading.place_at_start());
      CHECK(again.server.replication_offset() == 0);
      CHECK(again.info("master_replid") != kOtherId);
      CHECK(again.info("master_replid2") != kOtherId);
    }
  }
}

TEST_CASE("Replicas of a master that is back go on, and hear of what has expired meanwhile") {
  Server before;
  TestClient user(before);
  TestClient follower(before);
  follower.run("PSYNC ? -1");
  user.run("SET key value PX 100");
  user.run("SET other value");
  before.tick();
  CHECK(user.run("SAVE") == kOk);
  const std::string id = before.info("master_replid");
  const std::string next = std::to_string(before.server.replication_offset() + 1);

  Server again;
  fs::copy_file(before.path() / "dump.rdb", again.path() / "dump.rdb");
  again.advance_ms(500);
  persist::Loading& loading = again.persistence->loading();
  CHECK(loading.load_at_start() == persist::Loading::Result::kDone);
  REQUIRE(loading.place_at_start());
  again.replication->resume_from(*loading.place_at_start(), loading.take_dropped_at_start());
  CHECK(again.info("role") == "master");
  CHECK(again.info("master_replid2") == id);
  TestClient back(again);
  back.run("REPLCONF capa psync2");
  CHECK(back.run("PSYNC " + id + " " + next) == "+CONTINUE " + again.info("master_replid") +
                                                    "\r\n" + bulks({"SELECT", "0"}) +
                                                    bulks({"DEL", "key"}));
}

TEST_CASE("The master's requests pass limits of memory and of what replicas may do") {
  Follower f("maxmemory 1\n");
  f.master.sends(bulks({"SET", "key", "value"}));
  CHECK(f.user.run("GET key") == bulk("value"));
}

}  // namespace latchkey::tests
