// CommandContext: what a command handler works with: its arguments, the database, the reply, and
// the server for the few handlers that need it.
//
// A handler reads top to bottom as its documentation does:
//
//     void setnx(CommandContext& ctx) {
//       KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
//       if (ref) return ctx.reply.integer(0);
//       ctx.db.set_string(ref, ctx.args[2]);
//       ctx.changed(ctx.args[1], EventClass::kString, "set");
//       ctx.reply.integer(1);
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/blob.h"
#include "resp/reply_builder.h"
#include "server/command/arguments.h"
#include "server/command/keyspace_events.h"
#include "server/command/propagation.h"
#include "store/keyspace.h"

namespace latchkey::server {

class Client;
class Server;
struct Command;

struct CommandContext {
  Server& server;
  // The client of a connection, or the internal one that runs the commands of scripts.
  Client& client;
  const Command& command;
  Arguments args;
  store::Keyspace& db;
  resp::ReplyBuilder& reply;
  KeyspaceEvents& events;
  Propagation& propagation;

  int64_t now_ms() const { return db.environment().now_ms; }
  // The same request with other words, which must outlive what it returns.
  CommandContext with_args(Arguments words) const {
    return {server, client, command, words, db, reply, events, propagation};
  }

  // --- Shared steps of handlers -----------------------------------------------------------------

  [[gnu::always_inline]] void changed(std::string_view key, EventClass event_class,
                                      std::string_view event) {
    events.changed(db, key, event_class, event);
  }
  void removed(std::string_view key) { events.removed(db, key); }

  // Writes another request to the replication stream in place of this one; several calls write
  // several requests. Without a call the stream gets this request as it came.
  void propagate(CommandWords first, Arguments rest = {}, uint8_t readers = kPropagateToAll) {
    propagation.set_replaced(true);
    propagation.add(db.index(), first, rest, readers);
  }
  // Keeps this request out of the replication stream.
  void propagate_nothing() { propagation.set_replaced(true); }

  // False, with a WRONGTYPE error sent, when the key holds another type. A missing key has any
  // type.
  bool is_type(const store::KeyRef& ref, store::Type type) {
    if (!ref || ref->type() == type) return true;
    wrong_type();
    return false;
  }
  bool is_string(const store::KeyRef& ref) { return is_type(ref, store::Type::kString); }

  void wrong_type() {
    reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
  }
  void syntax_error() { reply.error("ERR syntax error"); }
  // Sends the error, and returns false or `result`: a step that reads or checks something ends with
  // `return ctx.refuse("ERR ...")`.
  template <typename Result = bool>
  Result refuse(std::string_view error, Result result = {}) const {
    reply.error(error);
    return result;
  }

  // An argument as a blob, for a value: the buffer it came in, with one reference for the caller.
  // Null for small ones, and for those that must be copied.
  base::Blob* take_argument(std::string_view argument) {
    constexpr size_t kMinTaken = 128 * 1024;
    return argument.size() < kMinTaken ? nullptr : take_large_argument(argument);
  }

  // "ERR wrong number of arguments for 'get' command".
  void wrong_arity();

  // Reads an argument as an integer; on failure sends `error` ("ERR value is not an integer or out
  // of range" when empty).
  bool read_int64(std::string_view text, int64_t* value, std::string_view error = {});
  // As above and between `low` and `high`; out of range gives `error`, or the reference's text for
  // ranges when it is empty.
  bool read_int64_in(std::string_view text, int64_t low, int64_t high, int64_t* value,
                     std::string_view error = {});
  // Reads a timeout in milliseconds, and sets the Unix time in milliseconds at which it ends;
  // errors speak of a timeout.
  bool read_timeout_ms(std::string_view text, int64_t* deadline_ms);
  // The same of a client that is to wait, for which a timeout of 0 is none: the deadline is 0 then.
  bool read_wait_ms(std::string_view text, int64_t* deadline_ms);
  // "ERR value is not a valid float" when empty.
  bool read_double(std::string_view text, double* value, std::string_view error = {});

 private:
  base::Blob* take_large_argument(std::string_view argument);
};

// Sends a string entry's value as a bulk string; large ones by reference.
void reply_string(resp::ReplyBuilder& reply, const store::Entry& entry);

// Case-insensitive comparison of an argument with an option's upper-case name.
bool is_word_of_same_size(std::string_view argument, std::string_view upper_case_name);
inline bool is_word(std::string_view argument, std::string_view upper_case_name) {
  return argument.size() == upper_case_name.size() &&
         is_word_of_same_size(argument, upper_case_name);
}

// Steps through a request's arguments from a given one on.
//
//     for (ArgReader options(ctx.args, 3); options.more();) {
//       if (options.word("NX")) { ... }
//       else if (options.word("EX", &text)) { ... }       // the option takes a value
//       else return ctx.syntax_error();
//     }
class ArgReader {
 public:
  ArgReader(Arguments args, size_t first) : args_(args), next_(first) {}
  bool more() const { return next_ < args_.size(); }
  size_t left() const { return args_.size() - next_; }
  size_t position() const { return next_; }
  std::string_view peek() const { return args_[next_]; }
  // REQUIRES: more().
  std::string_view next() { return args_[next_++]; }
  // Steps over the next argument when it is this word.
  bool word(std::string_view upper_case_name) {
    if (!more() || !is_word(args_[next_], upper_case_name)) return false;
    ++next_;
    return true;
  }
  // Steps over the word and the value behind it; not when there is no value.
  bool word(std::string_view upper_case_name, std::string_view* value) {
    if (left() < 2 || !is_word(args_[next_], upper_case_name)) return false;
    *value = args_[next_ + 1];
    next_ += 2;
    return true;
  }
  Arguments rest() const { return args_.subspan(next_); }

 private:
  Arguments args_;
  size_t next_;
};

// Steps over ASYNC or SYNC of a command that flushes something. Returns whether the memory is to be
// freed in the background; without either word lazyfree-lazy-user-flush decides.
bool read_flush_lazily(const CommandContext& ctx, ArgReader& args);

}  // namespace latchkey::server
