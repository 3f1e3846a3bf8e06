// Returns unused memory to the system when the process is idle.
#pragma once

#include <cstdint>
#include <optional>

#include "net/loop.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::composition {

// Shortly after start, and whenever no command has come for some seconds, the allocator's free
// pages go back to the kernel, and so do the pages of the program that only start or the last
// requests have needed (server/process/process.h). The next request reads its pages from the page
// cache again, which costs some tens of microseconds once.
class IdleMemory {
 public:
  // Both outlive it.
  IdleMemory(server::Server& server, net::Loop& loop);

 private:
  void check();
  static void release();

  server::Server& server_;
  net::Timer timer_;
  std::optional<uint64_t> commands_seen_;        // at the last check
  std::optional<uint64_t> commands_at_release_;  // at the last one but the first
};

}  // namespace latchkey::composition
