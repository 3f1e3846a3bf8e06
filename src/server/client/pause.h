// Pauses: for a while, commands (or only those that write) wait until the pause ends.
//
// Clients ask for one by CLIENT PAUSE, and the server itself has its reasons; each has a pause of
// its own, and what lasts is the strongest of them. While any pause lasts keys do not expire
// either, so that the dataset stands still.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace latchkey::server {

class Client;
class Server;

class PauseControl {
 public:
  enum class Kind : uint8_t { kNone, kWrites, kAll };
  enum class Reason : uint8_t { kClient, kShutdown, kFailover };
  static constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();

  explicit PauseControl(Server& server) : server_(server) {}

  // Pauses until `until_ms` (Unix time, or kForEver). A pause for that reason that lasts already is
  // never made shorter or weaker.
  void pause(Reason reason, Kind kind, int64_t until_ms);
  // Ends the pause for that reason. When it was the last, or those that last are weaker, the
  // waiting clients go on, or wait anew.
  void unpause(Reason reason);
  // Ends what has lasted long enough.
  void tick();

  Kind kind() const { return kind_; }

  // Whether a request with these flags (CommandFlag) must wait: any, or one that may write.
  bool holds(uint32_t flags) const;
  // Makes the client wait for the end of the pause.
  void postpone(Client& client);
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Pause {
    Kind kind = Kind::kNone;
    int64_t until_ms = 0;
  };
  // Sees what is left when a pause has ended.
  void recompute();

  Server& server_;
  std::array<Pause, 3> pauses_;    // by Reason
  Kind kind_ = Kind::kNone;        // the strongest of them
  std::vector<uint64_t> waiting_;  // client ids
};

}  // namespace latchkey::server
