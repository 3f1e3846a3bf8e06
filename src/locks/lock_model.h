// The state and history of each lock: its holder, since when and until when, the clients that were
// refused, and its events. From these LockModel derives findings (locks/findings.h).
//
// LockModel knows neither server nor commands: LockWatch calls it for each event, in order, with
// times of the server's clock. It reports only what is certain: a finding needs a key that is
// certainly a lock (Record::known_by), and connections with the same CLIENT SETNAME count as one
// client, because they may be a pool.
//
// Memory is bounded: Limits::keys records, the least recently used going first, each with a bounded
// number of clients and past holders; Limits::events in the log; kMaxFindings findings.
// An event costs a lookup, unless it is of the lock used last, and steps for the clients of that
// lock; what a lock needs once it is known is reused, so that taking and releasing it allocates
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/circular_buffer.hpp>

#include "base/digest/hash.h"
#include "base/text/glob.h"
#include "locks/findings.h"
#include "server/key_place.h"

namespace latchkey::locks {

// A client as it was when it did something.
struct Party {
  uint64_t id = 0;
  std::string name = {};
  std::string address = {};
  std::string user = {};
  // "anna", or "client 12" where it has no name.
  std::string shown() const;
};
using PartyRef = std::shared_ptr<const Party>;

// Describes the server's clients.
class Clients {
 public:
  virtual ~Clients() = default;
  virtual Party describe(uint64_t id) const = 0;
  virtual bool is_connected(uint64_t id) const = 0;
  // Whether describe() would say the same, as far as it is known: a client that has gone stays as
  // it was.
  virtual bool is_still(const Party& party) const = 0;
};

using PlaceRef = std::shared_ptr<const server::KeyPlace>;

enum class Via : uint8_t { kPlain, kTransaction, kScript };

// Who did what is told, and how.
struct Cause {
  // 0: the server by itself, or a client that nobody here knows: one of the master, of the time
  // before a restart, of the node that a slot comes from.
  uint64_t client = 0;
  int64_t time_ms = 0;  // Unix time
  Via via = Via::kPlain;
  // Which transaction or script; of a plain request how many the client had sent before. Modulo
  // 2^32: it is compared with that of the request before, or of the same one.
  uint32_t call = 0;
  // It had looked at the value in the same step, in which nobody else can have changed it.
  bool compared = false;
};

// A value by which locks are told apart; of long ones the beginning is kept.
class Token {
 public:
  static constexpr size_t kShown = 64;
  Token() = default;
  explicit Token(std::string_view text)
      : size_(text.size()), hash_(text.size() > kShown ? base::digest(text) : 0) {
    text.copy(text_.data(), kShown);
  }
  std::string_view text() const { return {text_.data(), std::min(size_, kShown)}; }
  bool operator==(const Token& other) const {
    return text_[0] == other.text_[0] && size_ == other.size_ && hash_ == other.hash_ &&
           text() == other.text();
  }

