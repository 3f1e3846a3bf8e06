#include "store/value/hash.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace latchkey::store {

namespace {

// Stored in a listpack as the deadline of a field that has none.
constexpr int64_t kNoneStored = 0;
// Set instead of that.
constexpr int64_t kFirstDeadline = 1;
// The most bytes that a deadline takes there.
const size_t kDeadlineSize = Listpack::encoded_size(Hash::kMaxDeadline);

}  // namespace

Hash::~Hash() {
  is_table() ? delete table_ : listpack_.~Listpack();
  if (is_prepared_) delete prepared_;
  if (shares_names()) names_->release();
}

std::string_view Hash::encoding_name() const {
  if (is_table()) return "hashtable";
  if (shares_names()) return "template-listpack";
  return is_prepared() ? "listpackex" : "listpack";
}

size_t Hash::memory_usage() const {
  size_t held = sizeof(Hash) + (is_prepared() ? sizeof(Prepared) : 0);
  if (shares_names()) held += names_->shared_memory_usage();
  if (!is_table()) return held + listpack_.memory_usage();
  held += sizeof(Table) + table_->items.memory_usage() + table_->item_bytes;
  return held + table_->deadlines.memory_usage();
}

void Hash::prefetch(uint64_t hash, LookupStep step) const {
  if (is_table()) return table_->items.prefetch(hash, step);
  if (step == LookupStep::kBucket) listpack_.prefetch();
}

Value* Hash::clone() const {
  auto copy = std::make_unique<Hash>(environment());
  if (is_prepared()) copy->prepare_node();
  if (!is_table()) {
    copy->listpack_ = listpack_;
    if (shares_names()) copy->take_names(FieldNamesRef(*names_));
    return copy.release();
  }
  copy->replace_listpack(std::make_unique<Table>(environment().secret));
  for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
    copy->table_->insert(field, value, deadline_ms);
  });
  return copy.release();
}

size_t Hash::living() const {
  if (!has_due()) return size();
  size_t living = 0;
  for_each([&](std::string_view, std::string_view) { ++living; });
  return living;
}

// --- Reading ------------------------------------------------------------------------------------

std::optional<std::string_view> Hash::get(std::string_view field, char* scratch) const {
  if (is_table()) {
    Item* item = table_->items.find_item(field);
    if (item == nullptr || is_due(table_->deadline_ms(*item))) return std::nullopt;
    return item->value();
  }
  if (shares_names()) {
    const size_t index = names_->find(field);
    if (index == FieldNames::kAbsent) return std::nullopt;
    return value_at(index).text(scratch);
  }
  const Listpack::Position at = find(field);
  if (at == Listpack::kNone || is_due(deadline_at(at))) return std::nullopt;
  return listpack_.get(value_of(at)).text(scratch);
}

bool Hash::contains(std::string_view field) const {
  const std::optional<int64_t> deadline = deadline_ms(field);
  return deadline && !is_due(*deadline);
}

std::optional<int64_t> Hash::deadline_ms(std::string_view field) const {
  if (is_table()) {
    Item* item = table_->items.find_item(field);
    if (item == nullptr) return std::nullopt;
    return table_->deadline_ms(*item);
  }
  if (shares_names())
    return names_->find(field) != FieldNames::kAbsent ? std::optional(kNoDeadline) : std::nullopt;
  const Listpack::Position at = find(field);
  if (at == Listpack::kNone) return std::nullopt;
  return deadline_at(at);
}

int64_t Hash::first_deadline_ms() const {
  if (!is_prepared()) return kNoDeadline;
  if (is_table())
    return table_->deadlines.empty() ? kNoDeadline : table_->deadlines.first_deadline_ms();
  const Listpack::Position first = listpack_.first();
  return first == Listpack::kNone ? kNoDeadline : deadline_at(first);
}

// --- Changing -----------------------------------------------------------------------------------

void Hash::expect(size_t fields) {
  if (!is_table() && fields > environment().limits.hash_max_listpack_entries) become_table();
}

void Hash::adopt(Listpack fields) {
  listpack_ = std::move(fields);
  expect(size());
}

bool Hash::set(std::string_view field, std::string_view value, int64_t deadline_ms) {
  LK_ASSERT(deadline_ms < 0 || is_prepared());
  if (deadline_ms == kNoneStored) deadline_ms = kFirstDeadline;
  if (!is_table() && !fits(field, value)) become_table();
  if (is_table()) return set_in_table(field, value, deadline_ms);
  return shares_names() ? set_value(field, value) : set_in_listpack(field, value, deadline_ms);
}

