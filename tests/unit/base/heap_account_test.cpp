#include "base/heap_account.h"

#include <memory>

#include "unit/catch.h"

using latchkey::base::HeapAccount;
using latchkey::base::ThreadHeapUse;

namespace {

// A thread's counters, and an account of it.
struct Counted {
  uint64_t allocated = 1000;
  uint64_t freed = 0;

  std::unique_ptr<HeapAccount> account() {
    return std::make_unique<HeapAccount>(ThreadHeapUse(&allocated, &freed));
  }
  ~Counted() { HeapAccount::bill_none(); }
};

}  // namespace

TEST_CASE("Who is billed pays for what is allocated meanwhile, and gets what is freed") {
  Counted thread;
  const auto one = thread.account();
  const auto two = thread.account();
  one->bill();
  thread.allocated += 100;
  CHECK(one->balance() == 100);
  one->bill();
  two->bill();
  thread.allocated += 10;
  thread.freed += 3;
  CHECK(one->balance() == 100);
  CHECK(two->balance() == 7);
  HeapAccount::bill_none();
  thread.allocated += 1000;
  one->bill();
  thread.freed += 60;
  HeapAccount::bill_none();
  CHECK(one->balance() == 40);
  CHECK(two->balance() == 7);
}

TEST_CASE("Memory that is handed over is no longer billed, and whoever takes it is") {
  Counted thread;
  const auto one = thread.account();
  const auto two = thread.account();
  HeapAccount::transfer_in(5);
  one->bill();
  thread.allocated += 100;
  HeapAccount::transfer_out(30);
  two->bill();
  HeapAccount::transfer_in(30);
  CHECK(one->balance() == 70);
  CHECK(two->balance() == 30);
  two->set_balance(500);
  thread.freed += 200;
  CHECK(two->balance() == 300);
}

TEST_CASE("An account is billed again by its number, and none when it is gone") {
  Counted thread;
  CHECK(HeapAccount::billed() == 0);
  const auto one = thread.account();
  auto two = thread.account();
  two->bill();
  const HeapAccount::Id number = HeapAccount::billed();
  one->bill();
  CHECK(HeapAccount::billed() != number);
  HeapAccount::bill(number);
  thread.allocated += 10;
  CHECK(two->balance() == 10);
  CHECK(one->balance() == 0);
  two.reset();
  CHECK(HeapAccount::billed() == 0);
  one->bill();
  HeapAccount::bill(number);
  thread.allocated += 10;
  CHECK(one->balance() == 0);
  CHECK(HeapAccount::billed() == 0);
  HeapAccount::bill(0);
  CHECK(HeapAccount::billed() == 0);
}

TEST_CASE("Where nobody counts, nothing is handed over") {
  const auto one = std::make_unique<HeapAccount>(ThreadHeapUse(nullptr, nullptr));
  one->bill();
  HeapAccount::transfer_out(30);
  HeapAccount::transfer_in(7);
  CHECK(one->balance() == 0);
  HeapAccount::bill_none();
}
