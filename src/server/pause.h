// CLIENT PAUSE: for a while, commands (or only those that write) wait until the pause ends.
//
// While any pause lasts keys do not expire either, so that the dataset stands still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace latchkey::server {

class Client;
class Server;

class PauseControl {
 public:
  enum class Kind : uint8_t { kNone, kWrites, kAll };

  explicit PauseControl(Server& server) : server_(server) {}

  // Pauses until `until_ms` (Unix time). A pause that lasts already is never made shorter or
  // weaker.
  void pause(Kind kind, int64_t until_ms);
  // Ends the pause and lets the waiting clients go on.
  void unpause();
  // Ends the pause if its time has come.
  void tick();

  Kind kind() const { return kind_; }
  int64_t until_ms() const { return until_ms_; }

  // Whether a request with these flags (CommandFlag) must wait: any, or one that may write.
  bool holds(uint32_t flags) const;
  // Makes the client wait for the end of the pause.
  void postpone(Client& client);
  size_t waiting() const { return waiting_.size(); }

 private:
  Server& server_;
  Kind kind_ = Kind::kNone;
  int64_t until_ms_ = 0;
  std::vector<uint64_t> waiting_;  // client ids
};

}  // namespace latchkey::server
