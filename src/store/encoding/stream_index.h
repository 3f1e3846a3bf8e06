// An ordered index of records: by stream id for the nodes of a stream, the pending entries of a
// group and the pending entries of a consumer, or by another key.
//
//     struct Order { using Key = ...; static Key key(const T& record); };
//
// Keys are compared by <=>. The key of a record is constant while the record is in the index.
//
// Pointers are in order in chunks of up to 128, and the chunks in order in one array. Ids mostly
// arrive in ascending order: appending to a full last chunk starts a new one and leaves the old one
// full, so an index that grew by appending takes 8.2 bytes a record.
//
//     chunks: | 0 | 1 | 2 | ...
//               |
//               +--> | T* | T* | T* | ... (128)
//
// Costs: find, insert and erase O(log n) comparisons, plus O(n / 128) words moved when a chunk is
// added or removed, else at most 128 words; a step O(1). The index does not own its records. A
// Position is valid until the next change, except the one that erase() returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "store/encoding/stream_id.h"

namespace latchkey::store {

// The order by the member `id` of the records.
struct ById {
  using Key = StreamId;
  template <typename T>
  static StreamId key(const T& record) {
    return record.id;
  }
};

template <typename T, typename Order = ById>
class StreamIndex {
 public:
  using Key = typename Order::Key;
  class Position {
   public:
    explicit operator bool() const { return index_ != nullptr; }
    T* operator*() const { return index_->chunks_[chunk_][place_]; }
    // Step to the next or previous record; past the ends the position becomes empty.
    void forward() {
      if (++place_ < index_->chunks_[chunk_].size()) return;
      place_ = 0;
      if (++chunk_ == index_->chunks_.size()) index_ = nullptr;
    }
    void backward() {
      if (place_-- > 0) return;
      if (chunk_-- == 0) {
        index_ = nullptr;
      } else {
        place_ = index_->chunks_[chunk_].size() - 1;
      }
    }

   private:
    friend class StreamIndex;
    const StreamIndex* index_ = nullptr;
    size_t chunk_ = 0;
    size_t place_ = 0;
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Bytes held besides this object; records not included.
  size_t memory_usage() const {
    size_t bytes = chunks_.capacity() * sizeof(Chunk);
    for (const Chunk& chunk : chunks_) bytes += chunk.capacity() * sizeof(T*);
    return bytes;
  }

  Position first() const { return at(0, 0); }
  Position last() const {
    return empty() ? Position() : at(chunks_.size() - 1, chunks_.back().size() - 1);
  }
  // The first record with a key of at least `key`.
  Position not_before(const Key& key) const {
    const auto [chunk, place] = bound(key);
    return at(chunk, place);
  }
  // The last record with a key of at most `key`.
  Position not_after(const Key& key) const {
    Position position = not_before(key);
    if (!position) return last();
    if (key_of(*position) != key) position.backward();
    return position;
  }
  // Null when there is none.
  T* find(const Key& key) const {
    const Position position = not_before(key);
    return position && key_of(*position) == key ? *position : nullptr;
  }

  // REQUIRES: the index has no record with this key.
  void insert(T* record) {
    auto [chunk, place] = bound(key_of(record));
    ++size_;
    if (chunk == chunks_.size()) {
      if (chunk == 0 || chunks_.back().size() == kChunkCapacity) chunks_.emplace_back();
      chunks_.back().push_back(record);
      return;
    }
    if (chunks_[chunk].size() == kChunkCapacity) {
      split(chunk);
      std::tie(chunk, place) = bound(key_of(record));
    }
    Chunk& within = chunks_[chunk];
    within.insert(within.begin() + static_cast<std::ptrdiff_t>(place), record);
  }
  // Removes the record; returns the position of the record that followed it.
  Position erase(Position position) {
    const auto [chunk, place] = std::pair(position.chunk_, position.place_);
    Chunk& records = chunks_[chunk];
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(place));
    --size_;
    if (records.empty()) {
      chunks_.erase(iterator(chunk));
      return at(chunk, 0);
    }
    if (records.size() <= kChunkCapacity / 4 && chunk + 1 < chunks_.size()) merge_with_next(chunk);
    return place < chunks_[chunk].size() ? at(chunk, place) : at(chunk + 1, 0);
  }
  // REQUIRES: the record is in the index.
  void erase(const T* record) { erase(not_before(key_of(record))); }
  void clear() {
    chunks_.clear();
    size_ = 0;
  }

  // Calls fn(T*) for all, in order.
  template <typename Fn>
  void for_each(Fn&& fn) const {
    for (const Chunk& chunk : chunks_) {
      for (T* record : chunk) fn(record);
    }
  }

 private:
  static constexpr size_t kChunkCapacity = 128;
  using Chunk = std::vector<T*>;

  static Key key_of(const T* record) { return Order::key(*record); }

  Position at(size_t chunk, size_t place) const {
    Position position;
    if (chunk >= chunks_.size()) return position;
    position.index_ = this;
    position.chunk_ = chunk;
    position.place_ = place;
    return position;
  }

  // Chunk and place of the first record with a key of at least `key`; {number of chunks, 0} if
  // there is none.
  std::pair<size_t, size_t> bound(const Key& key) const {
    if (chunks_.empty() || key_of(chunks_.back().back()) < key) return {chunks_.size(), 0};
    const auto chunk =
        std::partition_point(chunks_.begin(), chunks_.end(),
                             [&](const Chunk& records) { return key_of(records.back()) < key; });
    const auto place = std::partition_point(chunk->begin(), chunk->end(),
                                            [&](const T* record) { return key_of(record) < key; });
    return {static_cast<size_t>(chunk - chunks_.begin()),
            static_cast<size_t>(place - chunk->begin())};
  }

  typename std::vector<std::vector<T*>>::iterator iterator(size_t chunk) {
    return chunks_.begin() + static_cast<std::ptrdiff_t>(chunk);
  }
  void split(size_t chunk) {
    chunks_.emplace(iterator(chunk + 1));
    Chunk& full = chunks_[chunk];
    const auto middle = full.begin() + static_cast<std::ptrdiff_t>(full.size() / 2);
    chunks_[chunk + 1].assign(middle, full.end());
    full.erase(middle, full.end());
  }

  // Merges small chunks, so that they do not keep the memory of the many that were full.
  void merge_with_next(size_t chunk) {
    Chunk& left = chunks_[chunk];
    const Chunk& right = chunks_[chunk + 1];
    if (left.size() + right.size() > kChunkCapacity * 3 / 4) return;
    left.insert(left.end(), right.begin(), right.end());
    chunks_.erase(iterator(chunk + 1));
  }

  std::vector<Chunk> chunks_;
  size_t size_ = 0;
};

}  // namespace latchkey::store