 private:
  size_t size_ = 0;
  uint64_t hash_ = 0;  // of what is longer than is kept
  std::array<char, kShown> text_{};
};

enum class EventKind : uint8_t {
  kTaken,
  kRefused,
  kDeadlineSet,
  kProlonged,
  kProlongedByLoser,
  kPersisted,
  kReleasedByComparison,
  kReleasedBlind,
  kReleasedByStranger,
  kReleasedLate,  // when it was not there any more
  kExpired,
  kTakenOver,
  kTakeoverLost,
  kOverwritten,
  kEvicted,
  kFlushed,
  kHolderGone,
  kCameBack,  // its former holder looks at it
  kReentered,
  kLeft,        // once, of several times that its holder has it
  kTokensMade,  // of a semaphore
  kTokenTaken,
  kTokenReturned,
};
// "taken", "released-blind" ...
std::string_view name_of(EventKind kind);

struct Event {
  uint64_t id = 0;
  EventKind kind = EventKind::kTaken;
  PlaceRef place = {};
  PartyRef client = {};  // null: nobody's doing
  int64_t time_ms = 0;
  int64_t last_ms = 0;  // of refusals that were counted together
  uint64_t count = 1;
  int64_t deadline_ms = -1;  // as it is now; -1: none
  uint64_t step = 0;         // LockModel::at()
};

struct Finding {
  uint64_t id = 0;  // a new one each time it is found again
  FindingKind kind = FindingKind::kNoDeadline;
  PlaceRef place = {};
  PartyRef client = {};  // who did it; null when there is nobody
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  uint64_t times = 1;
  std::string evidence = {};  // sentences that tell what was seen the last time
};

// How a lock was taken.
enum class Recipe : uint8_t {
  kSetnx,
  kSetnxExpire,             // in two requests
  kTransactionSetnxExpire,  // in one MULTI
  kScriptSetnxExpire,
  kSetNx,
  kSetNxExpiry,
  kSetIf,
  kGetset,
  kSet,        // by overwriting
  kHash,       // HINCRBY and PEXPIRE of a field that names a client, in a script
  kScriptSet,  // EXISTS and SET PX in a script
};
std::string_view name_of(Recipe recipe);

// Why a key is taken for a lock.
enum class KnownBy : uint8_t { kNothing, kPattern, kName, kToken, kUse };
std::string_view name_of(KnownBy known_by);

struct Contender {
  PartyRef client = {};
  uint64_t row = 0;         // refusals since it held the lock last
  uint64_t others_won = 0;  // how often others took it meanwhile, each in its turn
  uint64_t refused = 0;
  int64_t first_ms = 0;  // of the row
  int64_t last_ms = 0;
  Via via = Via::kPlain;
  uint32_t call = 0;           // Cause::call of the last refusal
  uint64_t same_token_at = 0;  // Record::taken when it last wanted to write the holder's token
};

// The time in which a client has a lock.
struct Hold {
  PartyRef holder = {};  // with the id 0 when nobody here knows it: any client may be it
  Token token = {};
  Recipe recipe = Recipe::kSetnx;
  Via via = Via::kPlain;
  uint32_t call = 0;
  int64_t since_ms = 0;
  int64_t deadline_ms = -1;
  int64_t deadline_set_ms = 0;           // when it was set
  std::optional<int64_t> stale_ms = {};  // the time stamp that the token is
  // When its holder gave it a deadline by another request than took it, while the key may be no
  // lock.
  std::optional<int64_t> late_deadline_ms = {};
  uint64_t prolongations = 0;
  uint64_t refused = 0;
  bool holder_gone = false;
  bool had_deadline = false;  // at some time
  int64_t count = 1;          // how often its holder has it
  bool was_left = false;      // of what was done with `count`, the last thing was to lower it
  std::vector<uint64_t> helpers = {};          // other clients that have prolonged it
  std::vector<uint64_t> takeover_losers = {};  // whose GETSET came after another's
};

// For how long it has been held; 0 where the clock was set back to a time before.
inline int64_t held_ms(const Hold& hold, int64_t now_ms) {
  return std::max<int64_t>(now_ms - hold.since_ms, 0);
}

struct PastHold {
  PartyRef holder = {};
  Token token = {};
  int64_t since_ms = 0;
  int64_t ended_ms = 0;
  EventKind end = EventKind::kExpired;
  bool noticed = false;  // its holder has noticed the loss, or a finding reports it
};

// A list of tokens: whoever takes one out may go on, and puts it back afterwards.
struct Semaphore {
  struct User {
    PartyRef client = {};
    int64_t has = 0;          // tokens
    int64_t since_ms = 0;     // when it took the last one
    bool left_trace = false;  // it has written something since, by which the token may be found
    int64_t extra = 0;        // tokens that it put back without having taken them
    int64_t extra_ms = 0;
  };
  int64_t created = 0;    // how many tokens there were
  int64_t there = 0;      // how many are in the list
  int64_t elsewhere = 0;  // how many are with clients that nobody here knows
  // No two of one id, nor of one name.
  std::vector<User> users = {};
};

struct Record {
  PlaceRef place = {};
  KnownBy known_by = KnownBy::kNothing;
  std::optional<Hold> hold = {};  // none: nobody has it
  std::vector<Contender> contenders = {};
  boost::circular_buffer<PastHold> past{};  // the latest last
  bool may_have_lost = false;               // one of these expired
  uint64_t taken = 0;
  uint64_t long_holds = 0;
  std::unique_ptr<Semaphore> semaphore{};  // null: it is a lock
  uint64_t step = 0;                       // LockModel::at() of the last use
  uint64_t used = 0;                       // the number of its last use, of all uses of records
  // The locks of one holder, in no order.
  Record** held_first = nullptr;  // where the list begins; null while nobody has it
  Record* held_before = nullptr;
  Record* held_after = nullptr;
};

// A lock that was held, to be held again when a checkpoint is rolled back to.
struct HeldLock {
  PlaceRef place;
  KnownBy known_by;
  Hold hold;
};

class LockModel {
 public:
  struct Limits {
    size_t keys = 10'000;
    size_t events = 1024;
  };
  static constexpr size_t kMaxFindings = 256;
  static constexpr size_t kMaxContenders = 64;
  static constexpr size_t kMaxPastHolds = 6;
  static constexpr size_t kMaxUsers = 256;  // of a semaphore
  // Refused so often in a row, while others took the lock, a client starves.
  static constexpr uint64_t kStarvedRefusals = 100;
  static constexpr uint64_t kStarvedTurns = 50;  // for each client that wants it

