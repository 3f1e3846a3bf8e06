// Takes a client's bytes apart and runs the requests in them, a batch at a time: parse several, bring the cache lines of their
// keys near, execute. That order is what makes pipelines fast: the lookups of a batch wait for memory together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "server/client.h"

namespace latchkey::server {

class RequestPump {
 public:
  explicit RequestPump(Server& server) : server_(server) {}

  // Runs the complete requests in `bytes` until the client has to wait or is closed. Returns the bytes done with. Replies are
  // sent before it returns.
  size_t process(Client& client, std::span<char> bytes);

 private:
  static constexpr size_t kBatchSize = 32;

  struct Request {
    size_t first;  // argument
    size_t count;
    size_t end;  // offset in the input behind it
    Command* command;
    store::Keyspace* keyspace;
    uint64_t hash;
  };
  // Space for one batch. A busy script serves other clients from within one, so there may be several at a time.
  struct Frame {
    resp::Arguments arguments;
    std::vector<Request> requests;
  };

  size_t run(Client& client, std::span<char> bytes, Frame& frame);
  void prefetch(Client& client, Frame& frame);
  // True when the client's request must wait its turn or the client is gone.
  static bool stopped(const Client& client) {
    return client.has(kClientBlocked | kClientCloseAfterReply | kClientClosing);
  }
  void check_limits(Client& client, size_t kept_bytes);

  Server& server_;
  std::vector<std::unique_ptr<Frame>> frames_;
  size_t depth_ = 0;
};

}  // namespace latchkey::server
