// What commands that take locks tell the watch of locks (locks/lock_watch.h), a layer above.
//
// Keys are taken as locks often, and little of it is ever asked for, so taking one costs a line in
// a ring of the latest ones and a bit in the key's entry (store::Entry::is_lock). The watch looks
// at what is in the ring when something else happens to one of these keys, or somebody asks; claims
// that newer ones have overwritten by then are forgotten. A client that tries again and again is
// counted here, and told of when another event of a lock comes.
//
// Server::lock_claims() is null while `lock-watch` is no.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/client/client.h"
#include "server/command/command_context.h"
#include "store/keyspace.h"

namespace latchkey::server {

// By which command a lock was taken.
enum class LockRecipe : uint8_t { kSetnx, kSetNx, kSetIf };

class LockClaims {
 public:
  virtual ~LockClaims() = default;

  // The client has made the key at `ref`, which was not there.
  void taken(CommandContext& ctx, const store::KeyRef& ref, LockRecipe recipe) {
    const store::Entry* entry = ctx.db.mark_lock(ref);
    if (nested_.command != nullptr || made_ == make_room_at_) [[unlikely]]
      return taken_slowly(ctx, *entry, recipe);
    ctx.client.flags |= kClientTookLock;
    ring_[made_++ & ring_mask_] = {entry,   ctx.client.id, ctx.now_ms(), ctx.client.total_commands,
                                   &ctx.db, recipe};
    any_ = true;
  }

  // The client wanted to make the key at `ref`, which is there.
  void refused(CommandContext& ctx, const store::KeyRef& ref, std::string_view value) {
    if (!ref->is_lock()) return;
    if (nested_.command == nullptr && &*ref == refused_.entry &&
        ctx.client.id == refused_.client_id) {
      ++refused_.count;
      refused_.time_ms = ctx.now_ms();
      refused_.request = ctx.client.total_commands;
      return;
    }
    refused_slowly(ctx, *ref, value);
  }

  // The value of the key at `ref` is about to be replaced because it was as the client expected.
  void compared(const store::KeyRef& ref) {
    if (ref && ref->is_lock()) compared_ = &*ref;
  }

  // The client asks for the value of the key at `ref`, and is about to replace it whatever it is.
  void exchanged(const store::KeyRef& ref) {
    if (ref && ref->is_lock()) exchanged_ = &*ref;
  }

  // A script has changed a field of a hash to `count`, by `change`.
  virtual void counted(CommandContext& ctx, const store::KeyRef& ref, std::string_view field,
                       int64_t change, int64_t count) = 0;

  // A command of a transaction or script begins, and ends.
  void begin_nested(const Command& command, Arguments args, bool by_script) {
    nested_ = {&command, by_script};
    if (any_) nested_begins(command, args);
  }
  void end_nested() { nested_ = {}; }
  // EXEC is about to run what was queued; the client's watched keys are still known.
  virtual void transaction_begins(Client& client) = 0;
  // The client wants to delete a key that is not there, or has another value than it expects.
  // REQUIRES: it has kClientTookLock.
  virtual void release_failed(CommandContext& ctx, std::string_view key) = 0;
  // The next key that is removed goes because memory is short; none is removed now.
  void evicting(bool begins) { evicting_ = begins; }
  // REQUIRES: it has kClientTookLock.
  virtual void client_gone(Client& client) = 0;

 protected:
  struct Claim {
    const store::Entry* entry = nullptr;
    uint64_t client_id = 0;
    int64_t time_ms = 0;
    uint64_t request = 0;  // how many requests of the client came before
    store::Keyspace* keyspace = nullptr;
    LockRecipe recipe = LockRecipe::kSetnx;
  };
  struct Refusals {
    const store::Entry* entry = nullptr;
    uint64_t client_id = 0;
    uint64_t count = 0;
    int64_t time_ms = 0;
    uint64_t request = 0;
  };
  struct Nested {
    const Command* command = nullptr;  // null: none runs
    bool by_script = false;
  };

  virtual void taken_slowly(CommandContext& ctx, const store::Entry& entry, LockRecipe recipe) = 0;
  virtual void refused_slowly(CommandContext& ctx, const store::Entry& entry,
                              std::string_view value) = 0;
  virtual void nested_begins(const Command& command, Arguments args) = 0;

  std::vector<Claim> ring_ = std::vector<Claim>(1);  // a power of two of them
  uint64_t ring_mask_ = 0;
  uint64_t made_ = 0;                        // claims since the beginning
  uint64_t make_room_at_ = 0;                // so many claims, and the ring must grow
  bool any_ = false;                         // there are locks
  Refusals refused_;                         // counted since the watch was told of the first one
  const store::Entry* compared_ = nullptr;   // the next change of it is one of a comparison
  const store::Entry* exchanged_ = nullptr;  // the next change of it gives its value back
  Nested nested_;
  bool evicting_ = false;
};

}  // namespace latchkey::server