  LockModel(const Clients& clients, const base::HashSecret& secret)
      : clients_(clients), records_(0, server::KeyPlaceHash{&secret}) {}

  void set_limits(const Limits& limits);
  // What the names of locks match, separated by spaces; empty: locks are known otherwise.
  void set_patterns(std::string_view patterns);
  // Called for each finding, new or repeated.
  std::function<void(const Finding&)> on_finding;

  // --- What happens -----------------------------------------------------------------------------

  // The events of the following calls happened at this step. Steps may be reported out of order as
  // long as those of one lock are in order.
  void at(uint64_t step) { step_ = step; }
  uint64_t step() const { return step_; }
  // Called before and after many earlier steps are reported: end_replay() puts the log and the
  // records in the order of the steps. In between the limits do not hold.
  void begin_replay();
  void end_replay();

  void taken(int database, std::string_view key, const Cause& cause, Recipe recipe,
             std::string_view token, int64_t deadline_ms);
  // The client wanted it `count` times, the last time with the holder's token if `same_token`.
  void refused(int database, std::string_view key, const Cause& cause, bool same_token,
               uint64_t count = 1);
  void deadline_set(int database, std::string_view key, const Cause& cause, int64_t deadline_ms);
  enum class Set : uint8_t { kPlain, kCompared, kGetset };
  void value_set(int database, std::string_view key, const Cause& cause, Set how,
                 std::string_view token, int64_t deadline_ms);
  // It turns out to be no lock.
  void used_otherwise(int database, std::string_view key);
  void removed(int database, std::string_view key, const Cause& cause);
  // A client wants to remove the key, which is not there or has another value than it expects.
  void release_failed(int database, std::string_view key, const Cause& cause);
  // A client has read the key within a transaction or script.
  void key_read(int database, std::string_view key, const Cause& cause);
  // A field of a hash that names a client counts how often that client has the lock. `change`: by
  // how much the field was changed, to `count`. `deadline_ms`: the key's.
  void counted(int database, std::string_view key, const Cause& cause, std::string_view field,
               int64_t change, int64_t count, int64_t deadline_ms);
  // A client has changed a key (of any kind) that may be one that locks guard.
  void written(int database, std::string_view key, const Cause& cause);
  // A list of `count` tokens has been made; it is a semaphore if its name says so.
  void tokens_made(int database, std::string_view key, const Cause& cause, int64_t count);
  // A semaphore's list was changed, and has `there` tokens now. `leaves_trace`: the command has
  // written more than that list.
  void tokens_counted(int database, std::string_view key, const Cause& cause, int64_t there,
                      bool leaves_trace);
  // A client has changed a key that is no semaphore. Costs two lookups, however many semaphores
  // there are; after the client has taken tokens, once, a look at the users of those semaphores.
  void trace_left(uint64_t client);
  bool has_semaphores() const { return semaphores_ != 0; }
  bool is_semaphore(int database, std::string_view key) const;
  void expired(int database, std::string_view key, int64_t now_ms);
  void evicted(int database, std::string_view key, int64_t now_ms);
  void cleared(int database, int64_t now_ms);
  void swapped(int first, int second);
  // May be called again when it turns out that the client had more locks.
  void client_gone(uint64_t client, int64_t now_ms);
  // The locks that are held, the most recently used last; and that one of them is held again.
  std::vector<HeldLock> held() const;
  void put_back(const HeldLock& lock, int64_t now_ms);
  // Forgets everything that has happened; ids go on. Limits, patterns and guards stay.
  void reset();

  // --- Guards: which keys a lock protects -------------------------------------------------------

  static constexpr size_t kMaxGuards = 1000;
  struct Guard {
    server::KeyPlace lock;
    std::vector<base::GlobPattern> globs;
  };
  // Of the same database; takes the place of an earlier guard of the lock. False when there are as
  // many as may be.
  bool guard(int database, std::string_view lock, std::vector<base::GlobPattern> globs);
  // False when there is none.
  bool unguard(int database, std::string_view lock);
  void unguard_all() { guards_.clear(); }
  const std::vector<Guard>& guards() const { return guards_; }

  // --- What is known ----------------------------------------------------------------------------

  // Of the most recently used lock first.
  const std::list<Record>& records() const { return order_; }
  const Record* find(int database, std::string_view key) const;
  // Whether the client held the lock until it expired, and has not noticed that yet.
  bool has_lost(int database, std::string_view key, uint64_t client) const;
  // Whether any lock has expired while somebody held it, since the last reset(). Without that
  // has_lost() is false of every client. O(1).
  bool may_have_lost() const { return may_have_lost_; }
  const boost::circular_buffer<Event>& log() const { return log_; }
  // The latest last.
  const std::deque<Finding>& findings() const { return findings_; }
  uint64_t last_id() const { return last_id_; }

