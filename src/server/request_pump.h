// Takes a client's bytes apart and runs the requests in them, a batch at a time: parse several,
// bring the cache lines of their keys near, execute. That order is what makes pipelines fast: the
// lookups of a batch wait for memory together.
//
// A batch in which a request may take long (kMayTakeLong) is executed in a task (server/tasks.h).
// If that is suspended the client waits: the task has a copy of the request that it is in, and the
// requests behind that one are parsed anew when it has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
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
  // A request that has outlived the buffer it came in.
  struct OwnRequest {
    std::string bytes;
    std::vector<std::string_view> words;
    // `came_as`: the bytes that the words came in. Most are views of them, but for what the parser
    // had to put together.
    void assign(std::span<const char> came_as, Arguments args);
  };

  size_t run(Client& client, std::span<char> bytes);
  void prefetch(Client& client);
  // The same for the elements of values that requests name, where the commands' rows tell.
  void prefetch_elements();
  // Executes the batch, until the client has to wait or is gone.
  void execute_all(Client& client, std::span<char> bytes, size_t* consumed);
  bool may_take_long(const Client& client) const;
  // The same in a task.
  void execute_in_task(Client& client, std::span<char> bytes, size_t* consumed);
  // False when the client has to wait, is gone, or was suspended on the way: then nothing of the
  // batch is to be touched any more.
  bool execute_own(Client& client, const Request& request, std::span<char> bytes, size_t* consumed);
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
    return client.has(kClientBlocked | kClientSuspended | kClientCloseAfterReply | kClientClosing);
  }
  void check_limits(Client& client, size_t kept_bytes);

  Server& server_;
  // One batch.
  resp::Arguments arguments_;
  std::vector<Request> requests_;
  // Free ones, so that requests that end in time are kept without allocating.
  std::vector<std::unique_ptr<OwnRequest>> spare_;
  int64_t last_attack_reported_ms_ = 0;
};

}  // namespace latchkey::server
