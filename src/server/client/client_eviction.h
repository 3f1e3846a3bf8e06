// maxmemory-clients: how much memory all clients together may take. When it is more, the largest
// clients are closed until it is not.
//
// Without a limit this costs a glance at a flag for each batch of requests. With one, a client is
// measured again when it has read, written or been sent to, at a cost of O(log clients). A client
// that asked not to be closed (CLIENT NO-EVICT) is counted all the same, as is one too small for
// its closing to help much.
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
  // Bytes that a client takes at least that may be closed.
  static constexpr size_t kLeastToClose = 32 * 1024;

  explicit ClientEviction(Server& server) : server_(server) {}

  // The client may take more or less memory than before.
  void touch(Client& client) {
    if (active_) note(client);
  }
  // The client goes.
  void forget(Client& client);
  // Measures who was touched, and closes the largest while all together take too much. To be called
  // before the loop waits, with no client's code on the stack.
  void enforce();

 private:
  void note(Client& client);
  // In bytes; 0: none.
  size_t limit() const;
  void start();
  void stop();
  void measure(Client& client);
  void close(Client& client);

  Server& server_;
  bool active_ = false;
  size_t total_ = 0;               // bytes of all clients as last measured
  std::vector<uint64_t> touched_;  // client ids
  // Bytes and ids of those that may be closed.
  std::set<std::pair<size_t, uint64_t>> by_size_;
};

}  // namespace latchkey::server