 private:
  // By views of Record::place.
  using Records =
      std::unordered_map<server::KeyPlaceView, std::list<Record>::iterator, server::KeyPlaceHash>;

  static bool is_of(const Record& record, int database, std::string_view key);
  // Null when it is not known. Marks it as used.
  Record* use(int database, std::string_view key);
  Record& make(int database, std::string_view key);
  void forget(std::list<Record>::iterator record);
  // Valid until the next call.
  const PartyRef& party(uint64_t client) const;
  void trim();
  bool matches_patterns(std::string_view key) const;
  KnownBy recognise(const Record& record, const Token& token) const;
  // Nobody uses what is no lock in this way. REQUIRES: it is held.
  void know_by_use(Record& record);

  void begin_hold(Record& record, const Cause& cause, Recipe recipe, const Token& token,
                  int64_t deadline_ms);
  void end_hold(Record& record, EventKind how, int64_t now_ms, const PartyRef& by);
  void join_holder(Record& record);
  void leave_holder(Record& record);
  // Whether the client may act for the holder.
  bool acts_for_holder(const Hold& hold, uint64_t client) const;
  // Of two clients that nobody here knows it is false.
  bool same_client(const Party& party, uint64_t client) const;
  // Whether the client, which does not act for the holder, is certainly not the holder on another
  // connection. False if the holder is unknown.
  static bool is_other_client(Record& record, uint64_t client);
  static Contender* find_contender(Record& record, uint64_t client);
  Contender& contender_of(Record& record, uint64_t client);
  static PastHold* lost_hold(Record& record, uint64_t client);
  static const PastHold* lost_hold(const Record& record, uint64_t client);
  // Whether the refusal came in the same step as the cause.
  static bool refused_just_now(const Hold& hold, const Contender& contender, const Cause& cause);

  void set_first_deadline(Record& record, const Cause& cause, int64_t deadline_ms);
  void prolonged_by(Record& record, const Cause& cause, int64_t deadline_ms);
  void getset(Record& record, const Cause& cause, const Token& token, int64_t deadline_ms);
  void overwrite(Record& record, const Cause& cause, const Token& token, int64_t deadline_ms);
  void released(Record& record, const Cause& cause);
  void removed_by_other(Record& record, const Cause& cause);
  void check_token(Record& record, const Token& token, uint64_t client, int64_t now_ms);
  // Finds that it had no deadline at first, unless it may be no lock.
  void check_atomic(Record& record);
  void check_starved(Record& record, Contender& contender, int64_t now_ms);
  void check_held_long(Record& record, int64_t now_ms);
  void check_reentry(Record& record, int64_t now_ms);
  Semaphore::User* user_of(Semaphore& semaphore, uint64_t client);
  Semaphore::User& add_user(Record& record, uint64_t client);
  // Takes the user out of the tables below.
  void forget_user(Record& record, const Semaphore::User& user);
  void forget_semaphore(Record& record);
  void set_trace(Record& record, Semaphore::User& user, bool left);
  void token_taken(Record& record, const Cause& cause, int64_t count, bool leaves_trace);
  void token_returned(Record& record, const Cause& cause, int64_t count);
  void tokens_lost_with(uint64_t client, int64_t now_ms);
  void check_outlived(Record& record, std::string_view key, const Cause& cause);

  Event& add_event(EventKind kind, const Record& record, const PartyRef& client, int64_t time_ms);
  void add_finding(FindingKind kind, const Record& record, PartyRef client, int64_t now_ms,
                   std::string evidence);

  const Clients& clients_;
  Limits limits_;
  std::vector<base::GlobPattern> patterns_;
  std::vector<Guard> guards_;
  std::list<Record> order_;  // the most recently used first
  Records records_;
  // Where the list of a client's locks begins, until the client has gone and has none.
  std::unordered_map<uint64_t, Record*> held_by_;
  // Described before, by the lowest bits of their ids.
  mutable std::array<PartyRef, 64> parties_;
  boost::circular_buffer<Event> log_;  // has space once there was an event
  std::deque<Finding> findings_;
  uint64_t last_id_ = 0;
  uint64_t step_ = 0;
  uint64_t uses_ = 0;  // of records
  size_t semaphores_ = 0;
  // The semaphores of which a client is a user; and those of them in which it has left no trace, by
  // what same_client() compares.
  std::unordered_map<uint64_t, std::unordered_set<Record*>> semaphores_of_;
  std::unordered_map<uint64_t, std::unordered_set<Record*>> traceless_;
  std::map<std::string, std::unordered_set<Record*>> traceless_by_name_;
  bool may_have_lost_ = false;
  bool replays_past_ = false;
};

}  // namespace latchkey::locks
