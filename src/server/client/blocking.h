// Who waits for which key: the one registry behind every command that blocks until a key has
// something to give (BLPOP, BLMOVE, BZPOPMIN, XREAD ...).
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
// in which they changed, and for each key in the order in which the clients came. What the served
// do may make further keys ready; they follow.
//
// A request that is run again passes the server's state again: without memory it is refused, and
// during a pause it waits, now for the end of the pause.
//
// Listens to keyspace events only while somebody waits. Costs a hash lookup per change, whoever
// waits for other keys; O(keys) to begin or end a wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
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
  // still this one. 0: never.
  int64_t again_ms = 0;
  // The handler is run again also when a key has gone or holds another type, to say so.
  bool also_without_key = false;
  // A client that may not wait is sent a single null, not the null array that one is sent whose
  // time is over.
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
  // Whose request is being run again because a key has changed; null outside of that.
  Client* served() const { return again_; }
  // The deadline of a request that is being run again as a new one, at KeyWait::again_ms or after a
  // pause; -1 outside of that.
  int64_t kept_deadline_ms() const { return kept_deadline_ms_; }
  // Calls fn(const KeyPlace&, const Client&) for each key that somebody waits for, and each of
  // these.
  template <typename Fn>
  void for_each_waiting(Fn&& fn) const {
    for (const auto& [place, queue] : queues_) {
      for (const Waiter* waiter : queue.line) fn(place, client_of(*waiter));
    }
  }
  // What its request took until it began to wait (base::CycleClock); counted when it is over.
  // REQUIRES: waits(client).
  void began_after(const Client& client, uint64_t ticks);

  // Whether a key that somebody waits for has changed, or a pause has ended for somebody, since
  // serve() was last done. The latter wait while another's request is in the middle, or a dataset
  // is loaded: they would see a part of it.
  bool any_ready() const { return !ready_.empty() || (!due_.empty() && may_go_on()); }
  // Runs the requests that wait for changed keys, and those that wait for what these change. To be
  // called when a request has ended altogether; does nothing when called by itself.
  void serve();
  // Lets serve() go on with those who were to be served during a pause. Called when it ends.
  void pause_ended();
  // The clock was set back by so much: the waits last as long as they would have.
  void clock_went_back(int64_t by_ms);

  // The keys that what goes on has made ready, taken along by a task that is suspended in the
  // middle of it (server/tasks.h): they are not served before it ends.
  using ReadyKeys = std::vector<KeyPlace>;
  ReadyKeys put_aside() { return std::exchange(ready_, {}); }
  void put_back(ReadyKeys keys) { ready_.insert(ready_.begin(), keys.begin(), keys.end()); }

  // Sends those whose keys this node of a cluster serves no more the error that says so.
  void refuse_unserved(SlotGate& gate);
  // The server has become a replica. Sends those to the master who can follow: with MOVED in a
  // cluster, elsewhere with REDIRECT (CLIENT CAPA REDIRECT). Those whose requests a replica serves
  // (READONLY) wait on; what is to become of the others is the caller's to decide.
  void send_to_master();

  // Keys that are waited for, and those whose waiting clients want to hear that they are gone.
  size_t keys() const { return queues_.size(); }
  size_t keys_heard_without() const { return queues_heard_without_; }

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

  // Those who wait for one key, first come first.
  struct Queue {
    Line line;
    size_t also_without_key = 0;  // of these
    bool ready = false;           // its key is in ready_
  };
  using Queues = std::unordered_map<KeyPlace, Queue, KeyPlaceHash, KeyPlaceEqual>;

  static uint64_t id_of(const Client& client);
  static const Client& client_of(const Waiter& waiter);
  void join(Waiter& waiter, int database, std::string_view key);
  // Takes the client out of the queues of its keys.
  void leave_queues(Waiter& waiter);
  // Ends its wait altogether; the waiter is kept until the caller lets it go.
  std::unique_ptr<Waiter> take(const Client& client);
  void mark_ready(Queues::value_type& queue);
  void mark_all_ready(int database);
  void serve_key(const KeyPlace& place);
  // Whether what the key now holds may be what this one waits for.
  static bool may_serve(const Waiter& waiter, const store::KeyRef& ref);
  void run_again(Waiter& waiter);
  bool is_paused_for(const Waiter& waiter) const;
  // Lets a client whose key is ready wait for the end of the pause instead.
  void hold(Waiter& waiter);
  // Keeps a request whose time to be run again has come until serve().
  void keep_until_served(std::unique_ptr<Waiter> waiter);
  bool may_go_on() const;
  void go_on_after_pause(uint64_t client_id);

  Server& server_;
  Queues queues_;
  std::unordered_map<uint64_t, std::unique_ptr<Waiter>> waiters_;  // by client id
  ReadyKeys ready_;
  std::vector<uint64_t> held_;  // ids of clients that a pause keeps from being served
  std::vector<uint64_t>
      due_;  // of those whose pause has ended, or whose time to be run again has come
  size_t queues_heard_without_ = 0;
  bool serving_ = false;
  Client* again_ = nullptr;  // whose request is being run again
  bool keeps_waiting_ = false;
  int64_t kept_deadline_ms_ = -1;  // of the request that is being run again as a new one, or -1
};

// Reads the timeout of a blocking command, seconds that may have a fraction, and gives the Unix
// time in milliseconds at which it ends, 0 for ever. False, with the error sent, when it is none.
bool read_wait_timeout(CommandContext& ctx, std::string_view text, int64_t* deadline_ms);

}  // namespace latchkey::server
