// One client's requests and the replies that come back: whether each reply is one that its request
// may have, in the order of the requests, and what the client's own keys hold because of it.
//
// Where a reply does not come (the client has gone, or wants none) its request may have been run or
// not: then there are several datasets that are possible, and a later reply, or the end of the run,
// must fit one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "simulation/ledger.h"
#include "simulation/model.h"
#include "simulation/protocol.h"

namespace latchkey::simulation {

struct Request {
  enum class Kind : uint8_t {
    kOwn,     // concerns the client's own keys, or echoes: the model knows the reply
    kScript,  // the same by a script: `effects`, and `reply`
    kMulti,
    kExec,
    kDiscard,
    kWatch,      // words[1]
    kPush,       // a token, words[2], to the shared queue
    kPop,        // from it
    kSilent,     // of the kind kOwn, without a reply
    kNoReplies,  // CLIENT REPLY OFF
    kAnything,   // a reply that begins with one of `first_bytes`
  };
  Kind kind = Kind::kOwn;
  Words words = {};
  std::vector<Words> effects = {};
  std::string reply = {};
  bool may_be_killed = false;
  std::string first_bytes = {};
};

class Conversation {
 public:
  // When a request was run.
  struct Moment {
    int64_t now_ms;
    uint32_t state;             // ServerState bits, before it was or while it was suspended
    bool kill_granted = false;  // SCRIPT KILL or FUNCTION KILL was answered with OK since
  };

  explicit Conversation(Ledger& ledger) : ledger_(ledger) {}

  void sent(Request request);
  // So many of the bytes of all requests have been consumed, in that moment.
  void consumed(size_t bytes, const Moment& moment);
  // What runs for the client, if anything does, is suspended meanwhile.
  void saw_state(uint32_t state) { moment_.state |= state; }
  void saw_kill() { moment_.kill_granted = true; }
  // Throws CheckFailed when it is not the reply to the oldest request that waits.
  void replied(const std::string& reply);
  // Requests that were sent and have not been replied to.
  size_t waiting() const { return waiting_.size(); }
  // What has been replied is safe.
  void acknowledged();
  // Somebody may have touched the client's keys from aside (a reload).
  void disturbed();
  // All keys have gone.
  void flushed();
  // The client is no more. `crashed`: nor is the server, and nothing that was replied since
  // acknowledged() is sure.
  void ended(bool crashed);

  // What may be in the keys.
  const std::vector<Model>& possible() const { return possible_; }

 private:
  struct Sent {
    Request request;
    size_t end;  // offset in the bytes of all requests
  };
  enum class Watch : uint8_t { kNone, kClean, kMaybe, kTouched };
  struct Transaction {
    bool open = false;
    bool aborted = false;
    std::vector<Request> queue;
    Watch watch = Watch::kNone;
    std::string watched_key;
  };

  bool is_refusal(const std::string& reply) const;
  void refused(const Request& request, const std::string& reply);
  void match(const Request& request, const std::string& reply);
  void match_known(const Request& request, const std::string& reply);
  void match_exec(const std::string& reply);
  void end_transaction();
  // The reply to it in a dataset, which changes. `reply`: what came, for where either may be.
  std::string run(const Request& request, Model& model, const std::string& reply) const;
  void note_touch(const Request& request);
  // It may have been run or not.
  void run_perhaps(const Request& request);
  void unite(std::vector<Model> more);
  [[noreturn]] void unfit(const Request& request, const std::string& reply) const;

  Ledger& ledger_;
  size_t sent_bytes_ = 0;
  size_t consumed_bytes_ = 0;
  Moment moment_{};
  std::deque<Sent> waiting_;
  std::vector<Model> possible_{Model()};
  Transaction transaction_;
  // As it was when acknowledged() was called, and what has been replied to since.
  std::vector<Sent> unsure_;
  std::vector<Model> sure_possible_{Model()};
  Transaction sure_transaction_;
};

}  // namespace latchkey::simulation
