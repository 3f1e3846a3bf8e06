// Whom a thread allocates for: servers that share a thread each have an account of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/heap_use.h"

namespace latchkey::base {

// What the thread allocates and frees while the account is open, which it is from bill() until
// another is, is added to its balance. Allocations that outlive their reason, so that somebody else
// may free them, are made and freed while none is. Used by the thread that made it only. Where the
// allocator does not count by thread, all balances stay zero.
class HeapAccount {
 public:
  // A number for each account of a thread that was ever made; 0 for none.
  using Id = uint32_t;

  explicit HeapAccount(ThreadHeapUse thread = ThreadHeapUse());
  ~HeapAccount();
  HeapAccount(const HeapAccount&) = delete;
  HeapAccount& operator=(const HeapAccount&) = delete;

  // Costs a comparison when it is open, else some loads.
  void bill() {
    if (open_ != this) switch_to(this);
  }
  static void bill_none() {
    if (open_ != nullptr) switch_to(nullptr);
  }
  // The one that is open, and the same again later; none where it is gone by then.
  static Id billed() { return open_ == nullptr ? 0 : open_->id_; }
  static void bill(Id id);
  // An allocation of that size, or none (0), that was made for the open account is somebody else's
  // from here on, or the other way round.
  static void hand_over(size_t size);
  static void take_over(size_t size);

  const ThreadHeapUse& thread() const { return thread_; }
  // Bytes allocated less bytes freed, modulo 2^64, since it was made or last set.
  uint64_t balance() const {
    return open_ == this ? balance_ + (thread_.balance() - thread_when_opened_) : balance_;
  }
  void set_balance(uint64_t bytes);

 private:
  static constinit thread_local HeapAccount* open_;

  static void switch_to(HeapAccount* account);

  ThreadHeapUse thread_;
  Id id_;
  uint64_t balance_ = 0;             // without what was allocated since it was opened
  uint64_t thread_when_opened_ = 0;  // the thread's balance then
};

// Bills whoever was billed when it was made, again when it goes.
class BillingScope {
 public:
  BillingScope() = default;
  ~BillingScope() { HeapAccount::bill(before_); }
  BillingScope(const BillingScope&) = delete;
  BillingScope& operator=(const BillingScope&) = delete;

 private:
  const HeapAccount::Id before_ = HeapAccount::billed();
};

}  // namespace latchkey::base
