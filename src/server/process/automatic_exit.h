// AutomaticExit: shuts a server down that nobody needs any more: exit-with-parent, when the process
// that started it has gone, and exit-when-idle, when there has been no client for so long since the
// start or since the last one left.
//
// Both are checked in every tick, and shut down as SIGTERM does. A shutdown that is refused,
// because the dataset could not be saved, is tried again some seconds later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/time_units.h"

namespace latchkey::server {

class Server;

class AutomaticExit {
 public:
  // The clients of the process.
  struct Clients {
    size_t connected = 0;
    uint64_t connections_received = 0;  // since the start, of those that have left as well
  };

  // `parent_has_gone`: empty when it does not matter. All must outlive the server's last tick.
  AutomaticExit(Server& server, std::function<Clients()> clients,
                std::function<bool()> parent_has_gone);

 private:
  static constexpr int64_t kRetryUs = 5 * base::kUsPerSecond;

  void check();
  bool is_idle(int64_t now_us);
  void exit(int64_t now_us, const char* reason);

  Server& server_;
  std::function<Clients()> clients_;
  std::function<bool()> parent_has_gone_;
  uint64_t connections_seen_ = 0;
  int64_t idle_since_us_;
  int64_t next_attempt_us_ = 0;  // of clock().monotonic_us()
};

}  // namespace latchkey::server
