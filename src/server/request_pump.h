// Takes a client's bytes apart and runs the requests in them, a batch at a time: parse several,
// bring the cache lines of their keys near, execute. That order is what makes pipelines fast: the
// lookups of a batch wait for memory together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "server/client.h"

namespace latchkey::server {

class RequestPump {
 public:
  explicit RequestPump(Server& server) : server_(server) {}

  // Runs the complete requests in `bytes` until the client has to wait or is closed. Returns the
  // bytes done with. Replies are sent before it returns.
  size_t process(Client& client, std::span<char> bytes);

 private:
  static constexpr size_t kBatchSize = 32;
  // Replies of a pipeline leave together, but not more than this at a time.
  static constexpr size_t kMostUnsent = 1024 * 1024;
  // Room for arguments that is kept from one batch to the next.
  static constexpr size_t kMostKeptArguments = 64 * 1024;

  struct Request {
    size_t first;  // argument
    size_t count;
    size_t end;  // offset in the input behind it
    Command* command;
    store::Keyspace* keyspace;
    uint64_t hash;
    const store::Value* value;
    uint64_t element_hash;
  };
  // Space for one batch. A busy script serves other clients from within one, so there may be
  // several at a time.
  struct Frame {
    resp::Arguments arguments;
    std::vector<Request> requests;
  };

  size_t run(Client& client, std::span<char> bytes, Frame& frame);
  void prefetch(Client& client, Frame& frame);
  // The same for the elements of values that requests name, where the commands' rows tell.
  void prefetch_elements(Frame& frame);
  // Sends in the middle of a pipeline, and closes the client if it does not read what it asks for.
  void send(Client& client);
  // That the client's bytes have been dealt with from `*consumed` to `end`.
  static void advance(Client& client, std::span<char> bytes, size_t* consumed, size_t end);
  // Answers bytes that are no request, and lets the client go.
  void refuse(Client& client, std::span<const char> bytes);
  // True, and the client is gone, when what should be a command is the start of an HTTP request: a
  // web page may have made a browser send it, and commands in its body.
  bool is_cross_protocol_attack(Client& client, std::string_view word);
  // True when the client's request must wait its turn or the client is gone.
  static bool stopped(const Client& client) {
    return client.has(kClientBlocked | kClientCloseAfterReply | kClientClosing);
  }
  void check_limits(Client& client, size_t kept_bytes);

  Server& server_;
  std::vector<std::unique_ptr<Frame>> frames_;
  size_t depth_ = 0;
  int64_t last_attack_reported_ms_ = 0;
};

}  // namespace latchkey::server
