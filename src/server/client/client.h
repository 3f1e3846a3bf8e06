// A session: a client's user, its state (database, transaction, subscriptions), and its input and
// output.
//
// Most clients have a connection. Some have none: the one that scripts run as, and those of tests,
// which read replies from out(). ClientRegistry makes and frees clients. A client owns its
// connection, and close() ends it: a client that lives on, because a task still runs its request,
// writes into a buffer that nobody reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "net/connection.h"
#include "resp/output_buffer.h"
#include "resp/reply_builder.h"
#include "resp/request_parser.h"
#include "server/command/arguments.h"

namespace latchkey::server {

struct Command;
class Fieldsets;
class MasterLink;
class NodeLink;
class ReplicaLink;
class Server;
struct Subscriptions;
struct TrackingState;
struct Transaction;

namespace acl {
class User;
}

enum ClientFlag : uint32_t {
  kClientInMulti = 1u << 0,          // commands are queued
  kClientNeedsAuth = 1u << 1,        // has not authenticated, and must
  kClientReplyOff = 1u << 2,         // CLIENT REPLY OFF
  kClientReplySkip = 1u << 3,        // the reply of the current command is dropped
  kClientReplySkipNext = 1u << 4,    // the reply of the next command is dropped
  kClientNoTouch = 1u << 5,          // CLIENT NO-TOUCH
  kClientNoEvict = 1u << 6,          // CLIENT NO-EVICT
  kClientBlocked = 1u << 7,          // waits; its input is left in the buffer
  kClientCloseAfterReply = 1u << 8,  // no further request is read; closed when all is sent
  kClientClosing = 1u << 9,          // closed; freed at the end of the turn
  kClientScript = 1u << 10,          // runs the commands of a script
  kClientDenyBlocking = 1u << 11,    // in a script or transaction: blocking commands do not block
  kClientUnixSocket = 1u << 12,
  kClientPostponed = 1u << 13,       // blocked by CLIENT PAUSE
  kClientReadOnlyScript = 1u << 14,  // a script that may not write
  kClientInternal = 1u << 15,        // may call commands hidden from users (the server itself)
  kClientSubscribed = 1u << 16,      // has subscriptions
  kClientMonitor = 1u << 17,         // receives every request that is executed (monitors.h)
  kClientErrorCounted = 1u << 18,    // the error in its reply is already counted
  kClientOverLimit = 1u << 19,       // its output exceeds the limit; closed soon
  kClientReplica = 1u << 20,     // receives the replication stream, or will once it has the dataset
  kClientMaster = 1u << 21,      // the client that executes the master's replication stream
  kClientTracking = 1u << 22,    // receives invalidations of keys it has read (tracking.h)
  kClientCaching = 1u << 23,     // CLIENT CACHING was called for the next command
  kClientRestricted = 1u << 24,  // its user may not call everything (server/acl)
  kClientReadsAnywhere = 1u << 25,  // READONLY: accepts reads from a replica in a cluster
  kClientAsking = 1u << 26,         // ASKING was called for the current request
  kClientAskingNext = 1u << 27,     // ASKING was called for the next request
  kClientSuspended = 1u << 28,      // a suspended task is running its request
  kClientTookLock = 1u << 29,       // has taken a lock at some time (command/lock_claims.h)
  kClientRedirects = 1u << 30,      // CLIENT CAPA REDIRECT: a replica sends it to the master
  kClientImportSource = 1u << 31,   // CLIENT IMPORT-SOURCE (import-mode)
};

// Any of these flags keeps the dispatcher off its fast path.
inline constexpr uint32_t kGatedClientFlags =
    kClientInMulti | kClientNeedsAuth | kClientReplyOff | kClientReplySkip | kClientReplySkipNext |
    kClientNoTouch | kClientScript | kClientSubscribed | kClientMonitor | kClientReplica |
    kClientMaster | kClientTracking | kClientRestricted | kClientRedirects | kClientImportSource;

// Why a client's wait ended.
enum class BlockEnd : uint8_t {
  kServed,  // what it waited for is there: its reply has been written, or its request runs again
  kTimeout,
  kUnblocked,
  kUnblockedWithError,
  kRoleChanged,
  kClosed,
};
struct Block {
  // Unix time in milliseconds, 0: for ever.
  int64_t deadline_ms = 0;
  // False: CLIENT UNBLOCK does not reach it (paused clients).
  bool may_unblock = true;
  // The client keeps waiting when the server becomes a replica.
  bool outlives_role = false;
  // Called once when the wait ends otherwise than by kServed: sends the reply after kTimeout and
  // kUnblocked. The error of kUnblockedWithError and kRoleChanged has been sent already, and with
  // kClosed there is nobody to reply to.
  std::function<void(BlockEnd)> ended;
};

// Of the library that a client is written with (CLIENT SETINFO).
struct ClientLibrary {
  std::string name;
  std::string version;
};

// A server may have ten thousand: what few of them need is elsewhere, and what is small together.
class Client final : public net::ConnectionHandler {
 public:
  // `connection` may be null.
  Client(Server& server, uint64_t id, net::Connection* connection);
  ~Client() override;

  const uint64_t id;
  Server& server;