bool Hash::erase(std::string_view field) {
  if (is_table()) return table_->erase(field);
  if (shares_names()) return erase_value(field);
  const Listpack::Position at = find(field);
  if (at == Listpack::kNone) return false;
  listpack_.erase(at, stride());
  return true;
}

void Hash::prepare_deadlines() {
  if (is_prepared()) return;
  if (shares_names()) stop_sharing_names();
  if (!is_table() && !listpack_.room_for(size() * kDeadlineSize)) become_table();
  if (!is_table()) {
    Listpack prepared;
    for_each_stored([&](std::string_view field, std::string_view value, int64_t) {
      prepared.append(field);
      prepared.append(value);
      prepared.append(kNoneStored);
    });
    listpack_ = std::move(prepared);
  }
  prepare_node();
}

void Hash::prepare_node() {
  prepared_ = new Prepared(*environment_);
  is_prepared_ = true;
}

void Hash::set_deadline(std::string_view field, int64_t deadline_ms) {
  LK_ASSERT(deadline_ms < 0 || is_prepared());
  if (deadline_ms == kNoneStored) deadline_ms = kFirstDeadline;
  if (!is_prepared()) return;
  if (!is_table() && !listpack_.room_for(kDeadlineSize)) become_table();
  if (!is_table()) return move_in_listpack(find(field), deadline_ms);
  Item** slot = table_->items.find(field, table_->items.hash(field));
  table_->replace(slot, (*slot)->value(), deadline_ms);
}

bool Hash::expire(std::string_view field) {
  if (environment().expired != Environment::Expired::kRemove || !has_due()) return false;
  const std::optional<int64_t> deadline = deadline_ms(field);
  if (!deadline || !is_due(*deadline)) return false;
  name_expired(field);
  erase(field);
  ++environment().figures.expired_elements;
  return true;
}

size_t Hash::expire_elements(size_t budget) {
  if (environment().expired != Environment::Expired::kRemove) return 0;
  size_t removed = 0;
  if (is_table()) {
    for (; removed < budget && has_due(); ++removed) {
      const std::string_view field = table_->deadlines.first().field();
      name_expired(field);
      table_->erase(field);
    }
  } else if (is_prepared()) {
    Listpack::Position at = listpack_.first();
    char scratch[kScratch];
    for (; removed < budget && at != Listpack::kNone && is_due(deadline_at(at)); ++removed) {
      name_expired(listpack_.get(at).text(scratch));
      at = after(at);
    }
    if (removed > 0) listpack_.erase(listpack_.first(), removed * stride());
  }
  environment().figures.expired_elements += removed;
  return removed;
}

void Hash::name_expired(std::string_view field) {
  if (environment().name_expired_elements) environment().expired_names.emplace_back(field);
}

// --- As a listpack ------------------------------------------------------------------------------

int64_t Hash::deadline_at(Listpack::Position at) const {
  if (!is_prepared()) return kNoDeadline;
  const int64_t stored = listpack_.get(deadline_of(at)).integer;
  return stored == kNoneStored ? kNoDeadline : stored;
}

bool Hash::fits(std::string_view field, std::string_view value) const {
  const size_t longest = environment().limits.hash_max_listpack_value;
  if (field.size() > longest || value.size() > longest) return false;
  return listpack_.room_for(Listpack::encoded_size(field) + Listpack::encoded_size(value) +
                            kDeadlineSize);
}

void Hash::insert_in_listpack(std::string_view field, std::string_view value, int64_t deadline_ms) {
  if (!is_prepared() || deadline_ms < 0) {
    listpack_.append(field);
    listpack_.append(value);
    if (is_prepared()) listpack_.append(kNoneStored);
    return;
  }
  // Inserted before fields with the same deadline, as in the reference.
  Listpack::Position at = listpack_.first();
  while (at != Listpack::kNone && deadline_at(at) >= 0 && deadline_at(at) < deadline_ms)
    at = after(at);
  at = listpack_.insert_before(at, deadline_ms);
  at = listpack_.insert_before(at, value);
  listpack_.insert_before(at, field);
}

