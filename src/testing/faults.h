// FAULT: injects failures. Each fault has a selector of requests, conditions by which it is due,
// and an action. For each request the first fault that matches and is due is applied.
//
//     when                actions
//     before it runs      kError kDelay kDrop kHang kReset kPause kEvict kExpire
//     on its reply        kLoseReply kDelayReply kHangReply kCut kTrickle kGarbage
//     on a connection     kRefuse
//     on the disk         kDiskFull kFsyncError
//     on the stream       kReplicaLag: what replicas are sent (Replication::set_lag)
//
// Requests that EXEC or a script runs meet only kError, kEvict and kExpire. Those of FAULT and of
// CALLS meet none, and neither does what the master or a replica sends. Without faults, and when no
// request waits because of one, kStateFaults is not set and the dispatcher does not ask.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/client/client.h"
#include "server/command/dispatcher.h"
#include "server/command/fault_injector.h"
#include "testing/selector.h"

namespace latchkey::testing {

enum class FaultKind : uint8_t {
  kError,
  kDelay,
  kDelayReply,
  kDrop,
  kLoseReply,
  kHang,
  kHangReply,
  kCut,
  kTrickle,
  kReset,
  kGarbage,
  kRefuse,
  kDiskFull,
  kFsyncError,
  kPause,
  kEvict,
  kExpire,
  kReplicaLag,
};

// Whether faults never apply to requests of this command ("name" or "container|subcommand"): those
// that end faults and waits, and those of replicas.
bool is_exempt(std::string_view command);

// Whether it is about requests, and not about connections, the disk or replicas.
bool is_about_requests(FaultKind kind);

struct FaultAction {
  FaultKind kind = FaultKind::kError;
  std::string error;
  // Milliseconds: of a delay or a lag from one to the other, of a pause, between two pieces of
  // kTrickle.
  int64_t shortest_ms = 0;
  int64_t longest_ms = 0;
  // Of the reply: that are sent before the end, or at a time.
  size_t bytes = 0;
};

struct Fault {
  uint64_t id = 0;
  Selector selector;
  double probability = 1;
  uint64_t after = 0;             // so many requests that match are spared first
  std::optional<uint64_t> times;  // it takes place so often at most
  FaultAction action;
  std::vector<std::string> words;  // as they were given
  uint64_t matches = 0;
  uint64_t hits = 0;
};

class Faults final : public server::FaultInjector {
 public:
  static constexpr size_t kMax = 1000;

  explicit Faults(server::Server& server) : server_(server) {}

  // Gives its id. REQUIRES: fewer than kMax faults.
  uint64_t add(Fault fault);
  bool remove(uint64_t id);
  // Removes all faults. Clients that wait because of one go on waiting until its time is over.
  void clear();
  void reset_counts();
  const std::vector<Fault>& faults() const { return faults_; }

  // server::FaultInjector
  Answer before(const server::Call& call) override;
  void replied(server::Client& client, size_t mark) override;
  void late_reply(server::Client& client, size_t mark) override;
  void wait_ended(server::Client& client, std::optional<size_t> mark) override;
  void client_closed(const server::Client& client) override;
  bool refuses_connection() override;
  bool disk_fails(server::DiskFault what) override;

 private:
  // What is to happen to a client's current request.
  struct Pending {
    // Empty: the request has waited before it ran, and runs when it comes again.
    std::optional<FaultAction> on_reply;
    std::optional<size_t> mark;  // of the reply, once it is there
  };

  // The action for this request; null when none is due.
  const FaultAction* due_for(const server::Call& call);
  bool is_due(Fault& fault);
  bool any_due(FaultKind kind);
  Answer begin(server::Client& client, const FaultAction& action);
  // A reply that is sent later, a piece at a time.
  struct LateReply {
    std::shared_ptr<const std::string> text;
    size_t piece = 0;
    int64_t wait_ms = 0;  // before each piece
    bool closes = false;  // the connection, behind the last piece
    // Messages that come meanwhile; null where they may come before the reply.
    std::shared_ptr<server::Dispatcher::Calls> pushes;
  };

  void act_on_reply(server::Client& client, const FaultAction& action, size_t mark);
  void remove_keys(const server::Call& call, bool evict);
  int64_t delay_of(const FaultAction& action);
  std::string garbage();
  static void close_soon(server::Client& client);
  static void wait(server::Client& client, int64_t deadline_ms,
                   std::function<void(server::BlockEnd)> ended);
  void hang(server::Client& client);
  // Sends the reply's rest, which begins at `from`.
  void send_later(server::Client& client, const LateReply& reply, size_t from);
  void faults_changed();
  // Has the dispatcher ask, or not.
  void update_state();
  void forget_pending(uint64_t client_id);
  int64_t replica_lag_ms();

  server::Server& server_;
  uint64_t next_id_ = 1;
  std::vector<Fault> faults_;
  size_t lags_ = 0;                                // how many of them are kReplicaLag
  std::unordered_map<uint64_t, Pending> pending_;  // by client id
};

}  // namespace latchkey::testing
