#include "store/value/set.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace latchkey::store {

namespace {

bool is_integer(std::string_view text, int64_t* value) {
  return text.size() <= base::kMaxInt64Text && base::parse_int64(text, value);
}

}  // namespace

Set::Set(const Environment* environment, const Packed& packed)
    : form_(packed.is_intset ? Form::kIntset : Form::kListpack), environment_(environment) {
  const bool owned = environment != nullptr;
  if (packed.is_intset) {
    new (&intset_) Intset(Intset::open(packed.bytes, owned));
  } else {
    new (&listpack_) Listpack(Listpack::open(packed.bytes, owned));
  }
}

Set::Set(const Set& other) : Value(other), environment_(other.environment_), intset_() {
  if (const Intset* integers = other.intset_or_null()) {
    become(*integers);
  } else if (const Listpack* pack = other.listpack_or_null()) {
    become(*pack);
  } else {
    auto large = std::make_unique<Large>(environment_->secret);
    other.for_each([&](std::string_view member) { large->add(member); });
    become(std::move(large));
  }
}

Set::~Set() {
  drop();
}

void Set::drop() {
  switch (form_) {
    case Form::kIntset:
      intset_.~Intset();
      return;
    case Form::kListpack:
      listpack_.~Listpack();
      return;
    case Form::kTable:
      delete large_;
  }
}

void Set::become(Intset members) {
  drop();
  new (&intset_) Intset(std::move(members));
  form_ = Form::kIntset;
}

void Set::become(Listpack members) {
  drop();
  new (&listpack_) Listpack(std::move(members));
  form_ = Form::kListpack;
}

void Set::become(std::unique_ptr<Large> members) {
  drop();
  large_ = members.release();
  form_ = Form::kTable;
}

std::string_view Set::encoding_name() const {
  switch (form_) {
    case Form::kIntset:
      return "intset";
    case Form::kListpack:
      return "listpack";
    default:
      return "hashtable";
  }
}

Packed Set::packed() const {
  if (is_table()) return {};
  return {is_intset() ? intset_.bytes() : listpack_.bytes(), is_intset()};
}

size_t Set::free_effort() const {
  return is_table() ? size() : 1;
}

size_t Set::memory_usage() const {
  if (const Intset* integers = intset_or_null()) return sizeof(Set) + integers->memory_usage();
  if (const Listpack* pack = listpack_or_null()) return sizeof(Set) + pack->memory_usage();
  return sizeof(Set) + sizeof(Large) + table().memory_usage() + large_->member_bytes;
}

void Set::prefetch(uint64_t hash, LookupStep step) const {
  if (is_table()) table().prefetch(hash, step);
}

size_t Set::size() const {
  if (const Intset* integers = intset_or_null()) return integers->size();
  if (const Listpack* pack = listpack_or_null()) return pack->size();
  return table().size();
}

bool Set::contains(std::string_view member) const {
  if (const Intset* integers = intset_or_null()) {
    int64_t value;
    return is_integer(member, &value) && integers->contains(value);
  }
  if (const Listpack* pack = listpack_or_null())
    return pack->find(member, pack->first()) != Listpack::kNone;
  return table().find_item(member) != nullptr;
}

// --- Changing -----------------------------------------------------------------------------------

void Set::expect(size_t count) {
  if (is_table()) return;
  if (is_intset() && count <= limits().set_max_intset_entries) return;
  if (is_intset() && size() > 0) return convert_to_table();
  if (count > limits().set_max_listpack_entries) return convert_to_table();
  if (is_intset()) become(Listpack());
}

bool Set::add(std::string_view member) {
  if (is_intset()) return add_to_intset(member);
  if (!is_table()) return add_to_listpack(member);
  return large_->add(member);
}

bool Set::add_to_intset(std::string_view member) {
  Intset& integers = intset_;
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
  return large_->add(member);
}

bool Set::add_to_listpack(std::string_view member) {
  Listpack& pack = listpack_;
  if (pack.find(member, pack.first()) != Listpack::kNone) return false;
  if (pack.size() < limits().set_max_listpack_entries &&
      member.size() <= limits().set_max_listpack_value &&
      pack.room_for(Listpack::encoded_size(member))) {
    pack.append(member);
    return true;
  }
  convert_to_table();
  return large_->add(member);
}

bool Set::Large::add(std::string_view member) {
  const uint64_t hash = table.hash(member);
  if (table.find(member, hash) != nullptr) return false;
  Member* made = Member::make(member);
  member_bytes += made->memory_usage();
  table.insert(made, hash);
  return true;
}

bool Set::erase(std::string_view member) {
  if (is_intset()) {
    int64_t value;
    return is_integer(member, &value) && intset_.erase(value);
  }
  if (!is_table()) {
    const auto place = listpack_.find(member, listpack_.first());
    if (place == Listpack::kNone) return false;
    listpack_.erase(place);
    return true;
  }
  Table& members = table();
  const uint64_t hash = members.hash(member);
  Member** slot = members.find(member, hash);
  if (slot == nullptr) return false;
  Member* erased = members.erase(slot, hash);
  large_->member_bytes -= erased->memory_usage();
  Member::destroy(erased);
  return true;
}

void Set::convert_to_listpack() {
  Listpack pack;
  for_each([&](std::string_view member) { pack.append(member); });
  become(std::move(pack));
}

void Set::convert_to_table() {
  auto large = std::make_unique<Large>(environment_->secret);
  for_each([&](std::string_view member) { large->add(member); });
  become(std::move(large));
}

void Set::adopt(Intset members) {
  become(std::move(members));
  if (size() > limits().set_max_intset_entries) convert_to_table();
}

void Set::adopt(Listpack members) {
  become(std::move(members));
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
  table().for_each([&](const Member* member) { pack.append(member->text()); });
  become(std::move(pack));
}

void Set::choose_encoding(bool prefers_intset) {
  if (is_table() && prefers_intset) compact_integers();
  if (is_table()) return compact();
  if (!is_within_limits()) convert_to_table();
}

// REQUIRES: it is no table.
bool Set::is_within_limits() const {
  if (is_intset()) return size() <= limits().set_max_intset_entries;
  bool fits = size() <= limits().set_max_listpack_entries;
  for_each_while([&](std::string_view member) {
    fits = fits && member.size() <= limits().set_max_listpack_value;
    return fits;
  });
  return fits;
}

void Set::compact_integers() {
  if (size() > limits().set_max_intset_entries) return;
  std::vector<int64_t> values;
  for_each_while([&](std::string_view member) {
    int64_t value;
    const bool fits = is_integer(member, &value);
    if (fits) values.push_back(value);
    return fits;
  });
  if (values.size() != size()) return;
  std::sort(values.begin(), values.end());
  Intset integers;
  for (const int64_t value : values) integers.add(value);
  become(std::move(integers));
}

std::string Set::random(base::Random& random) const {
  LK_ASSERT(size() > 0);
  if (const Intset* integers = intset_or_null())
    return std::to_string(integers->at(random.below(integers->size())));
  if (const Listpack* pack = listpack_or_null()) {
    char text[Listpack::kScratch];
    const auto place = pack->at(static_cast<int64_t>(random.below(pack->size())));
    return std::string(pack->get(place).text(text));
  }
  return std::string(table().random(random)->text());
}

}  // namespace latchkey::store
