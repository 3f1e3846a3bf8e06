#include "base/heap_account.h"

#include <unordered_map>

#include "base/jemalloc.h"

namespace latchkey::base {

namespace {

struct Accounts {
  HeapAccount::Id last_id = 0;
  std::unordered_map<HeapAccount::Id, HeapAccount*> by_id;
};

// Never destroyed, because accounts may be destroyed after what is static.
Accounts& accounts() {
  static thread_local auto& accounts = *new Accounts;
  return accounts;
}

// What the allocator counts for an allocation of that size.
size_t taken_for(size_t size) {
  return size == 0 || nallocx == nullptr ? size : nallocx(size, 0);
}

}  // namespace

constinit thread_local HeapAccount* HeapAccount::open_ = nullptr;

HeapAccount::HeapAccount(ThreadHeapUse thread) : thread_(thread), id_(++accounts().last_id) {
  accounts().by_id.emplace(id_, this);
}

HeapAccount::~HeapAccount() {
  if (open_ == this) open_ = nullptr;
  accounts().by_id.erase(id_);
}

void HeapAccount::switch_to(HeapAccount* account) {
  if (open_ != nullptr) open_->balance_ = open_->balance();
  open_ = account;
  if (account != nullptr) account->thread_when_opened_ = account->thread_.balance();
}

void HeapAccount::bill(Id id) {
  if (id == billed()) return;
  const auto found = accounts().by_id.find(id);
  switch_to(found == accounts().by_id.end() ? nullptr : found->second);
}

void HeapAccount::transfer_out(size_t size) {
  if (open_ != nullptr && open_->thread_.is_known()) open_->balance_ -= taken_for(size);
}

void HeapAccount::transfer_in(size_t size) {
  if (open_ != nullptr && open_->thread_.is_known()) open_->balance_ += taken_for(size);
}

void HeapAccount::set_balance(uint64_t bytes) {
  balance_ = bytes;
  thread_when_opened_ = thread_.balance();
}

}  // namespace latchkey::base
