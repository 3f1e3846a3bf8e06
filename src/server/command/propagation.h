// The replication stream: the requests that another server has to run, one after the other, to get
// the dataset of this one. The append-only file stores it, replicas follow it.
//
// The stream contains the effects of requests. What chance, time or waiting has decided is decided
// in the stream: SPOP is written as the SREM of the members it removed, a deadline as a Unix time,
// a blocking command as what it did when it was served, a script as what its commands did. A
// request that changed something is written as it came, unless its handler calls
// CommandContext::propagate() or propagate_nothing(); one that changed nothing is not written. Keys
// that expired or were evicted are written as DEL or UNLINK.
//
// Requests that belong together (a transaction, a script, a request and the expired keys it found)
// are one unit: targets get it whole, when it has ended, between MULTI and EXEC if it is more than
// one request. Each reader remembers the database it has selected (PropagationEncoder).
//
// Costs nothing without readers. Otherwise each request is encoded once, for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/number.h"

namespace latchkey::server {

// The readers of a propagated command.
enum PropagationTargets : uint8_t {
  kPropagateToFile = 1u << 0,
  kPropagateToReplicas = 1u << 1,
  kPropagateToAll = kPropagateToFile | kPropagateToReplicas,
  // Beside targets: the command needs no MULTI around it and others of its kind.
  kPropagateOutsideMulti = 1u << 7,
};

// One request of the stream, encoded as a RESP array of bulk strings.
struct PropagatedCommand {
  int database;     // that it concerns; kAnyDatabase: it does not matter which is selected
  uint8_t targets;  // PropagationTargets
  std::string_view request;

  bool outside_multi() const { return (targets & kPropagateOutsideMulti) != 0; }
};
inline constexpr int kAnyDatabase = -1;

class PropagationSink {
 public:
  virtual ~PropagationSink() = default;
  // Commands that belong together, at least one, some of which may be for other targets. The
  // views last as long as the call. Must not change the dataset.
  virtual void on_propagated(std::span<const PropagatedCommand> unit) = 0;
};

// Writes units for one reader: leaves out what is for others, puts SELECT before what concerns
// another database than the last one, and MULTI and EXEC around several, unless all stand alone.
class PropagationEncoder {
 public:
  // `reader`: one of PropagationTargets.
  explicit PropagationEncoder(uint8_t reader) : target_(reader) {}

  // Whether the SELECT that the first request of several needs stands before their MULTI, as before
  // Redis 7.2, instead of behind it.
  void select_before_multi(bool before) { selects_before_multi_ = before; }

  // Appends the unit to `out`; nothing when no part of it is for this reader.
  void append(std::span<const PropagatedCommand> unit, std::string* out);
  // The next request is preceded by a SELECT, whatever was selected: for a reader that begins in
  // the middle.
  void forget_database() { database_ = kAnyDatabase; }
  int database() const { return database_; }

 private:
  void select(int database, std::string* out);

  uint8_t target_;
  bool selects_before_multi_ = false;
  int database_ = kAnyDatabase;
};

// A word of a request: text, or a number as its decimal text. Lives as long as the statement.
class CommandWord {
 public:
  CommandWord(std::string_view text) : text_(text) {}
  CommandWord(const char* text) : text_(text) {}
  CommandWord(const std::string& text) : text_(text) {}
  template <typename Integer>
  requires std::is_integral_v<Integer> CommandWord(Integer value)
      : text_(digits_, base::format_int64(static_cast<int64_t>(value), digits_)) {}
  CommandWord(const CommandWord&) = delete;
  std::string_view text() const { return text_; }

 private:
  char digits_[base::kMaxInt64Text];
  std::string_view text_;
};
using CommandWords = std::initializer_list<CommandWord>;

class Propagation {
 public:
  // `on_wanted` is called whenever wanted() changes.
  explicit Propagation(std::function<void(bool)> on_wanted) : on_wanted_(std::move(on_wanted)) {}

  // Whether anybody reads. What would be written may be left out when nobody does.
  bool wanted() const { return wanted_; }
  // Bytes of all units for replicas so far, without SELECT.
  uint64_t replica_bytes() const { return replica_bytes_; }
  // Readers get units in the order in which they were added.
  void add_sink(PropagationSink& reader);
  void remove_sink(PropagationSink& reader);
  // While muted nothing is written. For a server that is muted for good; otherwise use MuteScope.
  void set_muted(bool muted);

