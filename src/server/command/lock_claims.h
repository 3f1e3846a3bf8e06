// LockClaims: commands that take locks report it here to the watch of locks (locks/lock_watch.h), a
// layer above.
//
// Locks are taken often, and the history of few is ever requested. So the usual events of a lock
// (it is taken, refused to others, released by the client that took it) are steps in a ring of the
// latest ones, and a bit in the key's entry (store::Entry::is_lock). The watch evaluates the steps
// of a key when something else happens to it, and all steps on request; steps that newer ones have
// overwritten by then are forgotten.
//
// Server::lock_claims() is null while `lock-watch` is no.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/digest/hash.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/command/command_table.h"
#include "store/keyspace.h"

namespace latchkey::server {

// By which command a lock was taken.
enum class LockRecipe : uint8_t { kSetnx, kSetNx, kSetIf, kScriptSet };

// A lock was taken, or a client that wanted it was refused. Half a cache line, for thousands of
// them pass through the processor's caches beside the dataset; and without bit-fields, which would
// have the step that was in its place read first.
struct LockStep {
  static constexpr int kMaxDatabase = (1 << 16) - 1;
  static constexpr uint32_t kMaxBack = (1u << 24) - 1;

  // Of bits_and_back: the lowest two bits are a LockRecipe, the next two a locks::Via. Then:
  // a client was refused (LockClaims::rows_ has how often); otherwise the lock was taken,
  static constexpr uint32_t kRefused = 1u << 4;
  // it was released by the client that took it, and `entry` does not exist any more,
  static constexpr uint32_t kEnded = 1u << 5;
  // it was refused with the value that the lock has.
  static constexpr uint32_t kSameToken = 1u << 6;
  static constexpr int kViaShift = 2;
  static constexpr int kBackShift = 8;

  const store::Entry* entry = nullptr;  // null when the watch does not need the step any more
  uint64_t client_id = 0;               // locks::Cause::client
  uint64_t time_and_database = 0;       // see at()
  uint32_t call = 0;                    // locks::Cause::call
  uint32_t bits_and_back = 0;

  // REQUIRES: the time is up to base::SettableClock::kMaxUs, and the number of the database up to
  // kMaxDatabase.
  static uint64_t at(int64_t time_ms, int database) {
    return static_cast<uint64_t>(time_ms) << 16 | static_cast<uint64_t>(database);
  }
  int64_t time_ms() const { return static_cast<int64_t>(time_and_database >> 16); }
  int database() const { return static_cast<int>(time_and_database & 0xffff); }
  uint32_t recipe() const { return bits_and_back & 3; }
  uint32_t via() const { return bits_and_back >> kViaShift & 3; }
  bool is(uint32_t bit) const { return (bits_and_back & bit) != 0; }
  // How many steps before there is another one of the same bucket; 0 or too many: none.
  uint32_t back() const { return bits_and_back >> kBackShift; }
  void set_back(uint32_t steps) {
    constexpr uint32_t kBits = (1u << kBackShift) - 1;
    const uint32_t back = std::min(steps, kMaxBack) << kBackShift;
    bits_and_back = (bits_and_back & kBits) | back;
  }
};
static_assert(sizeof(LockStep) == 32);

class LockClaims {
 public:
  virtual ~LockClaims() = default;

  // A client with such a flag runs requests of clients that this server does not know: the
  // master's, those of the append-only file, those of the node that a slot comes from.
  static constexpr uint32_t kStandsForOthers = kClientMaster | kClientInternal;

  // The client has created the key at `ref`.
  void taken(CommandContext& ctx, const store::KeyRef& ref, LockRecipe recipe) {
    const store::Entry* entry = ctx.db.mark_lock(ref);
    if (nested_.command != nullptr || made_ == make_room_at_ ||
        ctx.db.index() > LockStep::kMaxDatabase || ctx.client.has(kStandsForOthers)) [[unlikely]]
      return taken_slowly(ctx, ref, recipe);
    ctx.client.flags |= kClientTookLock;
    add_step(ref.hash(), {.entry = entry,
                          .client_id = ctx.client.id,
                          .time_and_database = LockStep::at(ctx.now_ms(), ctx.db.index()),
                          .call = static_cast<uint32_t>(ctx.client.total_commands),
                          .bits_and_back = static_cast<uint32_t>(recipe)});
    any_ = true;
  }

  // The client wanted to create the key at `ref`, which exists.
  void refused(CommandContext& ctx, const store::KeyRef& ref, std::string_view value) {
    if (!ref->is_lock()) return;
    const size_t at = buckets_[ref.hash() & ring_mask_] & ring_mask_;
    LockStep& newest = ring_[at];
    if (newest.entry != &*ref || newest.client_id != ctx.client.id ||
        !newest.is(LockStep::kRefused) || nested_.command != nullptr)
      return refused_slowly(ctx, ref, value);
    ++rows_[at].refusals;
    rows_[at].last_ms = ctx.now_ms();
    newest.call = static_cast<uint32_t>(ctx.client.total_commands);
  }

