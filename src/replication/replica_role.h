// The master that this server follows, if there is one: the replica's side of replication.
//
// Says which server that is, keeps a link to it, brings the dataset over where going on is not
// possible, and tells Replication what becomes of the stream's name and numbers.
//
//     none <-> connect -> connecting -> handshake [-> sync] -> connected
//                 ^______________________________________________|  whenever the link breaks
//
// The dataset comes by the link itself, or by an RDB channel beside it: then what the link brings
// meanwhile is kept, up to replica-full-sync-buffer-limit, and applied piece by piece afterwards
// (StreamReplay). It is put in place by a task (server/tasks.h), which waits until no other is in
// the middle of a command. If the link breaks while the dataset is loaded from a file, the stream
// is asked for anew from there on.
//
// A link that broke is begun anew at once, and when that fails once a second. As long as the
// dataset is what the stream had come to, the stream is asked for from there on; otherwise the
// dataset comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replication/dataset_installer.h"
#include "replication/dataset_receiver.h"
#include "replication/local_expiry.h"
#include "replication/master_connection.h"

namespace latchkey::server {
class Client;
class Server;
}  // namespace latchkey::server

namespace latchkey::replication {

class MasterSession;
class Replication;
class StreamReplay;

class ReplicaRole final : private MasterConnection::Owner {
 public:
  // Follows from the start whom the directive `replicaof` names.
  ReplicaRole(server::Server& server, Replication& replication);
  ~ReplicaRole() override;
  ReplicaRole(const ReplicaRole&) = delete;
  ReplicaRole& operator=(const ReplicaRole&) = delete;

  enum class State : uint8_t { kNone, kConnect, kConnecting, kHandshake, kSync, kConnected };
  State state() const;
  // Whether this server is a replica.
  bool active() const { return !host().empty(); }
  bool connected() const { return session_ != nullptr; }
  const std::string& host() const;
  int port() const;

  // Begins to follow that server, instead of whom it may have followed.
  void replicate_from(const std::string& host, int port);
  // Becomes a master. REQUIRES: active().
  void promote();
  // The dataset that was loaded is what the stream was at its present place.
  void resume_at(int database);

  // For how long nothing has come from the master, in milliseconds; since ever when it never did.
  int64_t silent_ms() const;

  // Where the stream is, as far as it has been applied: whether that is known, and the database it
  // has selected.
  bool knows_place() const { return may_resume_ || connected(); }
  int stream_database() const;
  // Of the requests that come from the master; null while there is no link.
  MasterSession* session() const { return session_; }

  // To be called at every tick, but not while something is loaded.
  void tick();
  // To be called instead while something is loaded.
  void keep_alive();

  // The connection by which the dataset comes: the RDB channel, or else the link. Null without one.
  MasterConnection* carrier() const { return channel_ != nullptr ? channel_.get() : link_.get(); }
  // When the link broke, in Unix time; 0: there was none.
  int64_t down_since_ms() const { return down_since_ms_; }
  uint64_t bytes_received() const;
  size_t locally_expiring_keys() const { return local_expiry_.keys(); }
  // Bytes of the stream that are kept until they can be applied, and the most there were in the
  // last synchronization.
  size_t full_sync_buffer() const;
  size_t full_sync_buffer_peak() const { return buffer_peak_; }

  // For tests, which play the master: the connection that has not been handed on yet, and the RDB
  // channel; null when there is none.
  MasterConnection* link() { return link_.get(); }
  MasterConnection* channel() { return channel_.get(); }

 private:
  // MasterConnection::Owner
  void continues(const std::string& id) override;
  void rdb_channel_offered(const std::string& main_client_id) override;
  void stream_kept() override;
  void declined() override;
  MasterConnection::Reception dataset_announced(MasterConnection& which,
                                                const DatasetShape& shape) override;
  void dataset_received(std::unique_ptr<DatasetReceiver> receiver) override;
  void dataset_came() override;
  void failed(MasterConnection& which) override;

  Introduction introduction() const;
  void become_replica();
  void connect(const char* how);
  // The link, and the channel beside it.
  void drop_link();
  void retire(std::unique_ptr<MasterConnection> connection);
  // The link broke while the dataset that has come by the channel is being loaded.
  void lose_stream();
  // Has the client come to be that the stream is applied by. `has_kept`: the link has kept what
  // came of it beside the dataset.
  void attach(int database, bool has_kept);
  void session_closed(MasterSession& session);
  void end_session();
  void begin_replay(server::Client& client);
  void begin_dataset(const DatasetShape& shape, bool to_disk);
  // Has a task put the dataset in place of which the carrier has told.
  struct Installation;
  void begin_installation(std::shared_ptr<Installation> installation);
  DatasetInstaller::Result install(Installation& installation);
  // The dataset is there, or is not.
  void installed(const Installation& installation, const DatasetInstaller::Result& result);
  // What has come of the stream while a script was busy has been left where it was.
  void go_on_after_script();
  void every_second();
  bool timed_out(int64_t since_ms) const;

  server::Server& server_;
  Replication& replication_;
  DatasetInstaller installer_;
  LocalExpiry local_expiry_;
  std::unique_ptr<MasterConnection> link_;
  std::unique_ptr<MasterConnection> channel_;
  std::unique_ptr<StreamReplay> replay_;
  // Somebody may still be in them.
  std::vector<std::unique_ptr<MasterConnection>> retired_;
  std::vector<std::unique_ptr<StreamReplay>> retired_replays_;
  MasterSession* session_ = nullptr;  // its client owns it
  bool may_resume_ = false;
  int stream_database_ = 0;                     // while there is no session
  bool leaving_ = false;                        // the session ends because it was told to
  std::shared_ptr<Installation> installation_;  // that goes on, or null
  bool buffer_full_ = false;
  size_t buffer_peak_ = 0;
  int64_t down_since_ms_ = 0;
  int64_t second_began_ms_ = 0;
  int64_t newline_sent_ms_ = 0;
  uint64_t received_by_former_ = 0;
};

// "connect", "connecting", "handshake", "sync", "connected".
std::string_view name_of(ReplicaRole::State state);

}  // namespace latchkey::replication
