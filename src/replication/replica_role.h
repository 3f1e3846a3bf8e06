// The replica's side of replication: the master that this server follows, if there is one.
//
// Stores the master's address, keeps a link to it, fetches the dataset when a partial
// resynchronization is not possible, and updates Replication's id and offset.
//
//     none <-> connect -> connecting -> handshake [-> sync] -> connected
//                 ^______________________________________________|  whenever the link breaks
//
// The dataset comes by the link, or by an RDB channel beside it: then the stream that the link
// receives meanwhile is kept, up to replica-full-sync-buffer-limit, and applied piece by piece
// afterwards (StreamReplay). In Valkey's form of the channel the link joins the stream only when
// the channel has told where, which may be after the dataset was loaded. A task (server/tasks.h)
// installs the dataset, once no other task is in the middle of a command. If the link breaks while
// the dataset is loaded from a file, the stream is requested again from there on.
//
// A broken link is opened again at once, and if that fails once a second. As long as the dataset
// matches an offset of the stream, the stream is requested from there on; otherwise a full
// resynchronization follows.
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
  // Follows the master that the directive `replicaof` names, from the start.
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

  // Becomes a replica of that server, and leaves its present master.
  void replicate_from(const std::string& host, int port);
  // Ends a full resynchronisation: neither what has come of the dataset nor what is being loaded
  // beside the present one is put in its place. It begins anew at a later tick.
  void give_up_dataset();
  // Becomes a master. REQUIRES: active().
  void promote();
  // Ends the waits of clients that a replica does not serve. replicate_from() calls it, but where
  // Valkey is emulated and a failover is in progress: then it is to be called when that has ended.
  void end_waits();
  // The dataset was loaded from disk and matches the current offset; `database` is selected there.
  void resume_at(int database);

  // Milliseconds since the master last sent something; since the epoch if it never did.
  int64_t silent_ms() const;

  // The position in the stream up to which it was applied: whether it is known, and the selected
  // database.
  bool knows_place() const { return may_resume_ || connected(); }
  int stream_database() const;
  // Whether a dataset is being put in place of the former one.
  bool installs_dataset() const { return installation_ != nullptr; }
  // The session of the master's client; null while there is no link.
  MasterSession* session() const { return session_; }

  // To be called at every tick, except during loading.
  void tick();
  // To be called instead of tick() during loading.
  void keep_alive();

  // The connection that brings the dataset: the RDB channel, or else the link. Null without one.
  MasterConnection* carrier() const { return channel_ != nullptr ? channel_.get() : link_.get(); }
  // When the link broke (Unix time); 0: it is up, or never was.
  int64_t down_since_ms() const { return down_since_ms_; }
  // How often this server has tried to reach its master: since the last link broke, the attempt
  // that succeeded included, and since it replicates from this one.
  uint64_t attempts() const { return attempts_; }
  uint64_t attempts_in_all() const { return attempts_in_all_; }
  // For how long there was no link, from the first one on; the time as a master counts as soon as
  // there is a link again.
  int64_t disconnected_ms() const;
  uint64_t bytes_received() const;
  size_t locally_expiring_keys() const { return local_expiry_.keys(); }
  // Bytes of the stream that are kept until they can be applied, and the maximum during the last
  // synchronization.
  size_t full_sync_buffer() const;
  size_t full_sync_buffer_peak() const { return buffer_peak_; }

  // For tests, which play the master: the link up to the handover to a client, and the RDB channel;
  // null when there is none.
  MasterConnection* link() { return link_.get(); }
  MasterConnection* channel() { return channel_.get(); }

 private:
  // MasterConnection::Owner
  void continues(const std::string& id) override;
  void rdb_channel_offered(const std::string& main_client_id) override;
  void end_offset_received(MasterConnection& which) override;
  void stream_joined() override;
  void stream_kept() override;
  void declined() override;
  MasterConnection::Reception dataset_announced(MasterConnection& which,
                                                const DatasetShape& shape) override;
  void dataset_received(std::unique_ptr<DatasetReceiver> receiver) override;
  void dataset_input_arrived() override;
  void failed(MasterConnection& which, bool in_transfer) override;

  // As Valkey 9.1, which sends clients to the master where it can.
  bool as_valkey() const;
  std::string announced_version() const;
  Introduction introduction() const;
  void become_replica();
  void connect(const char* how, const char* why = "");
  // Drops the link, and the channel beside it.
  void drop_link();
  // The same after a full resynchronisation broke off, and connects again: at once, unless the last
  // attempt began only just before.
  void try_again();
  void retire(std::unique_ptr<MasterConnection> connection);
  // Handles a break of the link while the dataset from the RDB channel is loaded.
  void lose_stream();
  // Makes the client that applies the stream. `has_kept`: the link has kept a part of the stream
  // during the full sync.
  void attach(int database, bool has_kept);
  void session_closed(MasterSession& session);
  void end_session();
  void begin_replay(server::Client& client);
  void begin_dataset(const DatasetShape& shape, bool to_disk);
  // Starts a task that installs the dataset.
  struct Installation;
  void begin_installation(std::shared_ptr<Installation> installation);
  DatasetInstaller::Result install(Installation& installation);
  // Called when the installation has ended.
  void installed(const Installation& installation, const DatasetInstaller::Result& result);
  // Processes the master's input that arrived while a script was busy.
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
  // Kept until the next tick: their functions may be on the stack.
  std::vector<std::unique_ptr<MasterConnection>> retired_;
  std::vector<std::unique_ptr<StreamReplay>> retired_replays_;
  MasterSession* session_ = nullptr;  // its client owns it
  bool may_resume_ = false;
  int stream_database_ = 0;                     // while there is no session
  bool leaving_ = false;                        // the session is being ended by this server
  std::shared_ptr<Installation> installation_;  // the current one, or null
  // The last dataset that this master began to make did not come whole.
  bool dataset_broke_ = false;
  bool awaits_stream_ = false;  // the channel's dataset is installed, and the link has not joined
  bool buffer_full_ = false;
  size_t buffer_peak_ = 0;
  int64_t down_since_ms_ = 0;
  int64_t disconnected_since_ms_ = 0;  // as down_since_ms_, but promotion leaves it alone
  int64_t disconnected_before_ms_ = 0;
  uint64_t attempts_ = 0;
  uint64_t attempts_in_all_ = 0;
  int64_t second_began_ms_ = 0;
  int64_t connect_began_ms_ = 0;  // Unix time
  int64_t newline_sent_ms_ = 0;
  uint64_t received_by_former_ = 0;
};

// "connect", "connecting", "handshake", "sync", "connected".
std::string_view name_of(ReplicaRole::State state);

}  // namespace latchkey::replication