bool Hash::set_in_listpack(std::string_view field, std::string_view value, int64_t deadline_ms) {
  const Listpack::Position at = find(field);
  const bool is_new = at == Listpack::kNone;
  if (is_new) {
    insert_in_listpack(field, value, deadline_ms);
  } else {
    listpack_.replace(value_of(at), value);
    if (is_prepared() && deadline_ms != kKeepDeadline) move_in_listpack(at, deadline_ms);
  }
  // Checked even if the field is not new, since the limit may have been lowered.
  if (size() > environment().limits.hash_max_listpack_entries) become_table();
  return is_new;
}

void Hash::move_in_listpack(Listpack::Position at, int64_t deadline_ms) {
  if (deadline_ms == kNoDeadline && deadline_at(at) == kNoDeadline) return;
  char scratch[kScratch];
  const std::string field(listpack_.get(at).text(scratch));
  const std::string value(listpack_.get(value_of(at)).text(scratch));
  listpack_.erase(at, stride());
  insert_in_listpack(field, value, deadline_ms);
}

// --- As values whose names are shared -----------------------------------------------------------

void Hash::share_names() {
  if (form_ != Form::kListpack || is_prepared() || listpack_.empty()) return;
  // Texts of numbers are made when they are read; the others are views of the listpack.
  std::vector<std::array<char, kScratch>> scratches(size());
  std::vector<std::pair<std::string_view, Listpack::Position>> fields;
  fields.reserve(size());
  for (Listpack::Position at = listpack_.first(); at != Listpack::kNone; at = after(at)) {
    char* scratch = scratches[fields.size()].data();
    fields.emplace_back(listpack_.get(at).text(scratch), value_of(at));
  }
  std::sort(fields.begin(), fields.end(), [](const auto& one, const auto& other) {
    return FieldNames::precedes(one.first, other.first);
  });
  std::vector<std::string_view> names;
  names.reserve(fields.size());
  Listpack values;
  char scratch[kScratch];
  for (const auto& [name, value] : fields) {
    names.push_back(name);
    values.append(listpack_.get(value).text(scratch));
  }
  FieldNamesRef list = environment().field_names.get(environment(), names);
  listpack_ = std::move(values);
  take_names(std::move(list));
}

void Hash::assign(const FieldNames& names, std::span<const uint32_t> order,
                  std::span<const std::string_view> values) {
  LK_ASSERT(form_ == Form::kListpack && listpack_.empty() && !is_prepared());
  LK_ASSERT(order.size() == names.size() && values.size() == names.size());
  const ValueLimits& limits = environment().limits;
  bool is_small = names.size() <= limits.hash_max_listpack_entries;
  for (size_t i = 0; is_small && i < values.size(); ++i)
    is_small = names[i].size() <= limits.hash_max_listpack_value &&
               values[i].size() <= limits.hash_max_listpack_value;
  if (!is_small) {
    become_table();
    for (size_t i = 0; i < names.size(); ++i)
      table_->insert(names[i], values[order[i]], kNoDeadline);
    return;
  }
  for (const uint32_t value : order) listpack_.append(values[value]);
  take_names(FieldNamesRef(names));
}

bool Hash::set_value(std::string_view field, std::string_view value) {
  const size_t index = names_->find(field);
  const bool is_new = index == FieldNames::kAbsent;
  if (is_new) {
    const std::span<const std::string_view> old = names_->all();
    std::vector<std::string_view> names(old.begin(), old.end());
    const auto place = std::lower_bound(names.begin(), names.end(), field, FieldNames::precedes);
    const auto before = static_cast<size_t>(place - names.begin());
    names.insert(place, field);
    FieldNamesRef list = environment().field_names.get(environment(), names);
    if (before == old.size()) {
      listpack_.append(value);
    } else {
      listpack_.insert_before(listpack_.at(static_cast<int64_t>(before)), value);
    }
    take_names(std::move(list));
  } else {
    listpack_.replace(listpack_.at(static_cast<int64_t>(index)), value);
  }
  if (size() > environment().limits.hash_max_listpack_entries) become_table();
  return is_new;
}

bool Hash::erase_value(std::string_view field) {
  const size_t index = names_->find(field);
  if (index == FieldNames::kAbsent) return false;
  if (names_->size() == 1) {
    stop_sharing_names();
    listpack_ = Listpack();
    return true;
  }
  std::vector<std::string_view> names(names_->all().begin(), names_->all().end());
  names.erase(names.begin() + static_cast<std::ptrdiff_t>(index));
  FieldNamesRef list = environment().field_names.get(environment(), names);
  listpack_.erase(listpack_.at(static_cast<int64_t>(index)), 1);
  take_names(std::move(list));
  return true;
}

