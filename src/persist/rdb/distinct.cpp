#include "persist/rdb/distinct.h"

#include <algorithm>
#include <bit>

#include "base/text/number.h"

namespace latchkey::persist {

namespace {

using store::Listpack;

// Converts an element to the canonical form of all elements with the same text.
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

DistinctElements::DistinctElements(const Listpack& pack, size_t count,
                                   const base::HashSecret& secret)
    : pack_(pack), secret_(secret), table_(small_) {
  const size_t places = std::bit_ceil(count * 2 + 1);
  mask_ = places - 1;
  if (places > kSmall) {
    large_.resize(places);
    table_ = large_.data();
  }
  std::fill_n(table_, places, Place{Listpack::kNone, 0});
}

bool DistinctElements::add(Listpack::Position at, Listpack::Element element) {
  element = canonical(element);
  const uint64_t hash = hash_of(element, secret_);
  const auto half = static_cast<uint32_t>(hash >> 32);
  size_t place = hash & mask_;
  for (; table_[place].at != Listpack::kNone; place = (place + 1) & mask_) {
    if (table_[place].hash == half && same(canonical(pack_.get(table_[place].at)), element))
      return false;
  }
  table_[place] = {at, half};
  return true;
}

bool are_distinct(const Listpack& pack, size_t stride, const base::HashSecret& secret) {
  DistinctElements elements(pack, pack.size() / stride, secret);
  for (auto at = pack.first(); at != Listpack::kNone; at = step(pack, at, stride)) {
    if (!elements.add(at, pack.get(at))) return false;
  }
  return true;
}

}  // namespace latchkey::persist
