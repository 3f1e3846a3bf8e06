// What a replica says to its master before data flows, and what it makes of the answers: PING,
// AUTH, REPLCONF, PSYNC. Knows nothing of sockets.
//
//     PING -> [AUTH] -> REPLCONF listening-port [, ip-address], capa -> PSYNC -> an answer
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
};

class Handshake {
 public:
  enum class Result : uint8_t {
    kGoesOn,
    kContinue,    // the stream goes on where it was; id() names it if the name has changed
    kFullResync,  // the dataset follows, which is id()'s at offset()
    kSync,        // the dataset follows, and the master counts nothing
    kFailed,      // the log says why
  };

  Handshake(Introduction introduction, base::Logger& log);

  // The first thing to be said.
  std::string begin();
  // Reads an answer, a line without its end; what is to be said next is appended to `out`.
  Result read(std::string_view line, std::string* out);

  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
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
  void announce(std::string* out);
  void ask(std::string* out);

  Introduction introduction_;
  base::Logger& log_;
  Step waits_for_ = Step::kPing;
  std::string id_;
  int64_t offset_ = -1;
};

}  // namespace latchkey::replication
