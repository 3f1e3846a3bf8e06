// maxmemory-clients: how much memory all clients together may take. When it is more, the largest
// clients are closed until it is not.
//
// Without a limit this costs a test of a flag for each batch of requests. With one, a client is
// measured again when it has read, written or been sent to, at a cost of O(log clients), and also
// before it runs a large request. Some clients are never closed but count: those with CLIENT
// NO-EVICT, and those smaller than kMinToClose. Replicas, a master and nodes that move slots
// neither count nor are closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace latchkey::server {

class Client;
class Server;

class ClientEviction {
 public:
  // Clients that take less memory (bytes) are not closed: it would help little.
  static constexpr size_t kMinToClose = 32 * 1024;

  explicit ClientEviction(Server& server) : server_(server) {}

  // Called when the client's memory may have changed.
  void touch(Client& client) {
    if (active_) note(client);
  }
  // Called when the client closes.
  void forget(Client& client);
  // Measures the touched clients, then closes the largest while all together exceed the limit.
  // Returns whether `current` is among them: the client whose code is on the stack, if any.
  bool enforce(Client* current = nullptr);
  // Bytes of pending output of clients closed in this turn; the loop frees them later.
  size_t leaving_bytes() const { return leaving_; }

 private:
  void note(Client& client);
  // In bytes; 0: none.
  size_t limit() const;
  void start();
  void stop();
  void measure(Client& client);
  void close(Client& client, bool is_current);

  Server& server_;
  bool active_ = false;
  size_t total_ = 0;  // bytes of all clients that count, as last measured
  size_t leaving_ = 0;
  std::vector<uint64_t> touched_;  // client ids
  // Bytes and ids of the clients that may be closed.
  std::set<std::pair<size_t, uint64_t>> by_size_;
};

}  // namespace latchkey::server