  // The key at `ref` is about to be replaced or removed because its value is as the client expects.
  // REQUIRES: the value has been compared, and the next change of a lock is this one.
  void compared(const store::KeyRef& ref) {
    if (ref && ref->is_lock()) compared_ = &*ref;
  }

  // The client asks for the value of the key at `ref`, and is about to replace it whatever it is.
  // REQUIRES: the next change of a lock is this one.
  void exchanged(const store::KeyRef& ref) {
    if (ref && ref->is_lock()) exchanged_ = &*ref;
  }

  // A script has changed a field of a hash to `count`, by `change`.
  virtual void counted(CommandContext& ctx, const store::KeyRef& ref, std::string_view field,
                       int64_t change, int64_t count) = 0;

  // A script has created the key at `ref` with a deadline. That takes a lock if the script has
  // checked before whether the key exists.
  virtual void made_by_script(CommandContext& ctx, const store::KeyRef& ref) = 0;

  // A list of so many elements has been created; called before KeyspaceEvents::changed(). A list
  // that a client creates with a single element outside of transactions is seldom a semaphore.
  void list_made(CommandContext& ctx, std::string_view key, size_t elements) {
    if (nested_.command != nullptr || elements > 1) list_made_slowly(ctx, key, elements);
  }

  // A command of a transaction or script begins, and ends.
  void begin_nested(const Command& command, Arguments args, bool by_script) {
    nested_ = {&command, by_script};
    if (any_) {
      nested_begins(command, args);
    } else if (args.size() == 2 && std::string_view(command.full_name) == "exists") {
      // Without locks only a check whether a lock exists is of interest.
      looked_for_ = base::digest(args[1]);
    }
  }
  void end_nested() { nested_ = {}; }
  // EXEC is about to run what was queued; the client's watched keys are still known.
  virtual void transaction_begins(Client& client) = 0;
  // The client wants to delete a key that does not exist, or has another value than it expects.
  // REQUIRES: it has kClientTookLock.
  virtual void release_failed(CommandContext& ctx, std::string_view key) = 0;
  // While it exists, keys are removed because memory is short. `claims` may be null.
  class [[nodiscard]] Evicting {
   public:
    explicit Evicting(LockClaims* claims) : claims_(claims) { set(true); }
    ~Evicting() { set(false); }
    Evicting(const Evicting&) = delete;
    Evicting& operator=(const Evicting&) = delete;

   private:
    void set(bool on) {
      if (claims_ != nullptr) claims_->evicting_ = on;
    }
    LockClaims* claims_;
  };
  // REQUIRES: it has kClientTookLock.
  virtual void client_gone(Client& client) = 0;

 protected:
  struct Nested {
    const Command* command = nullptr;  // null: none runs
    bool by_script = false;
  };

  // Refusals in a row, which are one step.
  struct Row {
    uint64_t refusals = 0;
    int64_t last_ms = 0;
  };

  // The next step of the ring, all of it but `back`, of a key with this hash.
  void add_step(uint64_t hash, LockStep step) {
    uint32_t& newest = buckets_[hash & ring_mask_];
    const auto number = static_cast<uint32_t>(made_);
    step.set_back(number - newest);
    ring_[made_++ & ring_mask_] = step;
    newest = number;
  }

  virtual void taken_slowly(CommandContext& ctx, const store::KeyRef& ref, LockRecipe recipe) = 0;
  virtual void refused_slowly(CommandContext& ctx, const store::KeyRef& ref,
                              std::string_view value) = 0;
  virtual void nested_begins(const Command& command, Arguments args) = 0;
  virtual void list_made_slowly(CommandContext& ctx, std::string_view key, size_t elements) = 0;

  std::vector<LockStep> ring_ = std::vector<LockStep>(1);  // a power of two of them
  std::vector<Row> rows_ = std::vector<Row>(1);            // as many
  // The number of the newest step of a key with that hash; as many as steps.
  std::vector<uint32_t> buckets_ = std::vector<uint32_t>(1);
  uint64_t ring_mask_ = 0;
  uint64_t made_ = 0;                        // steps since the beginning
  uint64_t make_room_at_ = 0;                // so many steps, and the ring must grow
  bool any_ = false;                         // there are locks
  uint64_t looked_for_ = 0;                  // digest of the key that EXISTS was last asked for
  const store::Entry* compared_ = nullptr;   // the next change of it is one of a comparison
  const store::Entry* exchanged_ = nullptr;  // the next change of it gives its value back
  Nested nested_;
  bool evicting_ = false;
};

}  // namespace latchkey::server