  // --- Session ----------------------------------------------------------------------------------
  uint32_t flags = 0;
  int database = 0;
  std::string name;
  // Null until CLIENT SETINFO.
  std::unique_ptr<ClientLibrary> library;
  // Null for clients that stand for the server itself or its master, and may do everything. Set
  // only by server/client/authentication.h.
  std::shared_ptr<const acl::User> user;
  // Has logged in, or never had to.
  bool authenticated = true;
  bool has_logged_in = false;  // at some time, whatever became of it
  bool watched_key_changed = false;
  // Set by ClientEviction: whether measured_memory may have changed since.
  bool memory_touched = false;
  // Commands queued since MULTI; null outside of it. server/command/watch.h keeps the watched keys.
  std::unique_ptr<Transaction> transaction;
  std::unique_ptr<Block> block;
  // Null when the client has none (server/client/pubsub.h).
  std::unique_ptr<Subscriptions> subscriptions;
  // Null when the client does not track.
  std::unique_ptr<TrackingState> tracking;
  // Null until the client prepares one (HIMPORT).
  std::unique_ptr<Fieldsets> fieldsets;
  // Null until the client announces itself as a replica.
  std::unique_ptr<ReplicaLink> replica;
  // Null unless the client stands for the master.
  std::unique_ptr<MasterLink> master;
  // Null unless the client is another node of the cluster (AUTH "internal connection").
  std::unique_ptr<NodeLink> node;
  // Replication offset at the client's last write (WAIT).
  uint64_t written_offset = 0;

  // --- Figures for CLIENT LIST ------------------------------------------------------------------
  int64_t created_ms = 0;           // Unix time
  int64_t last_interaction_ms = 0;  // Unix time of the last bytes received or sent
  Command* last_command = nullptr;
  uint64_t total_commands = 0;
  int64_t soft_limit_since_ms = 0;  // when output passed the soft limit, or 0
  // Set by ClientEviction: bytes as last measured.
  size_t measured_memory = 0;

 private:
  bool flush_scheduled_ = false;
  bool resume_scheduled_ = false;
  net::Connection* connection_;
  uint64_t seen_bytes_sent_ = 0;  // at the registry's last check
  // Null as long as there is a connection.
  std::unique_ptr<resp::OutputBuffer> local_out_;

 public:
  // --- Input and output --------------------------------------------------------------------------
  // Constructed from out(), so that it must stand behind connection_ and local_out_.
  resp::ReplyBuilder reply;
  resp::RequestParser parser;

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  void set(uint32_t flag, bool on = true) { flags = on ? flags | flag : flags & ~flag; }

  net::Connection* connection() const { return connection_; }
  // Whether it speaks TLS.
  bool is_secure() const { return connection_ != nullptr && connection_->layer() != nullptr; }
  // "ip:port" of the two ends; "?:0" without a connection.
  std::string peer_address() const;
  std::string local_address() const;
  resp::OutputBuffer& out() { return connection_ != nullptr ? connection_->out() : *local_out_; }
  // Buffer for messages that are not replies. If a request of the client is being executed, they
  // follow its reply. To be followed by flush_soon().
  resp::OutputBuffer& push_out();
  size_t pending_output() const {
    return connection_ != nullptr ? connection_->pending_output() : local_out_->size();
  }
  // Memory of pending output, in bytes; its own part is what no other client's output holds as
  // well.
  size_t output_memory() const {
    return connection_ != nullptr ? connection_->output_memory() : local_out_->memory_usage();
  }
  size_t own_output_memory() const {
    return connection_ != nullptr ? connection_->own_output_memory() : local_out_->own_memory();
  }

  // Sends the replies, at the latest before the loop waits again. For clients other than the one
  // whose request is being served.
  void flush_soon();
  // No further request is read; the replies are sent, then the connection is closed.
  void close_after_reply() { set(kClientCloseAfterReply); }
  // Closes now (freed at the end of the turn), without sending pending output.
  void close();

  // Moves the connection to a new client of another server of the process, and closes this one. The
  // new client begins with the input that this one has not consumed, has the same names and
  // protocol, and is logged in as a new client is. Not to be called by a callback of the connection
  // or within a request. REQUIRES: it has a connection, and is not suspended.
  Client& move_to(Server& target);

  // Suspends the reading of requests until unblock(). REQUIRES: not blocked.
  void wait(Block reason);
  // Called when the task that runs the client's request is suspended: nothing is read from the
  // client or sent to it until request_ended().
  void request_suspended();
  void request_ended();

  // Ends the wait. Calls the block's `ended` with `end`, but not with kServed. REQUIRES: blocked.
  void unblock(BlockEnd end);

  // net::ConnectionHandler
  size_t on_input(std::span<char> bytes) override;
  size_t wanted_input() const override { return parser.wanted_size(); }
  void on_end_of_input() override;
  void on_disconnect() override { close(); }
  void on_secured() override;
  void on_handshake_failed(const std::string& reason) override;
  void on_flushed() override;

 private:
  friend class ClientRegistry;
  void resume_soon();
  void disconnect();
  // Removes the client from all registries (PubSub, Tracking, WatchRegistry, ...). Called again
  // before the client is freed, because a transaction that goes on when its client is gone may
  // register it again.
  void unregister();
};

}  // namespace latchkey::server
