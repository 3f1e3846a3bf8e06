// What a replica says to its master before data flows, and what it makes of the answers: PING,
// AUTH, REPLCONF, PSYNC. Knows nothing of sockets.
//
//     PING -> [AUTH] -> REPLCONF listening-port [, ip-address], capa -> PSYNC -> an answer
//
// The answer may be that the dataset is to be fetched by a connection of its own, the RDB channel,
// while the stream comes by this one. There the talk is shorter:
//
//     [AUTH] -> REPLCONF rdb-channel, main-ch-client-id, ... -> PSYNC ? -1 -> +FULLRESYNC
//
// A master that does not know REPLCONF is no worse a master, one that does not know PSYNC is asked
// by SYNC. Empty lines tell that the master is alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace latchkey::replication {

// How the replica introduces itself.
struct Introduction {
  std::string user;      // empty: the default user
  std::string password;  // empty: no AUTH
  int port = 0;
  std::string ip;  // announced instead of what the master sees; empty: not
  // Where it would go on: the history's name and the first byte that it lacks.
  struct Place {
    std::string id;
    int64_t offset;
  };
  std::optional<Place> resume;
  // Offers to fetch the dataset by an RDB channel.
  bool offers_rdb_channel = false;
  // Not empty: this is the RDB channel, and that is how the master calls the replica's other
  // connection.
  std::string main_client_id = {};
  // The other is a replica of this server, and is to become the master in its place. REQUIRES:
  // resume.
  bool hands_over = false;
};

class Handshake {
 public:
  enum class Result : uint8_t {
    kGoesOn,
    kContinue,    // the stream goes on where it was; id() names it if the name has changed
    kFullResync,  // the dataset follows, which is id()'s at offset()
    kSync,        // the dataset follows, and the master counts nothing
    kRdbChannel,  // the stream follows, and the dataset by an RDB channel for main_client_id()
    kDeclined,    // the other does not take over; the log says why
    kFailed,      // the log says why
  };

  Handshake(Introduction introduction, base::Logger& log);

  // The first thing to be said.
  std::string begin();
  // Reads an answer, a line without its end; what is to be said next is appended to `out`.
  Result read(std::string_view line, std::string* out);

  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  const std::string& main_client_id() const { return main_client_id_; }
  bool is_rdb_channel() const { return !introduction_.main_client_id.empty(); }
  // Has PSYNC been said, or what comes in its place.
  bool has_asked() const { return waits_for_ >= Step::kPsync; }

 private:
  enum class Step : uint8_t { kPing, kAuth, kPort, kIp, kCapabilities, kPsync };

  Result read_ping(std::string_view line, std::string* out);
  Result read_auth(std::string_view line, std::string* out);
  Result read_replconf(std::string_view line, std::string* out);
  Result read_psync(std::string_view line, std::string* out);
  Result read_full_resync(std::string_view line);
  Result read_continue(std::string_view line);
  Result read_rdb_channel(std::string_view line);
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
  std::string main_client_id_;
};

}  // namespace latchkey::replication
