// A collection to be read: the value of an entry, or a view of one that is packed in its entry.
//
//     const View<Hash> hash(entry);
//     hash->get("field", scratch);
//
// A packed collection is opened in place: the view holds an object whose listpack or intset are the
// entry's bytes. Nothing is allocated or copied, so it costs a few stores.
//
// Valid until the next change of the key. Code that changes a collection must call
// Keyspace::find_for_write(), which gives it an object of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include "store/entry.h"

namespace latchkey::store {

struct Environment;

// V has a constructor V(Environment*, const Packed&), which copies what is packed; without an
// environment it borrows it. Types that have none are never packed.
template <typename V>
class View {
 public:
  View() = default;  // of nothing
  // REQUIRES: the entry's type is V's.
  explicit View(const Entry& entry) {
    if (entry.is_packed()) {
      open(entry.packed());
    } else {
      value_ = static_cast<const V*>(entry.value());
    }
  }
  View(const View& other) { *this = other; }
  View& operator=(const View& other) {
    if (this == &other) return *this;
    value_ = other.value_;
    packed_ = {};
    if (!other.packed_.bytes.empty()) open(other.packed_);
    return *this;
  }
  // The object is not destroyed, because it owns nothing.
  ~View() = default;

  explicit operator bool() const { return value_ != nullptr; }
  friend bool operator==(const View& view, std::nullptr_t) { return view.value_ == nullptr; }
  const V* get() const { return value_; }
  const V& operator*() const { return *value_; }
  const V* operator->() const { return value_; }

 private:
  void open(const Packed& packed) {
    packed_ = packed;
    if constexpr (std::is_constructible_v<V, Environment*, const Packed&>)
      value_ = new (place_) V(nullptr, packed);
  }

  const V* value_ = nullptr;
  Packed packed_;
  alignas(V) std::byte place_[sizeof(V)];
};

// A new value of that type with a copy of what is packed.
std::unique_ptr<Value> unpacked(Environment& environment, Type type, const Packed& packed);

}  // namespace latchkey::store
