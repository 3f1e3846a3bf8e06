// Runs requests: looks the command up, checks its number of words, asks the gate whether it may run
// (server/command/admission.h), calls its handler, propagates, and counts.
//
//     whose request               entry
//     a client's, the master's    execute()
//     one that EXEC runs          run_queued()
//     a script's                  run_for_script()
//     of a client that waited     retry()
//     the append-only file's      replay()
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/output_buffer.h"
#include "server/command/admission.h"
#include "server/command/call_listener.h"
#include "server/command/call_meters.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"

namespace latchkey::server {

enum class BlockEnd : uint8_t;

class Dispatcher {
 public:
  enum class Outcome : uint8_t {
    kDone,       // called, queued or refused; there is a reply
    kPostponed,  // not begun: the client waits; the same request comes again, here or elsewhere
  };

  explicit Dispatcher(Server& server);
  ~Dispatcher();

  // Runs one request of a client. `command`: what lookup() found for it, or null when that was not
  // asked.
  Outcome execute(Client& client, Arguments args, Command* command = nullptr);

  // The command (or subcommand) that a request names, or null. Containers with an unknown
  // subcommand give null too.
  Command* lookup(Arguments args) const { return server_commands().find_request(args); }

  // The client whose request is being run, or null.
  Client* serving() const { return calls_.serving; }
  // Whether the command being run is one of a script.
  bool in_script() const { return calls_.in_script; }
  // Whether the command being run is one of a transaction or script.
  bool in_nested_call() const { return calls_.depth > 1; }

  // Runs a request that was queued, for EXEC. False when it was refused.
  bool run_queued(Client& client, Command& command, Arguments args);

  // Runs a command that a script calls, or replies why not. `client`: the script's own.
  void run_for_script(Client& client, Command& command, Arguments args, ScriptCall& script);

  // Runs the request of a client whose wait is over.
  void retry(Client& client, Command& command, Arguments args);

  // The reply to a request whose client has waited is in its output from `mark` on. Code that
  // replies otherwise than by Block::ended must call this before Client::unblock().
  void note_late_reply(Client& client, size_t mark);
  // Called by Client::unblock(). `mark`: where the reply of Block::ended begins.
  void wait_ended(Client& client, BlockEnd end, size_t mark);
  // Ends the wait of a client with what `reply` writes for it: counted where it is an error, and
  // taken back where the client wants no reply. Does nothing when the client is gone or waits no
  // more.
  void answer_waiting(uint64_t client_id, const std::function<void(Client&)>& reply);

  // Runs a command of the append-only file: it is not counted, propagated or shown, but for an
  // error, which is counted. Returns the error without its dash, valid until the client's output
  // changes, or an empty view.
  std::string_view replay(Client& client, Command& command, Arguments args);

  // Warns, now and then, that the master's writes do not reach the disk here; ends the process when
  // `replica-ignore-disk-write-errors` says so.
  void apply_despite_disk_error();

  // Counts a call that is over, and records it if it took long (base::CycleClock). Also called for
  // calls that end outside of the dispatcher, because their wait ended without success.
  void count_call(Client& client, Command& command, Arguments args, uint64_t ticks);

  // The buffer for messages to the client that are no replies. While a request of the client is
  // being run, it is sent after the reply.
  resp::OutputBuffer& push_out(Client& client);
  // The same for messages that are sent after all others.
  resp::OutputBuffer& last_push_out(Client& client);
  // Sends the messages to the client, whose request is being run, before the reply instead. No
  // effect on requests of transactions and scripts, nor while calls are recorded or faults wait for
  // them: what they take for the reply begins where the request does. REQUIRES: nothing was replied
  // yet.
  void send_pushes_first(Client& client);

  CallMeters& meters() { return meters_; }

  // Starts a batch: the time from here on counts for the first command.
  void begin_batch();

  // Before the call that is metered: bytes of output, and of the stream of replicas.
  struct MeterMark {
    size_t output = SIZE_MAX;
    uint64_t stream = UINT64_MAX;
  };
  // The calls that are being made, as a task takes them with it when it is suspended
  // (server/tasks.h).
  struct Calls {
    explicit Calls(base::BufferPool& pool) : pushes(pool), last_pushes(pool) {}
    void swap(Calls& other) noexcept;
    // Either of these buffers, for one more message.
    resp::OutputBuffer& room_for_push(resp::OutputBuffer& buffer);
    uint64_t last_ticks = 0;
    int depth = 0;
    Client* serving = nullptr;  // the client whose request all calls are part of
    bool in_script = false;
    MeterMark metered;
    bool drops_pushes = false;       // they are not sent
    bool has_pushes = false;         // in either of these
    resp::OutputBuffer pushes;       // to that client, after its reply
    resp::OutputBuffer last_pushes;  // behind those
  };
  // For a task that is suspended or resumed. Messages to the client of suspended calls go on
  // waiting for the end of its request.
  std::unique_ptr<Calls> suspend_calls();
  // REQUIRES: no call is being made.
  void resume_calls(std::unique_ptr<Calls> calls);
  // Has messages to a client that waits, part of whose reply is still to come, go on waiting until
  // release_pushes(), or (`drop`) be lost. Without effect on messages while the client does not
  // wait.
  std::shared_ptr<Calls> hold_pushes(Client& client, bool drop);
  // To be called before the client goes.
  void release_pushes(Calls& calls);
  // Bytes of messages to the client that wait for the end of its request.
  size_t held_push_bytes(const Client& client);

