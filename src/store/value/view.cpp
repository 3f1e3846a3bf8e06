#include "store/value/view.h"

#include "base/assert.h"
#include "store/value/hash.h"
#include "store/value/list.h"
#include "store/value/set.h"
#include "store/value/sorted_set.h"

namespace latchkey::store {

namespace {

// Calls fn with the class of values of that type, as a null pointer. Others are never packed.
template <typename Fn>
decltype(auto) with_class(Type type, Fn&& fn) {
  switch (type) {
    case Type::kList:
      return fn(static_cast<List*>(nullptr));
    case Type::kSet:
      return fn(static_cast<Set*>(nullptr));
    case Type::kSortedSet:
      return fn(static_cast<SortedSet*>(nullptr));
    default:
      LK_ASSERT(type == Type::kHash);
      return fn(static_cast<Hash*>(nullptr));
  }
}

}  // namespace

std::unique_ptr<Value> unpacked(Environment& environment, Type type, const Packed& packed) {
  return with_class(type, [&]<typename V>(V*) -> std::unique_ptr<Value> {
    return std::make_unique<V>(&environment, packed);
  });
}

size_t Entry::element_count() const {
  if (!is_packed()) return value()->element_count();
  return with_class(type(), [&]<typename V>(V*) { return View<V>(*this)->size(); });
}

}  // namespace latchkey::store
