// Clients whose FLUSHALL or FLUSHDB waits until the background thread has freed the flushed
// dataset. Other clients are served meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "net/loop.h"

namespace latchkey::server {

class Client;
class Server;

class FlushWaits {
 public:
  // REQUIRES: the server has a loop.
  explicit FlushWaits(Server& server);
  // Blocks until the background thread has freed everything.
  ~FlushWaits();
  FlushWaits(const FlushWaits&) = delete;
  FlushWaits& operator=(const FlushWaits&) = delete;

  // Blocks the client, and replies OK to it when all that has been handed to the background thread
  // so far is freed. To be called last by a handler that has replied nothing.
  void wait(Client& client);
  // Replies to all waiting clients, whether or not the memory is freed.
  void answer_all();

 private:
  struct Waiting {
    uint64_t turn;
    uint64_t client_id;
  };
  void answer();
  void answer_up_to(uint64_t freed);

  Server& server_;
  net::Waker waker_;
  uint64_t last_turn_ = 0;
  std::atomic<uint64_t> freed_turn_{0};
  std::deque<Waiting> waiting_;
};

}  // namespace latchkey::server
