#include "store/value/set.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace latchkey::store {

namespace {

bool is_integer(std::string_view text, int64_t* value) {
  return text.size() <= base::kMaxInt64Text && base::parse_int64(text, value);
}

}  // namespace

Set::Set(const Set& other) : Value(other), environment_(other.environment_) {
  if (const auto* integers = std::get_if<Intset>(&other.members_)) {
    members_ = *integers;
  } else if (const auto* pack = std::get_if<Listpack>(&other.members_)) {
    members_ = *pack;
  } else {
    members_ = std::make_unique<Table>(environment_->secret);
    other.for_each([this](std::string_view member) { add_to_table(member); });
  }
}

Set::~Set() {
  if (is_table()) for_each_prefetched(table(), Member::destroy);
}

std::string_view Set::encoding_name() const {
  switch (members_.index()) {
    case 0:
      return "intset";
    case 1:
      return "listpack";
    default:
      return "hashtable";
  }
}

size_t Set::free_effort() const {
  return is_table() ? size() : 1;
}

size_t Set::memory_usage() const {
  if (const auto* integers = std::get_if<Intset>(&members_))
    return sizeof(Set) + integers->memory_usage();
  if (const auto* pack = std::get_if<Listpack>(&members_))
    return sizeof(Set) + pack->memory_usage();
  return sizeof(Set) + sizeof(Table) + table().memory_usage() + member_bytes_;
}

void Set::prefetch(uint64_t hash, LookupStep step) const {
  if (is_table()) table().prefetch(hash, step);
}

size_t Set::size() const {
  if (const auto* integers = std::get_if<Intset>(&members_)) return integers->size();
  if (const auto* pack = std::get_if<Listpack>(&members_)) return pack->size();
  return table().size();
}

bool Set::contains(std::string_view member) const {
  if (const auto* integers = std::get_if<Intset>(&members_)) {
    int64_t value;
    return is_integer(member, &value) && integers->contains(value);
  }
  if (const auto* pack = std::get_if<Listpack>(&members_))
    return pack->find(member, pack->first()) != Listpack::kNone;
  return table().find_item(member) != nullptr;
}

// --- Changing -----------------------------------------------------------------------------------

void Set::expect(size_t count) {
  if (is_table()) return;
  if (is_intset() && count <= limits().set_max_intset_entries) return;
  if (is_intset() && size() > 0) return convert_to_table();
  if (count > limits().set_max_listpack_entries) return convert_to_table();
  if (is_intset()) members_ = Listpack();
}

bool Set::add(std::string_view member) {
  if (is_intset()) return add_to_intset(member);
  if (std::holds_alternative<Listpack>(members_)) return add_to_listpack(member);
  return add_to_table(member);
}

bool Set::add_to_intset(std::string_view member) {
  auto& integers = std::get<Intset>(members_);
  int64_t value;
  if (is_integer(member, &value)) {
    if (!integers.add(value)) return false;
    constexpr size_t kMaxIntegers = size_t{1} << 30;
    if (integers.size() > std::min(limits().set_max_intset_entries, kMaxIntegers))
      convert_to_table();
    return true;
  }
  const size_t count = integers.size();
  const size_t longest_integer = count == 0
                                     ? 0
                                     : std::max(std::to_string(integers.at(0)).size(),
                                                std::to_string(integers.at(count - 1)).size());
  if (count < limits().set_max_listpack_entries &&
      std::max(member.size(), longest_integer) <= limits().set_max_listpack_value) {
    convert_to_listpack();
    return add_to_listpack(member);
  }
  convert_to_table();
  return add_to_table(member);
}

bool Set::add_to_listpack(std::string_view member) {
  auto& pack = std::get<Listpack>(members_);
  if (pack.find(member, pack.first()) != Listpack::kNone) return false;
  if (pack.size() < limits().set_max_listpack_entries &&
      member.size() <= limits().set_max_listpack_value &&
      pack.room_for(Listpack::encoded_size(member))) {
    pack.append(member);
    return true;
  }
  convert_to_table();
  return add_to_table(member);
}

bool Set::add_to_table(std::string_view member) {
  Table& members = table();
  const uint64_t hash = members.hash(member);
  if (members.find(member, hash) != nullptr) return false;
  Member* made = Member::make(member);
  member_bytes_ += made->memory_usage();
  members.insert(made, hash);
  return true;
}

bool Set::erase(std::string_view member) {
  if (auto* integers = std::get_if<Intset>(&members_)) {
    int64_t value;
    return is_integer(member, &value) && integers->erase(value);
  }
  if (auto* pack = std::get_if<Listpack>(&members_)) {
    const auto place = pack->find(member, pack->first());
    if (place == Listpack::kNone) return false;
    pack->erase(place);
    return true;
  }
  Table& members = table();
  const uint64_t hash = members.hash(member);
  Member** slot = members.find(member, hash);
  if (slot == nullptr) return false;
  Member* erased = members.erase(slot, hash);
  member_bytes_ -= erased->memory_usage();
  Member::destroy(erased);
  return true;
}

void Set::convert_to_listpack() {
  Listpack pack;
  for_each([&](std::string_view member) { pack.append(member); });
  members_ = std::move(pack);
}

void Set::convert_to_table() {
  const auto small = std::exchange(members_, std::make_unique<Table>(environment_->secret));
  if (const auto* integers = std::get_if<Intset>(&small)) {
    char text[base::kMaxInt64Text];
    for (size_t i = 0; i < integers->size(); ++i)
      add_to_table({text, base::format_int64(integers->at(i), text)});
  } else if (const auto* pack = std::get_if<Listpack>(&small)) {
    char text[Listpack::kScratch];
    for (auto at = pack->first(); at != Listpack::kNone; at = pack->next(at))
      add_to_table(pack->get(at).text(text));
  }
}

void Set::adopt(Intset members) {
  members_ = std::move(members);
  if (size() > limits().set_max_intset_entries) convert_to_table();
}

void Set::adopt(Listpack members) {
  members_ = std::move(members);
  if (size() > limits().set_max_listpack_entries) convert_to_table();
}

void Set::compact() {
  if (!is_table() || size() > limits().set_max_listpack_entries) return;
  size_t bytes = 0;
  bool fits = true;
  for_each([&](std::string_view member) {
    fits = fits && member.size() <= limits().set_max_listpack_value;
    bytes += Listpack::encoded_size(member);
  });
  Listpack pack;
  if (!fits || !pack.room_for(bytes)) return;
  table().for_each([&](Member* member) {
    pack.append(member->text());
    Member::destroy(member);
  });
  members_ = std::move(pack);
  member_bytes_ = 0;
}

std::string Set::random(base::Random& random) const {
  LK_ASSERT(size() > 0);
  if (const auto* integers = std::get_if<Intset>(&members_))
    return std::to_string(integers->at(random.below(integers->size())));
  if (const auto* pack = std::get_if<Listpack>(&members_)) {
    char text[Listpack::kScratch];
    const auto place = pack->at(static_cast<int64_t>(random.below(pack->size())));
    return std::string(pack->get(place).text(text));
  }
  return std::string(table().random(random)->text());
}

}  // namespace latchkey::store
