#include "store/value/list.h"

#include <utility>

namespace latchkey::store {

List::List(const List& other)
    : Value(),
      pack_(other.pack_),
      chain_(other.chain_ != nullptr ? std::make_unique<Quicklist>(*other.chain_) : nullptr) {}

size_t List::memory_usage() const {
  const size_t chain = chain_ != nullptr ? sizeof(Quicklist) + chain_->memory_usage() : size_t{0};
  return sizeof(*this) + pack_.memory_usage() + chain;
}

List::Cursor List::at(int64_t index) const {
  if (chain_ != nullptr) return of(chain_->at(index));
  return {nullptr, pack_.at(index)};
}

List::Cursor List::next(Cursor cursor) const {
  if (chain_ != nullptr) return of(chain_->next(within(cursor)));
  return {nullptr, pack_.next(cursor.position)};
}

List::Cursor List::previous(Cursor cursor) const {
  if (chain_ != nullptr) return of(chain_->previous(within(cursor)));
  return {nullptr, pack_.previous(cursor.position)};
}

List::Cursor List::find(const Listpack::Matcher& matcher, Cursor from) const {
  if (chain_ != nullptr) return of(chain_->find(matcher, within(from)));
  return {nullptr, pack_.find(matcher, from.position)};
}

List::Element List::get(Cursor cursor) const {
  return chain_ != nullptr ? chain_->get(within(cursor)) : pack_.get(cursor.position);
}

void List::will_grow(size_t bytes, size_t elements, const ValueLimits& limits) {
  if (chain_ != nullptr || !exceeds_fill(limits.list_max_listpack_size, pack_.byte_size() + bytes,
                                         pack_.size() + elements))
    return;
  become_chain(limits);
}

void List::become_chain(const ValueLimits& limits) {
  chain_ = std::make_unique<Quicklist>(limits.list_max_listpack_size,
                                       static_cast<size_t>(limits.list_compress_depth));
  if (!pack_.empty()) chain_->append_node(std::exchange(pack_, Listpack()));
}

void List::adopt(Listpack elements, const ValueLimits& limits) {
  if (chain_ == nullptr && pack_.empty() &&
      !exceeds_part_of_fill(limits.list_max_listpack_size, 1, elements.byte_size(),
                            elements.size())) {
    pack_ = std::move(elements);
    return;
  }
  if (chain_ == nullptr) become_chain(limits);
  chain_->append_node(std::move(elements));
}

void List::adopt_plain(std::string element, const ValueLimits& limits) {
  if (chain_ == nullptr) become_chain(limits);
  chain_->append_plain(std::move(element));
}

void List::has_shrunk(const ValueLimits& limits) {
  if (chain_ == nullptr) return;
  const Quicklist::Node* node = chain_->nodes() == 1 ? chain_->first_node() : nullptr;
  if (node == nullptr || node->is_plain ||
      exceeds_part_of_fill(limits.list_max_listpack_size, 2, node->byte_size(), node->count))
    return chain_->recompress();
  pack_ = chain_->release();
  chain_.reset();
}

void List::recompress() const {
  if (chain_ != nullptr) chain_->recompress();
}

void List::push_front(std::string_view text, const ValueLimits& limits) {
  if (chain_ != nullptr) return chain_->push_front(text, limits.quicklist_packed_threshold);
  pack_.prepend(text);
}

void List::push_back(std::string_view text, const ValueLimits& limits) {
  if (chain_ != nullptr) return chain_->push_back(text, limits.quicklist_packed_threshold);
  pack_.append(text);
}

void List::insert_before(Cursor cursor, std::string_view text, const ValueLimits& limits) {
  if (chain_ != nullptr)
    return chain_->insert_before(within(cursor), text, limits.quicklist_packed_threshold);
  pack_.insert_before(cursor.position, text);
}

void List::insert_after(Cursor cursor, std::string_view text, const ValueLimits& limits) {
  if (chain_ != nullptr)
    return chain_->insert_after(within(cursor), text, limits.quicklist_packed_threshold);
  pack_.insert_before(pack_.next(cursor.position), text);
}

void List::replace(Cursor cursor, std::string_view text, const ValueLimits& limits) {
  if (chain_ != nullptr)
    return chain_->replace(within(cursor), text, limits.quicklist_packed_threshold);
  pack_.replace(cursor.position, text);
}

List::Cursor List::erase(Cursor cursor) {
  if (chain_ != nullptr) return of(chain_->erase(within(cursor)));
  return {nullptr, pack_.erase(cursor.position)};
}

void List::erase_range(size_t index, size_t count) {
  if (count == 0) return;
  if (chain_ != nullptr) return chain_->erase_range(index, count);
  pack_.erase(pack_.at(static_cast<int64_t>(index)), count);
}

}  // namespace latchkey::store
