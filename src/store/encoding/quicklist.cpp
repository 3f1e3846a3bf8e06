#include "store/encoding/quicklist.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/assert.h"
#include "store/encoding/lzf.h"

namespace latchkey::store {

namespace {

constexpr size_t kFillBytes[] = {4096, 8192, 16384, 32768, 65536};
// Maximum bytes of a node whose fill is a number of elements.
constexpr size_t kMaxBytesByCount = 8192;
// An estimate of an element's bytes besides its text.
constexpr size_t kOverhead = 8;
// Smaller nodes are not compressed, nor are nodes that would shrink by less than kMinGain.
constexpr size_t kMinToCompress = 48;
constexpr size_t kMinGain = 8;

size_t most_bytes(int fill) {
  if (fill >= 0) return kMaxBytesByCount;
  return kFillBytes[std::min<size_t>(static_cast<size_t>(-fill), std::size(kFillBytes)) - 1];
}

}  // namespace

bool exceeds_fill(int fill, size_t bytes, size_t elements) {
  if (bytes > most_bytes(fill)) return true;
  return fill >= 0 && elements > static_cast<size_t>(std::max(fill, 1));
}

bool exceeds_part_of_fill(int fill, size_t part, size_t bytes, size_t elements) {
  if (fill < 0) return bytes > most_bytes(fill) / part;
  return elements > static_cast<size_t>(std::max(fill, 1)) / part;
}

Quicklist::Quicklist(const Quicklist& other) : Quicklist(other.fill_, other.depth_) {
  for (const Node* node = other.first_; node != nullptr; node = node->next) {
    auto copy = std::make_unique<Node>(*node);
    copy->touched_at = 0;
    link(copy.release(), last_);
  }
  size_ = other.size_;
  compressed_ = other.compressed_;
}

size_t Quicklist::memory_usage() const {
  size_t bytes = 0;
  for (const Node* node = first_; node != nullptr; node = node->next) {
    bytes += sizeof(Node) + node->pack.memory_usage() + (node->is_plain ? node->plain.size() : 0) +
             node->compressed.size();
  }
  return bytes;
}

// --- Walking -------------------------------------------------------------------------------------

Quicklist::Cursor Quicklist::front_of(Node* node) const {
  if (node == nullptr) return {};
  open(node);
  return {node, node->is_plain ? kPlain : node->pack.first()};
}

Quicklist::Cursor Quicklist::back_of(Node* node) const {
  if (node == nullptr) return {};
  open(node);
  return {node, node->is_plain ? kPlain : node->pack.last()};
}

Quicklist::Cursor Quicklist::behind(Cursor cursor) const {
  if (!cursor.node->is_plain) {
    const auto position = cursor.node->pack.next(cursor.position);
    if (position != Listpack::kNone) return {cursor.node, position};
  }
  return front_of(cursor.node->next);
}

Quicklist::Cursor Quicklist::next(Cursor cursor) const {
  const Cursor following = behind(cursor);
  if (following.node != cursor.node) leave(cursor.node);
  return following;
}

Quicklist::Cursor Quicklist::previous(Cursor cursor) const {
  if (!cursor.node->is_plain) {
    const auto position = cursor.node->pack.previous(cursor.position);
    if (position != Listpack::kNone) return {cursor.node, position};
  }
  const Cursor before = back_of(cursor.node->previous);
  leave(cursor.node);
  return before;
}

Quicklist::Cursor Quicklist::at(int64_t index) const {
  const auto size = static_cast<int64_t>(size_);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return {};
  auto left = static_cast<size_t>(index);
  Node* node = first_;
  if (left < size_ / 2) {
    for (; left >= node->count; node = node->next) left -= node->count;
  } else {
    size_t start = size_ - last_->count;
    for (node = last_; left < start; start -= node->count) node = node->previous;
    left -= start;
  }
  open(node);
  return {node, node->is_plain ? kPlain : node->pack.at(static_cast<int64_t>(left))};
}

Quicklist::Cursor Quicklist::find(const Listpack::Matcher& matcher, Cursor from) const {
  while (from) {
    Node* const node = from.node;
    if (node->is_plain) {
      if (matcher.matches(get(from))) return from;
    } else {
      const Listpack::Position found = node->pack.find(matcher, from.position);
      if (found != Listpack::kNone) return {node, found};
    }
    from = front_of(node->next);
    leave(node);
  }
  return {};
}

Listpack::Element Quicklist::get(Cursor cursor) const {
  if (cursor.node->is_plain) return {false, 0, cursor.node->plain};
  return cursor.node->pack.get(cursor.position);
}

// --- Compression ---------------------------------------------------------------------------------

void Quicklist::touch(Node* node) const {
  if (node->touched_at != 0) return;
  touched_.push_back(node);
  node->touched_at = touched_.size();
}

void Quicklist::forget_touched(Node* node) const {
  if (node->touched_at == 0) return;
  Node* last = touched_.back();
  touched_[node->touched_at - 1] = last;
  last->touched_at = node->touched_at;
  touched_.pop_back();
  node->touched_at = 0;
}

void Quicklist::open(Node* node) const {
  if (!node->is_processed) return;
  keep_open(node);
  touch(node);
}

void Quicklist::keep_open(Node* node) const {
  node->is_processed = false;
  if (!node->is_compressed()) return;
  std::string bytes(node->full_size, '\0');
  LK_ASSERT(lzf_decompress(node->compressed, bytes));
  if (node->is_plain) {
    node->plain = std::move(bytes);
  } else {
    node->pack = Listpack::from_bytes(bytes);
  }
  std::string().swap(node->compressed);
  node->full_size = 0;
  --compressed_;
}

void Quicklist::compress(Node* node) const {
  if (node->is_processed) return;
  node->is_processed = true;
  const size_t size = node->byte_size();
  if (size < kMinToCompress) return;
  const std::span<const char> pack = node->pack.bytes();
  const std::string_view bytes =
      node->is_plain ? std::string_view(node->plain) : std::string_view(pack.data(), pack.size());
  auto compressed = lzf_compress(bytes, size - kMinGain);
  if (!compressed) return;
  node->compressed = *std::move(compressed);
  node->full_size = size;
  node->pack = Listpack();
  std::string().swap(node->plain);
  ++compressed_;
}

void Quicklist::leave(Node* node) const {
  // recompress() has put the nodes that it leaves open at the front of touched_.
  if (nodes_ / 2 < depth_ || node->touched_at <= 2 * depth_) return;
  forget_touched(node);
  compress(node);
}

template <typename Fn>
void Quicklist::for_each_end(Fn&& fn) const {
  Node* front = first_;
  Node* back = last_;
  for (size_t i = 0; i < depth_; ++i, front = front->next, back = back->previous) {
    fn(front);
    fn(back);
  }
}

void Quicklist::recompress() const {
  if (depth_ == 0) return;
  if (nodes_ / 2 < depth_) {
    // Every node is near an end.
    for (Node* node = first_; compressed_ != 0 && node != nullptr; node = node->next) open(node);
    return;
  }
  for_each_end([&](Node* node) {
    keep_open(node);
    forget_touched(node);
  });
  while (!touched_.empty()) {
    Node* node = touched_.back();
    forget_touched(node);
    compress(node);
  }
  // The next call may find them far from the ends.
  for_each_end([&](Node* node) { touch(node); });
}

// --- Nodes ---------------------------------------------------------------------------------------

bool Quicklist::is_huge(std::string_view text, size_t plain_from) const {
  return plain_from != 0 ? text.size() >= plain_from : text.size() > most_bytes(fill_);
}

bool Quicklist::fits(Node* node, std::string_view text, size_t plain_from) const {
  if (node == nullptr || node->is_plain || is_huge(text, plain_from)) return false;
  open(node);
  return !exceeds_fill(fill_, node->pack.byte_size() + text.size() + kOverhead, node->count + 1);
}

Quicklist::Node* Quicklist::make_node(std::string_view text, size_t plain_from) const {
  auto node = std::make_unique<Node>();
  node->count = 1;
  node->is_plain = is_huge(text, plain_from);
  if (node->is_plain) {
    node->plain = text;
  } else {
    node->pack.append(text);
  }
  return node.release();
}

void Quicklist::link(Node* node, Node* before) {
  node->previous = before;
  node->next = before != nullptr ? before->next : first_;
  (node->previous != nullptr ? node->previous->next : first_) = node;
  (node->next != nullptr ? node->next->previous : last_) = node;
  ++nodes_;
  if (depth_ != 0) touch(node);
}

void Quicklist::unlink(Node* node) {
  (node->previous != nullptr ? node->previous->next : first_) = node->next;
  (node->next != nullptr ? node->next->previous : last_) = node->previous;
  --nodes_;
  forget_touched(node);
  if (node->is_compressed()) --compressed_;
  delete node;
}

Quicklist::Node* Quicklist::split_before(Cursor cursor) {
  Node* node = cursor.node;
  if (node->is_plain || cursor.position == node->pack.first()) return node->previous;
  auto behind = std::make_unique<Node>();
  behind->pack = node->pack.split(cursor.position);
  behind->count = behind->pack.size();
  node->count -= behind->count;
  link(behind.release(), node);
  return node;
}

// --- Changing ------------------------------------------------------------------------------------

void Quicklist::push_front(std::string_view text, size_t plain_from) {
  ++size_;
  if (!fits(first_, text, plain_from)) return link(make_node(text, plain_from), nullptr);
  first_->pack.prepend(text);
  ++first_->count;
}

void Quicklist::push_back(std::string_view text, size_t plain_from) {
  ++size_;
  if (!fits(last_, text, plain_from)) return link(make_node(text, plain_from), last_);
  last_->pack.append(text);
  ++last_->count;
}

void Quicklist::insert_between(Node* before, std::string_view text, size_t plain_from) {
  Node* behind = before != nullptr ? before->next : first_;
  ++size_;
  if (fits(before, text, plain_from)) {
    before->pack.append(text);
    ++before->count;
  } else if (fits(behind, text, plain_from)) {
    behind->pack.prepend(text);
    ++behind->count;
  } else {
    link(make_node(text, plain_from), before);
  }
}

void Quicklist::insert_before(Cursor cursor, std::string_view text, size_t plain_from) {
  if (fits(cursor.node, text, plain_from)) {
    cursor.node->pack.insert_before(cursor.position, text);
    ++cursor.node->count;
    ++size_;
    return;
  }
  // The two parts and the element do not fit into one node: the whole had no room for it.
  insert_between(split_before(cursor), text, plain_from);
}

void Quicklist::insert_after(Cursor cursor, std::string_view text, size_t plain_from) {
  const Cursor following = behind(cursor);
  if (!following) return push_back(text, plain_from);
  // Appends to the cursor's node, if it has room.
  if (following.node != cursor.node && fits(cursor.node, text, plain_from)) {
    cursor.node->pack.append(text);
    ++cursor.node->count;
    ++size_;
    return;
  }
  insert_before(following, text, plain_from);
}

void Quicklist::replace(Cursor cursor, std::string_view text, size_t plain_from) {
  Node* node = cursor.node;
  if (node->is_plain && is_huge(text, plain_from)) {
    node->plain = text;
    return;
  }
  // With replace(), the node may exceed its fill.
  const bool stays = !node->is_plain && !is_huge(text, plain_from) &&
                     node->pack.room_for(Listpack::encoded_size(text));
  if (stays) return node->pack.replace(cursor.position, text);
  insert_after(cursor, text, plain_from);
  // The insertion may have split the node, but never before the cursor's element.
  erase(cursor);
}

Quicklist::Cursor Quicklist::erase(Cursor cursor) {
  Node* node = cursor.node;
  --size_;
  if (node->count == 1) {
    Node* following = node->next;
    unlink(node);
    return front_of(following);
  }
  --node->count;
  const auto position = node->pack.erase(cursor.position);
  if (position != Listpack::kNone) return {node, position};
  return front_of(node->next);
}

void Quicklist::erase_range(size_t index, size_t count) {
  if (count == 0) return;
  LK_ASSERT(index + count <= size_);
  size_t skip = 0;
  const Cursor start = at(static_cast<int64_t>(index));
  // Count the elements of the node before the start.
  for (Listpack::Position at = start.position;
       !start.node->is_plain && (at = start.node->pack.previous(at)) != Listpack::kNone;)
    ++skip;
  size_ -= count;
  for (Node* node = start.node; count > 0;) {
    Node* following = node->next;
    const size_t here = std::min(count, node->count - skip);
    if (here == node->count) {
      unlink(node);
    } else {
      open(node);
      node->pack.erase(node->pack.at(static_cast<int64_t>(skip)), here);
      node->count -= here;
    }
    count -= here;
    skip = 0;
    node = following;
  }
}

void Quicklist::clear() {
  while (first_ != nullptr) unlink(first_);
  size_ = 0;
}

void Quicklist::append_node(Listpack pack) {
  LK_ASSERT(!pack.empty());
  auto node = std::make_unique<Node>();
  node->count = pack.size();
  node->pack = std::move(pack);
  size_ += node->count;
  link(node.release(), last_);
}

void Quicklist::append_plain(std::string element) {
  auto node = std::make_unique<Node>();
  node->count = 1;
  node->is_plain = true;
  node->plain = std::move(element);
  ++size_;
  link(node.release(), last_);
}

Listpack Quicklist::release() {
  LK_ASSERT(nodes_ == 1 && !first_->is_plain);
  open(first_);
  Listpack pack = std::move(first_->pack);
  clear();
  return pack;
}

}  // namespace latchkey::store
