// CALLS: records the requests of clients, in the order in which they began, with their outcomes.
//
// Nothing is recorded, and the dispatcher does not call this listener, until start(). Then each
// call costs a record of at most about 4 KB; the oldest goes when there are as many as may be.
// Requests that were refused are recorded too; those that MULTI queues when EXEC runs them; those
// of CALLS itself never. Secrets are left out (server/command/redaction.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/command/call_listener.h"
#include "server/command/command_context.h"
#include "testing/selector.h"

namespace latchkey::testing {

class Calls final : public server::CallListener {
 public:
  static constexpr size_t kDefaultMost = 10'000;
  static constexpr size_t kHighestMost = 1'000'000;

  enum class State : uint8_t { kRunning, kWaiting, kEnded };
  struct Record {
    uint64_t id = 0;      // never used twice
    int64_t time_us = 0;  // Unix time at which it began
    uint64_t client_id = 0;
    std::string client_name;
    std::string user;
    int database = 0;
    server::Call::Context context = server::Call::Context::kPlain;
    const server::Command* command = nullptr;  // null: there is none of that name
    std::vector<std::string> words = {};       // shortened
    std::vector<uint32_t> keys = {};           // positions of those that are whole in `words`
    int64_t duration_us = 0;                   // without what the client has waited
    State state = State::kRunning;
    std::string reply = {};  // short_reply(), when it has ended
  };

  explicit Calls(server::Server& server) : server_(server) {}

  // Records from now on, keeping up to `most` calls. What was recorded before stays.
  void start(size_t most);
  // Answers the clients that wait().
  void stop();
  // Drops all records.
  void reset();

  const std::deque<Record>& records() const { return records_; }
  bool matches(const Selector& selector, const Record& record) const;
  // Of the calls on record those that match and have ended, or wait for something.
  uint64_t count(const Selector& selector) const;
  // Replies with the number of calls that match when there are `wanted` of them or the time is
  // over (Unix time, 0: never); at once when the client may not wait.
  void wait(server::CommandContext& ctx, Selector selector, uint64_t wanted, int64_t deadline_ms);

  // server::CallListener
  uint64_t begin(const server::Call& call) override;
  void end(uint64_t id, int64_t duration_us, std::string_view reply) override;
  void waits(uint64_t id, int64_t duration_us) override;
  void wait_ended(const server::Client& client, std::string_view reply) override;

 private:
  struct Waiter {
    uint64_t client_id;
    Selector selector;
    uint64_t wanted;
    uint64_t count;
  };
  // Null when it is not on record any more.
  Record* find(uint64_t id);
  // A call has ended, or waits: counts it for those who wait for calls.
  void count_for_waiters(const Record& record);
  void answer(const Waiter& waiter);

  server::Server& server_;
  bool recording_ = false;
  size_t most_ = kDefaultMost;
  uint64_t next_id_ = 1;
  std::deque<Record> records_;                            // their ids follow one another
  std::unordered_map<uint64_t, uint64_t> waiting_calls_;  // ids of records by client id
  std::vector<Waiter> waiters_;
};

}  // namespace latchkey::testing
