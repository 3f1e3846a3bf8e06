// A replica with a hostile master, which says anything at any time, on the link and on the RDB
// channel: answers of the handshake, announcements, datasets whole, cut and damaged, requests of
// the stream, silence, ends. Clients of the replica get one well-formed reply each meanwhile, and
// when the replica becomes a master nothing of all that is left.
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "commands/groups.h"
#include "input.h"
#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rows.h"
#include "replication/master_session.h"
#include "replication/replica_role.h"
#include "replication/rows.h"
#include "reply_check.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/replication/replication_fixture.h"
#include "unit/temporary_directory.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using replication::MasterConnection;
using replication::ReplicaRole;

constexpr std::string_view kMark = "0123456789012345678901234567890123456789";
constexpr std::string_view kId = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr std::string_view kOtherId = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

// "<id>", "<other-id>" and "<mark>" are those above, "<number>" is any, "<dataset>" the bytes of an
// RDB file and "<size>" how many, "<text>" any word.
constexpr std::string_view kAnswers[] = {
    "+PONG\r\n+OK\r\n+OK\r\n",
    "+PONG\r\n+OK\r\n+OK\r\n+RDBCHANNELSYNC 17\r\n",
    "+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC <id> 100\r\n$<size>\r\n<dataset>",
    "+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC <id> 100\r\n$EOF:<mark>\r\n<dataset><mark>",
    "+PONG\r\n+OK\r\n+OK\r\n+CONTINUE\r\n",
    "+OK\r\n+RDBCHANNELSYNC 17\r\n",
    "+PONG\r\n+OK\r\n+OK\r\n+DUALCHANNELSYNC\r\n",
    "+OK\r\n$ENDOFF:100 <id> 0 5\r\n",
    "+OK\r\n$ENDOFF:100 <id> 0 5\r\n$EOF:<mark>\r\n<dataset><mark>",
    "+OK\r\n+CONTINUE <id>\r\n",
    "+OK\r\n+FULLRESYNC <id> 100\r\n$<size>\r\n<dataset>",
    "+PONG\r\n",
    "+OK\r\n",
    "+OK\r\n+OK\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-ERR <text>\r\n",
    "-LOADING\r\n",
    "-NOMASTERLINK\r\n",
    "\n",
    "\r\n",
    "+FULLRESYNC <id> 100\r\n",
    "+FULLRESYNC <id> 100\r\n$<size>\r\n<dataset>",
    "+FULLRESYNC <id> <number>\r\n",
    "+FULLRESYNC <text> <number>\r\n",
    "+CONTINUE\r\n",
    "+CONTINUE <other-id>\r\n",
    "+CONTINUE <text>\r\n",
    "+RDBCHANNELSYNC 17\r\n",
    "+RDBCHANNELSYNC <text>\r\n",
    "+DUALCHANNELSYNC\r\n",
    "$ENDOFF:<number> <id> 1 7\r\n",
    "$ENDOFF:100 <id> <number> <number>\r\n",
    "$ENDOFF:<text>\r\n",
    "+<text>\r\n",
    "$<size>\r\n",
    "$<number>\r\n",
    "$EOF:<mark>\r\n",
    "$EOF:<text>\r\n",
    "$<size>\r\n<dataset>",
    "$EOF:<mark>\r\n<dataset><mark>",
    "<dataset>",
    "<mark>",
    "<dataset><mark>",
    "<damaged>",
    "<raw>",
};
constexpr std::string_view kStream[] = {
    "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n",
    "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
    "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
    "*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\nv\r\n",
    "*2\r\n$4\r\nINCR\r\n$1\r\nl\r\n",
    "*1\r\n$5\r\nMULTI\r\n",
    "*1\r\n$4\r\nEXEC\r\n",
    "*1\r\n$7\r\nDISCARD\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n",
    "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n5\r\n",
    "*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n",
    "*1\r\n$4\r\nSYNC\r\n",
    "*1\r\n$8\r\nFLUSHALL\r\n",
    "*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n",
    "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n",
    "*3\r\n$9\r\nREPLICAOF\r\n$2\r\nno\r\n$3\r\none\r\n",
    "*4\r\n$4\r\nEVAL\r\n$31\r\nreturn redis.call('incr','n',1)\r\n$1\r\n0\r\n$1\r\nx\r\n",
    "\n",
    "PING\r\n",
    "<raw>",
};
constexpr std::string_view kOfUsers[] = {
    "GET k",
    "SET k v",
    "BLPOP l 0.01",
    "ROLE",
    "INFO replication",
    "REPLICAOF master 6379",
    "REPLICAOF other 6380",
    "REPLICAOF NO ONE",
    "CLIENT LIST",
    "CLIENT KILL TYPE master",
    "CONFIG SET repl-rdb-channel yes",
    "CONFIG SET repl-rdb-channel no",
    "CONFIG SET repl-diskless-load swapdb",
    "CONFIG SET repl-diskless-load disabled",
    "CONFIG SET masterauth secret",
    "CONFIG SET masteruser somebody",
    "CONFIG SET replica-announce-ip here",
    "CONFIG SET replica-serve-stale-data no",
    "CONFIG SET repl-timeout 2",
    "CONFIG SET replica-full-sync-buffer-limit 100",
    "PSYNC ? -1",
    "FLUSHALL",
};