  // Refuses a request: sends the error, counts it, and aborts the transaction that it would have
  // been part of.
  void reject(Client& client, Command* command, std::string_view error);
  // The text for a request whose command lookup() did not find.
  std::string unknown_command_error(Arguments args) const;
  // Records an error reply that begins at `mark` of the client's output. `by_script`: a script has
  // made it up.
  std::string_view count_error(Client& client, size_t mark, bool by_script = false);

 private:
  const CommandTable& server_commands() const;
  // At verbose level: the client that sent it, and the command that was probably meant.
  void log_unknown_command(Client& client, Arguments args) const;
  void perform(Client& client, Command& command, Arguments args);
  // Counts a call that has ended in errors, of which there were `errors` before it.
  [[gnu::noinline]] void count_failure(Client& client, Command& command, uint64_t errors);
  CommandContext context_of(Client& client, const Command& command, Arguments args);
  Outcome dispatch(Client& client, Arguments args, Command* command);
  // CLIENT CACHING holds for one command that is none of CLIENT's, or for a whole transaction.
  Outcome dispatch_with_caching_flag(Client& client, Arguments args, Command* command);
  // A replica is sent the stream and no replies: a request that has one ends the connection.
  Outcome dispatch_for_replica(Client& client, Arguments args, Command* command);
  // A request of the master's stream: nobody reads a reply.
  Outcome dispatch_for_master(Client& client, Arguments args, Command* command);
  // What dispatch() seldom does stays out of it, so that it saves no registers for that.
  [[gnu::noinline]] Outcome refuse_unknown(Client& client, Arguments args);
  [[gnu::noinline]] Outcome refuse_word_count(Client& client, Command& command, Arguments args);
  // The client's flags are to be the same when the request comes again.
  Outcome postponed(Client& client);
  // Calls admit(), and acts on its verdict.
  [[gnu::noinline]] Outcome dispatch_gated(Client& client, Command& command, Arguments args);
  // Runs an admitted command. MONITOR clients see it.
  void call(Client& client, Command& command, Arguments args);
  // call(), for one of a transaction or script; notifies LockClaims.
  void call_nested(Client& client, Command& command, Arguments args);
  void refuse(Client& client, Command& command, Arguments args, const Admission& answer);
  // reject(), which also notifies the CallListener.
  void reject_request(Client& client, Command* command, Arguments args, std::string_view error);
  // Refuses with the error as it is: EXEC ends its transaction.
  void refuse_plainly(Client& client, Command& command, std::string_view error);

  void enqueue(Client& client, Command& command, Arguments args);
  // Has a client that tracks (server/client/tracking.h) remembered as a reader of a command's keys.
  void remember_reads(Client& client, const Command& command, Arguments args);
  // The calls that the client's request is part of, suspended ones included; null when no request
  // of it is being run.
  Calls* calls_for(const Client& client);
  static void send_pushes(Client& client, Calls& calls);
  // Begins to measure a call; returns the mark of the call that it is part of.
  MeterMark mark_meter(Client& client);
  // Notifies the meters of a call, and records it if it lasted long.
  [[gnu::noinline]] void note_call(Client& client, Command& command, Arguments args,
                                   uint64_t ticks);

  // --- CALLS and FAULT ---------------------------------------------------------------------------

  Call describe_call(Client& client, const Command* command, Arguments args) const;
  // Runs a client's request, or has it fail.
  Outcome call_with_faults(Client& client, Command& command, Arguments args);
  // The error by which a request of a transaction or script is to fail; empty when it is to run.
  std::string_view fault_of_nested(Client& client, Command& command, Arguments args);
  // A call while it is recorded.
  struct Recording {
    uint64_t id = 0;  // 0: it is not
    uint64_t started = 0;
    size_t mark = 0;
  };
  Recording begin_recording(Client& client, const Command* command, Arguments args);
  void end_recording(Client& client, const Recording& recording);

  Server& server_;
  CallMeters meters_;
  int64_t disk_warned_ms_ = 0;
  Calls calls_;
  std::vector<Calls*> inactive_;  // of suspended tasks, and of hold_pushes()
};

}  // namespace latchkey::server
