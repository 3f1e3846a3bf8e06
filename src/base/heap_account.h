// Accounts of memory: servers that share a thread each have one, which counts the bytes that the
// thread allocates and frees for that server.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/heap_use.h"

namespace latchkey::base {

// bill() opens the account, until another one is opened. What the thread allocates and frees
// meanwhile is added to its balance. An allocation that another server may free is made and freed
// while no account is open. Used only by the thread that made it. Where the allocator does not
// count by thread, all balances stay zero.
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
  // The open account, and how to open it again later; bill(id) opens none if that account has been
  // destroyed.
  static Id billed() { return open_ == nullptr ? 0 : open_->id_; }
  static void bill(Id id);
  // The open account no longer counts an allocation of that size (0: none) that was made while it
  // was open, or counts one from now on that was not.
  static void transfer_out(size_t size);
  static void transfer_in(size_t size);

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

// When it is destroyed, opens the account again that was open when it was made.
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