  // Writes a request into the open unit, or as a unit of its own. `database`:
  // an index or kAnyDatabase.
  void add(int database, CommandWords words, uint8_t targets = kPropagateToAll) {
    add(database, words, {}, targets);
  }
  void add(int database, std::span<const std::string_view> words,
           uint8_t targets = kPropagateToAll) {
    add(database, {}, words, targets);
  }
  // As above; the words of `rest` follow the first ones.
  void add(int database, CommandWords first, std::span<const std::string_view> rest,
           uint8_t targets = kPropagateToAll);

  // Writes that a key has gone that no request removed; `lazily`: as UNLINK.
  void add_removal(int database, std::string_view key, bool lazily) {
    add(database, {lazily ? "UNLINK" : "DEL", key}, kPropagateToAll | kPropagateOutsideMulti);
  }

  // Only these get what is added to the unit from now on (PropagationTargets). For a script that
  // says so (redis.set_repl); else see TargetScope.
  void restrict_targets(uint8_t allowed) { unit_.allowed = allowed; }

  // While it exists nothing is written: the dataset is being loaded from what was written before.
  class [[nodiscard]] MuteScope {
   public:
    explicit MuteScope(Propagation& propagation)
        : propagation_(propagation), outer_(propagation.muted_) {
      propagation_.set_muted(true);
    }
    ~MuteScope() { propagation_.set_muted(outer_); }
    MuteScope(const MuteScope&) = delete;
    MuteScope& operator=(const MuteScope&) = delete;

   private:
    Propagation& propagation_;
    bool outer_;
  };

  // While it exists these targets get what is added to the unit (PropagationTargets), whatever
  // restrict_targets() or an outer scope said; afterwards that holds again.
  class [[nodiscard]] TargetScope {
   public:
    TargetScope(Propagation& propagation, uint8_t allowed)
        : propagation_(propagation), outer_(propagation.unit_.allowed) {
      propagation_.restrict_targets(allowed);
    }
    ~TargetScope() { propagation_.restrict_targets(outer_); }
    TargetScope(const TargetScope&) = delete;
    TargetScope& operator=(const TargetScope&) = delete;

   private:
    Propagation& propagation_;
    uint8_t outer_;
  };

  // Whether the unit that is open has commands.
  bool has_open_commands() const { return !unit_.commands.empty(); }

  // --- For the dispatcher ------------------------------------------------------------------------

  // Nested calls are part of the outermost one's unit.
  void begin_unit() { ++unit_.depth; }
  // Passes the unit to the sinks when it is the outermost.
  void end_unit() {
    if (--unit_.depth == 0 && !unit_.commands.empty()) [[unlikely]]
      flush_unit();
  }
  // Whether the handler that runs has called propagate() or propagate_nothing() for its request.
  // set_replaced() returns the former value, which a nested call restores for the outer handler.
  bool set_replaced(bool replaced) { return std::exchange(unit_.replaced, replaced); }
  bool replaced() const { return unit_.replaced; }

  struct Pending {
    int database;
    uint8_t targets;
    size_t end;  // in bytes; it begins where the one before it ends
  };
  // The open unit. A task that is suspended takes it along (server/tasks.h), so that what others
  // write meanwhile is no part of it.
  struct Unit {
    int depth = 0;  // calls that are part of it
    bool replaced = false;
    uint8_t allowed = kPropagateToAll;
    std::vector<Pending> commands;
    std::string bytes;  // those of all pending requests, and room for more
  };
  Unit suspend_unit() { return std::exchange(unit_, {}); }
  void resume_unit(Unit unit) { unit_ = std::move(unit); }

 private:
  void flush_unit();
  void update_wanted();

  std::function<void(bool)> on_wanted_;
  bool wanted_ = false;
  bool muted_ = false;
  uint64_t replica_bytes_ = 0;
  std::vector<PropagationSink*> sinks_;
  Unit unit_;
  std::vector<PropagatedCommand> flushed_unit_;  // a unit, while the sinks are called
};

}  // namespace latchkey::server
