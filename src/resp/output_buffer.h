// Bytes queued for a client.
//
// A contiguous buffer that grows as needed, with large values, or parts of them, inserted by
// reference (base::Blob) instead of copied. Empty buffers own no memory. Appending and taking cost
// O(bytes), amortised: the room of taken bytes is reused once it is as large as the bytes that
// remain. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "base/buffer_pool.h"

namespace latchkey::resp {

class OutputBuffer {
 public:
  explicit OutputBuffer(base::BufferPool& pool) : pool_(&pool) {}
  ~OutputBuffer() { clear(); }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  OutputBuffer(OutputBuffer&& other) noexcept : OutputBuffer(*other.pool_) { swap(other); }
  void swap(OutputBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(taken_, other.taken_);
    std::swap(sharing_, other.sharing_);
  }

  // Bytes not taken yet, including shared ones.
  size_t size() const { return size_ - taken_ + shared_size(); }
  bool empty() const { return size() == 0; }
  // Bytes of memory held, and the same without memory shared with others.
  size_t memory_usage() const { return capacity_ + shared_size(); }
  size_t own_memory() const {
    if (sharing_ == nullptr) return capacity_;
    return capacity_ + sizeof(Sharing) + sharing_->pieces.capacity() * sizeof(Shared);
  }

  // Room for `size` more bytes at the end; call commit() after writing them.
  char* reserve(size_t size) {
    if (capacity_ - size_ < size) grow(size);
    return data_ + size_;
  }
  void commit(size_t size) { size_ += size; }
  void append(std::string_view bytes) {
    std::copy(bytes.begin(), bytes.end(), reserve(bytes.size()));
    commit(bytes.size());
  }
  // Appends the blob's bytes by reference. Marks are valid only if own bytes precede and follow it.
  void append_shared(base::Blob* blob) { append_shared(blob, blob->view()); }
  // The same for a part of a blob, which may extend beyond the blob's present size if the blob is
  // still being filled. A part that continues the previous piece is merged with it.
  void append_shared(base::Blob* blob, std::string_view part);

  // Appends the contents of `other` from its byte `first` on, sharing what it shares. REQUIRES:
  // nothing was taken from `other`, and no shared piece is before byte `first`.
  void append(const OutputBuffer& other, size_t first = 0);

  // Whether what could be shared is to be appended as bytes.
  bool copies_all() const { return pool_->copies_all; }

  // A position among the own bytes, for later patching or truncating. Valid until bytes are taken.
  size_t mark() const { return size_; }
  // Drops everything appended since `mark`.
  void truncate(size_t mark);
  // Replaces `reserved` bytes at `mark` by `bytes`, which may be shorter or longer, moving the
  // bytes behind them.
  void patch(size_t mark, size_t reserved, std::string_view bytes);
  // Own bytes appended since `mark`. REQUIRES: nothing shared was appended since.
  std::string_view since(size_t mark) const { return {data_ + mark, size_ - mark}; }
  // A copy of everything appended since `mark`, shared bytes included: the first `most` bytes.
  std::string copy_since(size_t mark, size_t most = static_cast<size_t>(-1)) const;

  // Up to `capacity` pieces from the front, as Piece{pointer, length}; returns their number.
  template <typename Piece>
  size_t gather(Piece* pieces, size_t capacity) const {
    size_t count = 0;
    size_t position = taken_;
    size_t skip = sharing_ != nullptr ? sharing_->taken : 0;
    for (const Shared& shared : shared_pieces()) {
      if (count == capacity) return count;
      if (shared.position > position) {
        pieces[count++] = Piece{data_ + position, shared.position - position};
        position = shared.position;
        if (count == capacity) return count;
      }
      const std::string_view bytes = shared.bytes.substr(skip);
      skip = 0;
      pieces[count++] = Piece{const_cast<char*>(bytes.data()), bytes.size()};
    }
    if (count < capacity && position < size_)
      pieces[count++] = Piece{data_ + position, size_ - position};
    return count;
  }
  // Removes `count` bytes (at most size()) from the front; frees the memory when nothing is left.
  void take(size_t count);
  // Removes all bytes and returns them, for those who do not send them.
  std::string take_all();
  // Drops everything and frees the memory.
  void clear() {
    if (capacity_ != 0 || sharing_ != nullptr) release();
  }
  // Moves the bytes out of the pool's buffer, so that others can use it: for output that may stay
  // for long.
  void leave_pool();

 private:
  struct Shared {
    size_t position;  // own bytes before it
    std::string_view bytes;
    base::BlobRef blob;
  };
  // Most buffers share nothing.
  struct Sharing {
    std::vector<Shared> pieces;
    size_t size = 0;   // bytes not taken yet
    size_t taken = 0;  // bytes taken of the first piece
  };
  size_t shared_size() const { return sharing_ != nullptr ? sharing_->size : 0; }
  std::span<const Shared> shared_pieces() const {
    return sharing_ != nullptr ? std::span<const Shared>(sharing_->pieces)
                               : std::span<const Shared>();
  }
  std::span<Shared> shared_pieces() {
    return sharing_ != nullptr ? std::span<Shared>(sharing_->pieces) : std::span<Shared>();
  }
  bool is_of_pool() const { return capacity_ == base::BufferPool::kBufferSize; }
  void take_of_pieces(size_t count);
  void release();
  void move_to(char* data, size_t capacity);
  void move_to_own(size_t capacity);
  void grow(size_t size);
  void reuse_taken();

  base::BufferPool* pool_;
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;  // kBufferSize: data_ is the pool's
  size_t taken_ = 0;     // own bytes already taken
  std::unique_ptr<Sharing> sharing_;
};

}  // namespace latchkey::resp
