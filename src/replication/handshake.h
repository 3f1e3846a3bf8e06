// The replica's side of the replication handshake: PING, AUTH, REPLCONF, PSYNC and the master's
// replies. Independent of sockets.
//
//     PING -> [AUTH] -> REPLCONF listening-port [, ip-address], capa -> PSYNC -> an answer
//
// The reply may be that the dataset is to be fetched by another connection, the RDB channel, while
// the stream comes by this one. The channel's handshake is shorter:
//
//     [AUTH] -> [REPLCONF ip-address,] REPLCONF rdb-channel, main-ch-client-id, ... -> PSYNC ? -1
//     -> +FULLRESYNC
//
// That is Redis's form. In Valkey's, dual channel replication, the channel is not told whose it is:
// the master names the channel in its answer, and where the dataset ends in the stream; then the
// main connection, which has waited since its PSYNC, names the channel and continues from there.
//
//     main:    ... -> PSYNC -> +DUALCHANNELSYNC
//     channel: [AUTH] -> [REPLCONF ip-address,] REPLCONF rdb-channel, ... -> SYNC
//     -> $ENDOFF:<offset> <id> <database>
//     <channel> main:    join() -> REPLCONF set-rdb-client-id <channel> -> PSYNC <id> <offset + 1>
//     -> +CONTINUE
//
// (Both as watched between two servers of Redis 8.6 and two of Valkey 8.1.)
//
// A master without REPLCONF is accepted, one without PSYNC is sent SYNC. Empty lines only show that
// the master is alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace latchkey::replication {

// What the replica tells the master about itself.
struct Introduction {
  std::string user;      // empty: the default user
  std::string password;  // empty: no AUTH
  int port = 0;
  std::string ip;  // announced instead of the connection's address; empty: none
  // Where to continue: the replication id and the number of the first missing byte.
  struct Place {
    std::string id;
    int64_t offset;
  };
  std::optional<Place> resume;
  // What this replica says it is, to masters of Valkey, which send some requests only to replicas
  // of 8.0 and later; empty: nothing.
  std::string version = {};
  // Its id in the cluster, by which a master of Valkey that leaves finds its successor; empty:
  // none, or not told.
  std::string cluster_node_id = {};
  // Offers the master to fetch the dataset by an RDB channel, in Redis's form and in Valkey's.
  bool offers_rdb_channel = false;
  bool offers_dual_channel = false;
  // Not empty: this is an RDB channel, and this is the id that the master has given the replica's
  // main connection.
  std::string main_client_id = {};
  // This is an RDB channel of Valkey's form.
  bool is_dual_channel = false;
  // The other server is a replica of this one, and is asked to become the master (FAILOVER).
  // REQUIRES: resume.
  bool requests_failover = false;
};

class Handshake {
 public:
  enum class Result : uint8_t {
    kGoesOn,
    kContinue,  // the stream continues at its offset; id() is the replication id, if it has changed
    kFullResync,   // the dataset follows, of id() at offset()
    kSync,         // the dataset follows, and the master has no offsets
    kRdbChannel,   // the stream follows; an RDB channel for main_client_id() brings the dataset
    kDualChannel,  // an RDB channel of Valkey's form is to be opened; join() follows
    kJoined,       // the stream follows, from the place that join() was given
    kDeclined,     // the other server refuses to take over; the reason is logged
    kFailed,       // the reason is logged
  };

  Handshake(Introduction introduction, base::Logger& log);

  // The first request.
  std::string begin();
  // Reads a line of the reply, without its end; appends the next requests to `out`.
  Result read(std::string_view line, std::string* out);
  // After kDualChannel: continues where the dataset of `channel` ends, whose result was
  // kFullResync.
  void join(const Handshake& channel, std::string* out);

  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  const std::string& main_client_id() const { return main_client_id_; }
  // In Valkey's form, of the channel: the database that is selected in the stream at offset().
  int database() const { return database_; }
  bool is_rdb_channel() const {
    return !introduction_.main_client_id.empty() || introduction_.is_dual_channel;
  }
  bool is_dual_channel() const { return introduction_.is_dual_channel; }
  // Whether join() is to be called.
  bool waits_for_channel() const { return waits_for_ == Step::kChannel; }

 private:
  enum class Step : uint8_t {
    kPing,
    kAuth,
    kPort,
    kIp,
    kCapabilities,
    kPsync,
    kEndOffset,  // Valkey's form, the channel: SYNC was sent
    kChannel,    // Valkey's form: the channel must tell its place first
    kJoin,       // Valkey's form: the channel was named to the master
  };

  Result read_ping(std::string_view line, std::string* out);
  Result read_auth(std::string_view line, std::string* out);
  Result read_replconf(std::string_view line, std::string* out);
  Result read_psync(std::string_view line, std::string* out);
  Result read_full_resync(std::string_view line);
  Result read_continue(std::string_view line);
  Result read_rdb_channel(std::string_view line);
  Result read_end_offset(std::string_view line);
  Result read_join(std::string_view line, std::string* out);
  Result refused(std::string_view line, std::string* out);
  void authenticate(std::string* out);
  void announce_rdb_channel(std::string* out);
  void announce(std::string* out);
  void ask(std::string* out);

  Introduction introduction_;
  base::Logger& log_;
  Step waits_for_ = Step::kPing;
  std::string id_;
  int64_t offset_ = -1;
  int database_ = 0;
  std::string main_client_id_;
  int64_t channel_number_ = 0;  // the master's id of the channel
  bool joined_ = false;
};

}  // namespace latchkey::replication
