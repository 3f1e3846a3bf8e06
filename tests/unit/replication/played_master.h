// A server that follows a master, which the test plays: it reads what the replica says and writes
// what a master would.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "commands/groups.h"
#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rows.h"
#include "replication/master_session.h"
#include "replication/replica_role.h"
#include "replication/rows.h"
#include "script/engine.h"
#include "script/rows.h"
#include "server/tasks.h"
#include "unit/catch.h"
#include "unit/replication/replication_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

inline const std::string kId(40, 'a');
inline const std::string kOtherId(40, 'b');
inline const std::string kMark(40, 'm');

struct ReplicaServer : TemporaryDirectory, ReplicationFixture {
  explicit ReplicaServer(std::string_view settings = {}, base::FileSystem& files = base::disk())
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

  replication::ReplicaRole& replica_role() { return replication->replica_role(); }
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

// The other end of the replica's link.
class PlayedMaster {
 public:
  explicit PlayedMaster(ReplicaServer& replica) : replica_(replica) {}

  // Before the stream flows.
  std::string says(std::string bytes) {
    replication::MasterConnection& link = *replica_.replica_role().link();
    std::string rest = std::move(bytes);
    const size_t consumed = link.on_input(rest);
    left_ = rest.substr(consumed);
    // A dataset that is whole is put in place in the next turn.
    replica_.server.tasks().resume_ready();
    return received();
  }
  std::string received() {
    if (replica_.replica_role().session() != nullptr)
      return replica_.replica_role().session()->client().out().take_all();
    replication::MasterConnection* link = replica_.replica_role().link();
    return link != nullptr ? link->out().take_all() : std::string();
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
  ReplicaServer& replica_;
  std::string left_;
};

inline std::string empty_dataset() {
  ReplicaServer other;
  return other.dataset();
}

// A replica that has the master's dataset, with nothing in it.
struct LinkedReplica : ReplicaServer {
  explicit LinkedReplica(std::string_view settings = {})
      : ReplicaServer(settings), master(*this), user(*this) {
    user.run("REPLICAOF master 6379");
    master.give_dataset(empty_dataset());
  }
  PlayedMaster master;
  TestClient user;
};

}  // namespace latchkey::tests
