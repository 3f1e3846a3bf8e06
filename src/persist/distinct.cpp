#include "persist/distinct.h"

#include <bit>
#include <string_view>

#include "base/number.h"

namespace latchkey::persist {

namespace {

using store::Listpack;

// An element in the one form that all texts equal to it share.
Listpack::Element canonical(Listpack::Element element) {
  int64_t value;
  if (!element.is_integer && element.bytes.size() <= base::kMaxInt64Text &&
      base::parse_int64(element.bytes, &value))
    return {true, value, {}};
  return element;
}

bool same(const Listpack::Element& left, const Listpack::Element& right) {
  if (left.is_integer != right.is_integer) return false;
  return left.is_integer ? left.integer == right.integer : left.bytes == right.bytes;
}

uint64_t hash_of(const Listpack::Element& element, const base::HashSecret& secret) {
  if (!element.is_integer) return secret.hash(element.bytes);
  return secret.hash({reinterpret_cast<const char*>(&element.integer), sizeof element.integer});
}

Listpack::Position step(const Listpack& pack, Listpack::Position at, size_t stride) {
  for (size_t i = 0; i < stride && at != Listpack::kNone; ++i) at = pack.next(at);
  return at;
}

}  // namespace

bool are_distinct(const Listpack& pack, size_t stride, const base::HashSecret& secret) {
  const size_t count = pack.size() / stride;
  if (count < 2) return true;
  // Open addressing, at most half full; an element's position is never kNone. Small ones stay on
  // the stack.
  constexpr size_t kSmall = 256;
  Listpack::Position small[kSmall];
  std::vector<Listpack::Position> large;
  const size_t places = std::bit_ceil(count * 2);
  Listpack::Position* table = small;
  if (places > kSmall) {
    large.resize(places);
    table = large.data();
  } else {
    for (size_t i = 0; i < places; ++i) small[i] = Listpack::kNone;
  }
  for (auto at = pack.first(); at != Listpack::kNone; at = step(pack, at, stride)) {
    const Listpack::Element element = canonical(pack.get(at));
    size_t place = hash_of(element, secret) & (places - 1);
    for (; table[place] != Listpack::kNone; place = (place + 1) & (places - 1)) {
      if (same(canonical(pack.get(table[place])), element)) return false;
    }
    table[place] = at;
  }
  return true;
}

}  // namespace latchkey::persist
