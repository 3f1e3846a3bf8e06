#include "store/vector/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/prefetch.h"

namespace latchkey::store {

namespace {

constexpr size_t kChunkBytes = size_t{128} << 10;
constexpr unsigned kMaxChunkBits = 10;

// The number of records in a chunk, as a power of two.
unsigned chunk_bits_for(size_t stride) {
  const size_t records = std::max<size_t>(kChunkBytes / stride, 1);
  return std::min(static_cast<unsigned>(std::bit_width(records)) - 1, kMaxChunkBits);
}

bool is_nearer(const VectorGraph::Found& a, const VectorGraph::Found& b) {
  return a.distance < b.distance;
}
bool is_farther(const VectorGraph::Found& a, const VectorGraph::Found& b) {
  return a.distance > b.distance;
}

}  // namespace

VectorGraph::VectorGraph(Quantization quantization, size_t dimensions, size_t links)
    : distance_(quantization, dimensions), links_(links) {
  static_assert(offsetof(Record, link_count) + sizeof(uint16_t) == kLinksAt);
  LK_ASSERT(links >= kMinLinks && links <= kMaxLinks);
  constexpr size_t kAlignment = 8;
  vector_at_ = kLinksAt + 2 * links_ * sizeof(Slot);
  const size_t size = std::max(vector_at_ + distance_.vector_size(), sizeof(Record));
  stride_ = (size + kAlignment - 1) / kAlignment * kAlignment;
  chunk_bits_ = chunk_bits_for(stride_);
}

VectorGraph::VectorGraph(const VectorGraph& other)
    : distance_(other.distance_),
      links_(other.links_),
      vector_at_(other.vector_at_),
      stride_(other.stride_),
      chunk_bits_(other.chunk_bits_) {
  while (size_ < other.size_) {
    grow();
    const auto slot = static_cast<Slot>(size_++);
    std::memcpy(bytes_of(slot), other.bytes_of(slot), stride_);
    record(slot).upper = copy_upper(other.record(slot), links_);
  }
  entry_ = other.entry_;
  upper_bytes_ = other.upper_bytes_;
  nodes_on_level_ = other.nodes_on_level_;
  marks_.resize(size_);
}

VectorGraph::~VectorGraph() {
  for (size_t slot = 0; slot < size_; ++slot) delete[] record(static_cast<Slot>(slot)).upper;
  for (char* chunk : chunks_) ::operator delete(chunk);
}

VectorGraph::Slot* VectorGraph::copy_upper(const Record& record, size_t links) {
  if (record.upper == nullptr) return nullptr;
  const size_t count = record.level * (links + 1);
  auto* copy = new Slot[count];
  std::memcpy(copy, record.upper, count * sizeof(Slot));
  return copy;
}

size_t VectorGraph::memory_usage() const {
  return sizeof(*this) + capacity_ * stride_ + chunks_.capacity() * sizeof(char*) + upper_bytes_ +
         marks_.capacity() * sizeof(uint16_t) + nodes_on_level_.capacity() * sizeof(uint32_t);
}

// --- Nodes ---------------------------------------------------------------------------------------

VectorElement* VectorGraph::element(Slot slot) const {
  return record(slot).element;
}

void VectorGraph::set_element(Slot slot, VectorElement* element) {
  record(slot).element = element;
}

QuantizedVector VectorGraph::vector(Slot slot) const {
  const Record& at = record(slot);
  return {vector_bytes(slot), at.length, at.range};
}

unsigned VectorGraph::level(Slot slot) const {
  return record(slot).level;
}

void VectorGraph::grow() {
  if (size_ < capacity_) return;
  const size_t per_chunk = size_t{1} << chunk_bits_;
  if (chunks_.size() == 1 && capacity_ < per_chunk) {
    const size_t more = std::min(capacity_ * 2, per_chunk);
    auto* chunk = static_cast<char*>(::operator new(more* stride_));
    std::memcpy(chunk, chunks_[0], size_ * stride_);
    ::operator delete(std::exchange(chunks_[0], chunk));
    capacity_ = more;
    return;
  }
  const size_t records = chunks_.empty() ? 1 : per_chunk;
  chunks_.push_back(static_cast<char*>(::operator new(records* stride_)));
  capacity_ += records;
}

void VectorGraph::shrink() {
  const size_t per_chunk = size_t{1} << chunk_bits_;
  // One empty chunk stays, so that adding and erasing by turns costs no allocation.
  if (chunks_.size() < 2 || size_ + 2 * per_chunk > capacity_) return;
  ::operator delete(chunks_.back());
  chunks_.pop_back();
  capacity_ -= per_chunk;
}

VectorGraph::Slot VectorGraph::append(const QuantizedVector& vector, unsigned level) {
  LK_ASSERT(level <= kMaxLevel && size_ < kNone);
  grow();
  const auto slot = static_cast<Slot>(size_++);
  Slot* upper = nullptr;
  if (level > 0) {
    upper = new Slot[level * (links_ + 1)]();
    upper_bytes_ += level * (links_ + 1) * sizeof(Slot);
  }
  record(slot) = {nullptr, upper, vector.length, vector.range, static_cast<uint16_t>(level), 0};
  std::memcpy(vector_bytes(slot), vector.bytes, distance_.vector_size());
  marks_.resize(size_);
  if (nodes_on_level_.size() <= level) nodes_on_level_.resize(level + 1);
  ++nodes_on_level_[level];
  return slot;
}

unsigned VectorGraph::draw_level(base::Random& random) const {
  const double unit = 1 - random.unit();  // above zero
  const double level = -std::log(unit) / std::log(static_cast<double>(links_));
  return static_cast<unsigned>(std::min(level, static_cast<double>(kMaxLevel)));
}

// --- Searching -----------------------------------------------------------------------------------

void VectorGraph::new_marks() const {
  if (++mark_ != 0) return;
  std::fill(marks_.begin(), marks_.end(), uint16_t{0});
  mark_ = 1;
}

VectorGraph::Found VectorGraph::descend(const QuantizedVector& query, Found from, unsigned top,
                                        unsigned bottom) const {
  for (unsigned level = top; level + 1 > bottom; --level) {
    for (bool is_nearest = false; !is_nearest;) {
      is_nearest = true;
      for (const Slot next : links(from.slot, level)) {
        const float distance = distance_(query, vector(next));
        if (distance >= from.distance) continue;
        from = {distance, next};
        is_nearest = false;
      }
    }
    if (level == 0) break;
  }
  return from;
}

std::vector<VectorGraph::Found> VectorGraph::search_level(const QuantizedVector& query, Found from,
                                                          unsigned level, const Search& how) const {
  const auto accepts = [&](Slot slot) { return how.accepts == nullptr || (*how.accepts)(slot); };
  new_marks();
  mark(from.slot);
  std::vector<Found> frontier{from};  // a heap, the nearest on top
  std::vector<Found> best;            // a heap, the farthest on top
  best.reserve(std::min(how.effort, size_) + 1);
  if (accepts(from.slot)) best.push_back(from);
  size_t visited = 1;
  Slot fresh[64];
  while (!frontier.empty()) {
    std::pop_heap(frontier.begin(), frontier.end(), is_farther);
    const Found nearest = frontier.back();
    frontier.pop_back();
    if (best.size() >= how.effort && nearest.distance > best.front().distance) break;
    const std::span<const Slot> neighbours = links(nearest.slot, level);
    for (size_t done = 0; done < neighbours.size();) {
      // The records of several neighbours are on their way while the first is looked at.
      size_t count = 0;
      for (; done < neighbours.size() && count < std::size(fresh); ++done) {
        if (!mark(neighbours[done])) continue;
        fresh[count++] = neighbours[done];
        base::prefetch(vector_bytes(neighbours[done]));
        base::prefetch(bytes_of(neighbours[done]));
      }
      for (size_t i = 0; i < count; ++i) {
        const Slot next = fresh[i];
        const float distance = distance_(query, vector(next));
        ++visited;
        const bool is_full = best.size() >= how.effort;
        if (is_full && distance >= best.front().distance) continue;
        frontier.push_back({distance, next});
        std::push_heap(frontier.begin(), frontier.end(), is_farther);
        if (!accepts(next)) continue;
        best.push_back({distance, next});
        std::push_heap(best.begin(), best.end(), is_nearer);
        if (best.size() <= how.effort) continue;
        std::pop_heap(best.begin(), best.end(), is_nearer);
        best.pop_back();
      }
    }
    if (how.accepts != nullptr && visited >= how.most_visited) break;
  }
  std::sort_heap(best.begin(), best.end(), is_nearer);
  return best;
}

std::vector<VectorGraph::Found> VectorGraph::search(const QuantizedVector& query,
                                                    const Search& how) const {
  if (entry_ == kNone || how.effort == 0) return {};
  Found from{distance_(query, vector(entry_)), entry_};
  if (top_level() > 0) from = descend(query, from, top_level(), 1);
  return search_level(query, from, 0, how);
}

// --- Adding and erasing --------------------------------------------------------------------------

VectorGraph::Slot VectorGraph::insert(const QuantizedVector& vector, unsigned level,
                                      size_t effort) {
  const Slot slot = append(vector, level);
  if (entry_ == kNone) {
    entry_ = slot;
    return slot;
  }
  const unsigned top = top_level();
  Found from{distance_(vector, this->vector(entry_)), entry_};
  if (top > level) from = descend(vector, from, top, level + 1);
  for (unsigned at = std::min(top, level);; --at) {
    const std::vector<Found> near = search_level(vector, from, at, {.effort = effort});
    link_new(slot, at, near);
    if (at == 0) break;
    from = near.front();
  }
  if (level > top) entry_ = slot;
  return slot;
}

void VectorGraph::erase(Slot slot) {
  std::vector<Slot> highest;  // neighbours on the highest level on which there are any
  const unsigned top = level(slot);
  --nodes_on_level_[top];
  // All links go before new ones are made, which must not lead to this node.
  std::vector<std::vector<Slot>> former(top + 1);
  for (unsigned at = 0; at <= top; ++at) {
    const std::span<const Slot> linked = links(slot, at);
    former[at].assign(linked.begin(), linked.end());
    for (const Slot neighbour : former[at]) remove_link(neighbour, at, slot);
    list(slot, at).set_size(0);
    if (!former[at].empty()) highest = former[at];
  }
  if (slot == entry_) choose_entry(highest);
  for (unsigned at = 0; at <= top; ++at) mend(former[at], at, slot);
  move_last_to(slot);
}

void VectorGraph::choose_entry(const std::vector<Slot>& near) {
  const Slot gone = std::exchange(entry_, kNone);
  if (size_ == 1) return;
  unsigned top = static_cast<unsigned>(nodes_on_level_.size()) - 1;
  while (nodes_on_level_[top] == 0) --top;
  for (const Slot slot : near) {
    if (level(slot) == top) entry_ = slot;
  }
  for (size_t slot = 0; entry_ == kNone; ++slot) {
    if (slot != gone && level(static_cast<Slot>(slot)) == top) entry_ = static_cast<Slot>(slot);
  }
}

void VectorGraph::move_last_to(Slot slot) {
  const auto last = static_cast<Slot>(size_ - 1);
  Record& gone = record(slot);
  if (gone.upper != nullptr) upper_bytes_ -= gone.level * (links_ + 1) * sizeof(Slot);
  delete[] gone.upper;
  if (slot != last) {
    for (unsigned at = 0; at <= level(last); ++at) {
      for (const Slot neighbour : links(last, at)) {
        const LinkList back = list(neighbour, at);
        *std::find(back.begin(), back.end(), last) = slot;
      }
    }
    std::memcpy(bytes_of(slot), bytes_of(last), stride_);
    if (entry_ == last) entry_ = slot;
  }
  --size_;
  marks_.pop_back();
  shrink();
}

// --- Loading -------------------------------------------------------------------------------------

bool VectorGraph::set_links(Slot slot, unsigned level, std::span<const Slot> links) {
  if (level > this->level(slot) || links.size() > room(level)) return false;
  LinkList into = list(slot, level);
  std::copy(links.begin(), links.end(), into.begin());
  into.set_size(links.size());
  return true;
}

bool VectorGraph::is_consistent() const {
  for (size_t i = 0; i < size_; ++i) {
    const auto slot = static_cast<Slot>(i);
    for (unsigned at = 0; at <= level(slot); ++at) {
      new_marks();
      mark(slot);
      if (links(slot, at).size() > room(at)) return false;
      for (const Slot to : links(slot, at)) {
        if (to >= size_ || !mark(to) || level(to) < at) return false;
        const std::span<const Slot> back = links(to, at);
        if (std::find(back.begin(), back.end(), slot) == back.end()) return false;
      }
    }
  }
  return true;
}

void VectorGraph::set_scale(Slot slot, float length, float range) {
  record(slot).length = length;
  record(slot).range = range;
}

bool VectorGraph::finish_loading(const base::HashSecret& secret) {
  uint64_t there = 0;
  uint64_t back = 0;
  const auto hash = [&](Slot from, Slot to, unsigned at) {
    const uint32_t link[] = {from, to, at};
    return secret.hash({reinterpret_cast<const char*>(link), sizeof link});
  };
  for (size_t i = 0; i < size_; ++i) {
    const auto slot = static_cast<Slot>(i);
    for (unsigned at = 0; at <= level(slot); ++at) {
      new_marks();
      mark(slot);
      for (const Slot to : links(slot, at)) {
        if (to >= size_ || !mark(to) || (at > 0 && level(to) < at)) return false;
        there += hash(slot, to, at);
        back += hash(to, slot, at);
      }
    }
    if (entry_ == kNone || level(slot) > top_level()) entry_ = slot;
  }
  return there == back;
}

}  // namespace latchkey::store
