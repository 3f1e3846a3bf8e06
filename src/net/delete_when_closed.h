// Deletes an object that holds a libuv handle once libuv has closed the handle. The thread may work
// for another server by then: the memory is billed to the account that was open when closing began.
#pragma once

#include <uv.h>

#include "base/heap_account.h"

namespace latchkey::net {

// What such an object begins with.
struct HandleOwner {
  base::HeapAccount::Id billed_at_close = 0;
};

// Frees the object, for whom it was closed.
template <typename Owner>
void delete_closed(Owner* owner) {
  base::HeapAccount::bill(owner->billed_at_close);
  delete owner;
  base::HeapAccount::bill_none();
}

// Closes the handle, and deletes the object then. REQUIRES: nobody uses either any more.
template <typename Owner, typename UvHandle>
void delete_when_closed(Owner* owner, UvHandle* handle) {
  owner->billed_at_close = base::HeapAccount::billed();
  handle->data = owner;
  uv_close(reinterpret_cast<uv_handle_t*>(handle),
           [](uv_handle_t* closed) { delete_closed(static_cast<Owner*>(closed->data)); });
}

}  // namespace latchkey::net