struct Replica : tests::TemporaryDirectory, tests::ReplicationFixture {
  Replica()
      : ReplicationFixture(
            {commands::string_rows(), commands::counter_rows(), commands::list_rows(),
             commands::list_wait_rows(), commands::database_rows(), commands::client_rows(),
             commands::info_rows(), commands::transaction_rows(), commands::pubsub_rows(),
             commands::connection_rows(), commands::config_rows(), script::script_rows(),
             script::function_rows(), replication::sync_rows(), replication::role_rows()},
            setting() + "save \"\"\nrepl-rdb-channel yes\n"),
        persistence(std::make_shared<persist::Persistence>(server, persist::ChildProcessParts{})) {
    server.add_layer(persistence);
    server.add_layer(std::make_shared<script::Engine>(server));
  }
  ReplicaRole& replica_role() { return replication->replica_role(); }

  std::shared_ptr<persist::Persistence> persistence;
};

// Some keys and a library.
std::string make_dataset() {
  Replica source;
  tests::TestClient author(source);
  author.run("SET k theirs");
  author.run("RPUSH l a b c");
  author.run("SET gone soon PX 1000");
  author.run_words({"FUNCTION", "LOAD",
                    "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
  std::string bytes;
  persist::StringSink sink(bytes);
  require(persist::write_dataset(sink, source.server, {}));
  return bytes;
}

class World {
 public:
  explicit World(Input& input) : input_(input) { new_user(); }

  void run() {
    constexpr int kMaxSteps = 200;
    for (int step = 0; step < kMaxSteps && !input_.empty(); ++step) take_step();
    finish();
  }

 private:
  void take_step() {
    const uint8_t choice = input_.byte();
    if (choice < 96) return speak(link());
    if (choice < 128) return speak(channel());
    if (choice < 176) return send_stream();
    if (choice < 208) return user_speaks();
    if (choice < 232) {
      replica_.advance_ms(input_.byte() * 20);
      return replica_.tick();
    }
    MasterConnection* which = (choice & 1) != 0 ? link() : channel();
    if (choice < 240 && replica_.replica_role().session() != nullptr)
      return replica_.replica_role().session()->client().on_end_of_input();
    if (which == nullptr || which->stage() == MasterConnection::Stage::kConnecting) return;
    (choice & 2) != 0 ? which->on_end_of_input() : which->on_disconnect();
  }

  MasterConnection* link() { return replica_.replica_role().link(); }
  MasterConnection* channel() { return replica_.replica_role().channel(); }

  void speak(MasterConnection* to) {
    if (to == nullptr) return;
    if (to->stage() == MasterConnection::Stage::kConnecting) return to->connected(nullptr);
    std::string& kept = to == link() ? kept_by_link_ : kept_by_channel_;
    kept += text(kAnswers[input_.byte() % std::size(kAnswers)]);
    const auto bytes = copy(kept);
    const size_t consumed = to->on_input({bytes.get(), kept.size()});
    require(consumed <= kept.size());
    kept.erase(0, consumed);
    // What has come behind a dataset is the stream's.
    if (replica_.replica_role().session() != nullptr) {
      if (&kept == &kept_by_link_) stream_ = std::exchange(kept_by_link_, {});
      flow();
    }
    if (link() == nullptr) kept_by_link_.clear();
    if (channel() == nullptr) kept_by_channel_.clear();
  }

  void send_stream() {
    stream_ += text(kStream[input_.byte() % std::size(kStream)]);
    flow();
  }
  void flow() {
    if (replica_.replica_role().session() == nullptr) return stream_.clear();
    const auto bytes = copy(stream_);
    const size_t consumed =
        replica_.replica_role().session()->client().on_input({bytes.get(), stream_.size()});
    require(consumed <= stream_.size());
    stream_.erase(0, consumed);
  }

  void user_speaks() {
    if (replica_.server.clients().find(user_id_) == nullptr) new_user();
    const std::string_view request = kOfUsers[input_.byte() % std::size(kOfUsers)];
    if ((*user_)->has(server::kClientBlocked)) return;
    if (request.starts_with("PSYNC")) {
      tests::TestClient follower(replica_);
      follower.run(request);
      return;
    }
    user_->take_output();
    const std::string output = user_->run(request);
    if (replica_.server.clients().find(user_id_) == nullptr ||
        (*user_)->has(server::kClientBlocked))
      return;
    require(fuzz::ReplyCheck(output).count() == 1);
  }
  void new_user() {
    user_ = std::make_unique<tests::TestClient>(replica_);
    user_id_ = (*user_)->id;
  }

  // Of its own size, so that whoever reads behind its end is found.
  static std::unique_ptr<char[]> copy(const std::string& bytes) {
    auto copied = std::make_unique<char[]>(bytes.size());
    bytes.copy(copied.get(), bytes.size());
    return copied;
  }

  std::string text(std::string_view shape) {
    std::string out;
    while (!shape.empty()) {
      if (shape[0] != '<') {
        out += shape[0];
        shape.remove_prefix(1);
        continue;
      }
      const size_t end = shape.find('>') + 1;
      out += value(shape.substr(0, end));
      shape.remove_prefix(end);
    }
    return out;
  }
  std::string value(std::string_view what) {
    static const std::string dataset = make_dataset();
    if (what == "<id>") return std::string(kId);
    if (what == "<other-id>") return std::string(kOtherId);
    if (what == "<mark>") return std::string(kMark);
    if (what == "<dataset>") return dataset;
    if (what == "<size>") return std::to_string(dataset.size());
    if (what == "<number>")
      return std::to_string(static_cast<int64_t>(input_.word()) >> (input_.byte() % 64));
    if (what == "<damaged>") {
      std::string damaged = dataset;
      damaged[input_.byte() % damaged.size()] = static_cast<char>(input_.byte());
      return damaged.substr(0, damaged.size() - input_.byte() % damaged.size());
    }
    if (what == "<raw>") {
      constexpr size_t kMaxBytes = 16;
      std::string raw;
      for (size_t left = input_.byte() % kMaxBytes; left > 0; --left)
        raw += static_cast<char>(input_.byte());
      return raw;
    }
    return input_.text();
  }

  void finish() {
    tests::TestClient last(replica_);
    require(last.run("REPLICAOF NO ONE") == tests::kOk);
    replica_.tick();
    require(link() == nullptr && channel() == nullptr);
    require(replica_.replica_role().session() == nullptr);
    require((replica_.server.state() & server::kStateLoading) == 0);
    last.run("CONFIG SET min-replicas-to-write 0");
    last.run("FLUSHALL");
    require(last.run("SET k v") == tests::kOk);
    require(last.run("GET k") == tests::bulk("v"));
  }

  Input& input_;
  Replica replica_;
  std::unique_ptr<tests::TestClient> user_;
  uint64_t user_id_ = 0;
  std::string kept_by_link_;
  std::string kept_by_channel_;
  std::string stream_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size > kLongestInput) return 0;
  Input input(data, size);
  World(input).run();
  return 0;
}
