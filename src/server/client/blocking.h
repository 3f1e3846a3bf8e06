// Blocking: the clients that wait for keys, the one registry behind every command that blocks until
// a key has an element for it (BLPOP, BLMOVE, BZPOPMIN, XREAD ...).
//
// A handler tries to serve its client; where there is nothing yet it calls wait() and returns:
//
//     void blpop(CommandContext& ctx) {
//       int64_t deadline_ms = 0;
//       if (!read_wait_timeout(ctx, ctx.args.back(), &deadline_ms)) return;
//       if (pop_from_first(ctx, keys)) return;
//       ctx.server.blocking().wait(ctx, {.keys = keys, .type = store::Type::kList,
//                                        .deadline_ms = deadline_ms});
//     }
//
// The request is kept, and its handler run again when one of the keys has changed and holds the
// wanted type: it serves the client, or calls wait() again and so keeps its place. That happens
// when the command, transaction or script that changed the key has ended, key by key in the order
// in which they changed, and for each key in the order in which the clients came. The requests that
// run then may make further keys ready, which are served next.
//
// A request that is run again passes admit() again: without memory it is refused, and during a
// pause it waits for the end of the pause.
//
// Listens to keyspace events only while a client waits. Costs a hash lookup per change, and O(keys)
// to begin or end a wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "resp/reply_builder.h"
#include "server/command/command_context.h"
#include "server/command/keyspace_events.h"
#include "server/key_place.h"
#include "store/entry.h"

namespace latchkey::server {

class Client;
class Server;
class SlotGate;

struct KeyWait {
  // Words of the request; the same key may stand there twice.
  Arguments keys;
  // What the key must hold for the handler to be run again.
  store::Type type;
  // Unix time in milliseconds, 0: for ever.
  int64_t deadline_ms = 0;
  // When the handler is run again though no key has changed: as a new request, whose deadline is
  // still this one. 0: never. A handler that calls wait() again because a key has changed can only
  // make it earlier.
  int64_t again_ms = 0;
  // The handler is run again also when a key was removed or has another type, to reply an error.
  bool also_without_key = false;
  // A client that may not wait is sent a single null, instead of the null array of a timeout.
  bool single_null_at_once = false;
};

class Blocking final : public KeyspaceEventListener {
 public:
  explicit Blocking(Server& server);
  ~Blocking() override;

  // Makes the client of this request wait. One that may not wait (in a transaction or a script) is
  // sent the null at once. To be called last by a handler that has replied nothing.
  void wait(CommandContext& ctx, const KeyWait& wanted);

  bool waits(const Client& client) const { return waiters_.contains(id_of(client)); }
  // The client whose request is being run again because a key has changed, or null.
  Client* served() const { return again_; }
  // The deadline of a request that is being run again as a new one, at KeyWait::again_ms or after a
  // pause; -1 outside of that.
  int64_t kept_deadline_ms() const { return kept_deadline_ms_; }
  // Calls fn(const KeyPlace&, const Client&) for each key and each client that waits for it.
  template <typename Fn>
  void for_each_waiting(Fn&& fn) const {
    for (const auto& [place, queue] : queues_) {
      for (const Waiter* waiter : queue.line) fn(place, client_of(*waiter));
    }
  }
  // How long its request ran until it began to wait (base::CycleClock); counted when it is over.
  // REQUIRES: waits(client).
  void began_after(const Client& client, uint64_t ticks);

  // Whether serve() has work: a key that a client waits for has changed, or the pause of a waiting
  // client has ended. The latter wait while another request is suspended, or a dataset is loaded:
  // they would see a part of it.
  bool any_ready() const { return !ready_.empty() || (!due_.empty() && may_resume()); }
  // Runs the requests that wait for changed keys, and those that wait for what these change. To be
  // called when a request has ended altogether; does nothing when called from within.
  void serve();
  // Lets serve() run the requests that became ready during a pause. Called when it ends.
  void pause_ended();
  // The data's clock was set back by so much, or forward if negative: the waits last as long as
  // they would have.
  void clock_went_back(int64_t by_ms);