void Hash::take_names(FieldNamesRef names) {
  if (shares_names()) names_->release();
  names_ = names.take();
  form_ = Form::kValues;
}

void Hash::stop_sharing_names() {
  Listpack fields;
  for_each_value([&](std::string_view field, std::string_view value, int64_t) {
    fields.append(field);
    fields.append(value);
  });
  Environment& environment = names_->environment();
  names_->release();
  environment_ = &environment;
  listpack_ = std::move(fields);
  form_ = Form::kListpack;
}

// --- As a table ---------------------------------------------------------------------------------

void Hash::become_table() {
  auto table = std::make_unique<Table>(environment().secret);
  for_each_stored([&](std::string_view field, std::string_view value, int64_t deadline_ms) {
    table->insert(field, value, deadline_ms);
  });
  replace_listpack(std::move(table));
}

void Hash::replace_listpack(std::unique_ptr<Table> table) {
  LK_ASSERT(!is_table());
  if (shares_names()) {
    Environment& environment = names_->environment();
    names_->release();
    environment_ = &environment;
  }
  listpack_.~Listpack();
  table_ = table.release();
  form_ = Form::kTable;
}

bool Hash::set_in_table(std::string_view field, std::string_view value, int64_t deadline_ms) {
  Item** slot = table_->items.find(field, table_->items.hash(field));
  if (slot == nullptr) {
    table_->insert(field, value, deadline_ms);
    return true;
  }
  if (deadline_ms == kKeepDeadline) deadline_ms = table_->deadline_ms(**slot);
  table_->replace(slot, value, deadline_ms);
  return false;
}

Hash::Table::~Table() {
  for_each_prefetched(items, [](Item* item) { std::free(item); });
}

void Hash::Item::set_sizes(size_t field_size, size_t value_size) {
  if (is_long()) {
    const size_t sizes[] = {field_size, value_size};
    std::memcpy(bytes() + header_size(flags()) - sizeof(sizes), sizes, sizeof(sizes));
  } else {
    field_size_and_flags = static_cast<uint16_t>(flags() | field_size);
    short_value_size = static_cast<uint16_t>(value_size);
  }
}

Hash::Item* Hash::Table::make_item(std::string_view field, std::string_view value,
                                   bool is_volatile) {
  const uint16_t flags = Item::flags(field.size(), value.size(), is_volatile);
  const size_t size = Item::allocation(Item::header_size(flags) + field.size() + value.size());
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* item = new (memory) Item{flags, 0};
  item->set_sizes(field.size(), value.size());
  std::copy(field.begin(), field.end(), item->bytes() + Item::header_size(flags));
  std::copy(value.begin(), value.end(), item->value_bytes());
  item_bytes += size;
  return item;
}

void Hash::Table::free_item(Item* item) {
  item_bytes -= item->allocated();
  std::free(item);
}

void Hash::Table::insert(std::string_view field, std::string_view value, int64_t deadline_ms) {
  Item* item = make_item(field, value, deadline_ms >= 0);
  items.insert(item, items.hash(field));
  if (item->is_volatile()) deadlines.insert(*item, deadline_ms);
}

void Hash::Table::replace(Item** slot, std::string_view value, int64_t deadline_ms) {
  Item* item = *slot;
  const bool is_volatile = deadline_ms >= 0;
  const size_t field_size = item->field_size();
  const uint16_t flags = Item::flags(field_size, value.size(), is_volatile);
  const size_t size = Item::allocation(Item::header_size(flags) + field_size + value.size());
  if (flags == item->flags() && size == item->allocated()) {
    // Not memcpy: `value` may be part of the item.
    if (!value.empty()) std::memmove(item->value_bytes(), value.data(), value.size());
    item->set_sizes(field_size, value.size());
    if (is_volatile) deadlines.update(*item, deadline_ms);
    return;
  }
  *slot = make_item(item->field(), value, is_volatile);
  if (item->is_volatile()) deadlines.erase(*item);
  if (is_volatile) deadlines.insert(**slot, deadline_ms);
  free_item(item);
}

bool Hash::Table::erase(std::string_view field) {
  const uint64_t hash = items.hash(field);
  Item** slot = items.find(field, hash);
  if (slot == nullptr) return false;
  Item* item = items.erase(slot, hash);
  if (item->is_volatile()) deadlines.erase(*item);
  free_item(item);
  return true;
}

}  // namespace latchkey::store
