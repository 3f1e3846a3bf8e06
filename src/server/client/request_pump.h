// Takes a client's bytes apart and runs the requests in them, a batch at a time: parse several,
// prefetch the cache lines of their keys, execute. That order is what makes pipelines fast: the
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

#include "server/client/client.h"

namespace latchkey::store {
class Keyspace;
class Value;
}  // namespace latchkey::store

namespace latchkey::server {

class RequestPump {
 public:
  explicit RequestPump(Server& server) : server_(server) {}

  // Runs the complete requests in `bytes` until the client has to wait or is closed. Returns the
  // bytes done with. Replies are sent before it returns.
  size_t process(Client& client, std::span<char> bytes);

 private:
  // Replies of a pipeline leave together, but not more than this at a time.
  static constexpr size_t kMaxUnsent = 1024 * 1024;
  // Room for arguments that is kept from one batch to the next.
  static constexpr size_t kMaxKeptArguments = 64 * 1024;

  struct Request {
    size_t first;  // argument
    size_t count;
    size_t end;  // offset in the input behind it
    // What prefetch() has found out.
    Command* command = nullptr;
    store::Keyspace* keyspace = nullptr;
    uint64_t hash = 0;
    const store::Value* value = nullptr;
    uint64_t element_hash = 0;
  };
  // Requests that have been parsed, and are executed together.
  struct Batch {
    resp::ArgumentVector words;
    std::vector<Request> requests;
    std::string bytes;  // empty until own() is called

    Arguments words_of(const Request& request) const {
      return {words.data() + request.first, request.count};
    }
    // Has the words stand in `bytes`, for a batch that may outlive the buffer it came in.
    // `came_as`: where most of them stand, but for what the parser had to put together.
    void own(std::span<const char> came_as);
  };

  size_t run(Client& client, std::span<char> bytes);
  resp::RequestParser::Limits limits_for(const Client& client) const;
  // Parses from `*consumed` on what is to be executed together into batch_. Gives kRequest when the
  // batch is full or the input ends with a request, else what is wrong behind the batch.
  resp::RequestParser::Status parse_batch(Client& client, std::span<char> bytes, size_t* consumed);
  void prefetch(Client& client);
  // The same for the elements of values that requests name, where the commands' rows name them.
  void prefetch_elements();
  // Executes the batch, until the client has to wait or is gone.
  void execute_all(Client& client, std::span<char> bytes, size_t* consumed);
  bool may_take_long(const Client& client) const;
  // The same in a task.
  void execute_in_task(Client& client, std::span<char> bytes, size_t* consumed);
  // What that task does. `consumed` is the caller's, and stands until the task is suspended.
  void execute_own(Client& client, const Batch& batch, size_t* consumed);
  // False when the client has to wait, is gone, or was suspended on the way. `bytes`: what the
  // request came as.
  bool execute_suspendable(Client& client, const Request& request, Arguments args,
                           std::string_view bytes, size_t* consumed);
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
  Batch batch_;
  // Free ones, for batches that go into tasks.
  std::vector<std::unique_ptr<Batch>> spare_;
  int64_t last_attack_reported_ms_ = 0;
};

}  // namespace latchkey::server