  // The keys that the running request has made ready. A task that is suspended takes them along
  // (server/tasks.h), so that they are not served before it ends.
  using ReadyKeys = std::vector<KeyPlace>;
  ReadyKeys suspend_ready() { return std::exchange(ready_, {}); }
  void resume_ready(ReadyKeys keys) { ready_.insert(ready_.begin(), keys.begin(), keys.end()); }

  // Ends the waits for keys that this node of a cluster no longer serves, with the gate's error.
  void refuse_unserved(SlotGate& gate);
  // The server has become a replica. Redirects waiting clients to the master: with MOVED in a
  // cluster, elsewhere with REDIRECT (CLIENT CAPA REDIRECT). Clients that a replica may serve
  // (READONLY) wait on; the others are left to the caller.
  void send_to_master();

  // The number of keys that clients wait for, and of those with KeyWait::also_without_key.
  size_t keys() const { return queues_.size(); }
  size_t keys_also_without_key() const { return queues_also_without_key_; }

  // KeyspaceEventListener
  void key_changed(store::Keyspace& keyspace, std::string_view key, EventClass event_class,
                   std::string_view event) override;
  void keyspace_clearing(store::Keyspace& keyspace) override;
  void keyspaces_swapping(store::Keyspace& first, store::Keyspace& second) override;

 private:
  struct Waiter;
  using Refusals = std::vector<std::pair<uint64_t, std::string>>;  // client ids, errors
  static std::string refusal_by_slot(SlotGate& gate, Waiter& waiter);
  void refuse(const Refusals& refusals);
  using Line = std::list<Waiter*>;

  // The clients that wait for one key, first come first.
  struct Queue {
    Line line;
    size_t also_without_key = 0;  // of these
    bool ready = false;           // its key is in ready_
  };
  using Queues = std::unordered_map<KeyPlace, Queue, KeyPlaceHash, KeyPlaceEqual>;

  static uint64_t id_of(const Client& client);
  static const Client& client_of(const Waiter& waiter);
  void join(Waiter& waiter, int database, std::string_view key);

  void remove_from_queues(Waiter& waiter);
  // Ends the client's wait, and returns its waiter.
  std::unique_ptr<Waiter> take(const Client& client);
  void mark_ready(Queues::value_type& queue);
  void mark_all_ready(int database);
  void serve_key(const KeyPlace& place);
  // Whether the key's value may be what the client waits for.
  static bool may_serve(const Waiter& waiter, const store::KeyRef& ref);
  void run_again(Waiter& waiter);
  bool is_paused_for(const Waiter& waiter) const;
  // Lets a client whose key is ready wait for the end of the pause instead.
  void hold(Waiter& waiter);
  // Keeps a request whose time to be run again has come until serve().
  void keep_until_served(std::unique_ptr<Waiter> waiter);
  bool may_resume() const;
  void resume_after_pause(uint64_t client_id);

  Server& server_;
  Queues queues_;
  std::unordered_map<uint64_t, std::unique_ptr<Waiter>> waiters_;  // by client id
  ReadyKeys ready_;
  std::vector<uint64_t> held_;  // ids of clients that a pause keeps from being served
  std::vector<uint64_t> due_;   // of those whose pause has ended, or whose again_ms has come
  size_t queues_also_without_key_ = 0;
  bool serving_ = false;
  Client* again_ = nullptr;  // the client whose request is being run again
  bool keeps_waiting_ = false;
  int64_t kept_deadline_ms_ = -1;  // of the request that is being run again as a new one, or -1
};

// Reads the timeout of a blocking command, seconds that may have a fraction, and gives the Unix
// time in milliseconds at which it ends, 0 for ever. False, with the error sent, when it is none.
bool read_wait_timeout(CommandContext& ctx, std::string_view text, int64_t* deadline_ms);

}  // namespace latchkey::server
