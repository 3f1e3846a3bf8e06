// FaultInjector: makes requests fail on purpose while kStateFaults is set. The dispatcher calls it
// for each request that is about to run. The layer that implements it is FAULT (testing/faults.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/command/call_listener.h"

namespace latchkey::server {

class Client;

// The disk operations that can be made to fail: writing, for want of space, and syncing.
enum class DiskFault : uint8_t { kFull, kSyncFails };

class FaultInjector {
 public:
  enum class Verdict : uint8_t {
    kRun,
    kRefuse,    // with `error`
    kPostpone,  // the client has begun to wait; the same request comes again
    kDrop,      // it does not run, and nothing is replied
  };
  struct Answer {
    Verdict verdict = Verdict::kRun;
    // Valid until the injector is called again.
    std::string_view error;
  };

  virtual ~FaultInjector() = default;

  // A request has passed the gate and is about to run. May remove keys. Gives kRun or kRefuse for
  // requests of transactions and scripts.
  virtual Answer before(const Call& call) = 0;
  // A client's request has run; its reply stands in the client's output from `mark` on, unless the
  // client waits.
  virtual void replied(Client& client, size_t mark) = 0;
  // A client that waits is sent its reply, from `mark` of its output on.
  virtual void late_reply(Client& client, size_t mark) = 0;
  // A client's wait is over. `mark`: where its reply begins, if the end of the wait wrote it.
  virtual void wait_ended(Client& client, std::optional<size_t> mark) = 0;
  virtual void client_closed(const Client& client) = 0;
  // Whether a connection that comes in just now is to be closed at once.
  virtual bool refuses_connection() = 0;
  // Whether a write to a file of the dataset, or its sync, is to fail that is about to be made.
  virtual bool disk_fails(DiskFault what) = 0;
};

}  // namespace latchkey::server
