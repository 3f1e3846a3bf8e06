#include "resp/output_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "base/assert.h"

namespace latchkey::resp {

void OutputBuffer::append_shared(base::Blob* blob, std::string_view part) {
  shared_size_ += part.size();
  if (!shared_.empty()) {
    Shared& last = shared_.back();
    if (last.position == size_ && last.blob.get() == blob &&
        last.bytes.data() + last.bytes.size() == part.data()) {
      last.bytes = {last.bytes.data(), last.bytes.size() + part.size()};
      return;
    }
  }
  shared_.push_back({size_, part, base::BlobRef(blob)});
}

void OutputBuffer::append(const OutputBuffer& other, size_t first) {
  LK_ASSERT(other.taken_ == 0 && other.shared_taken_ == 0);
  for (const Shared& shared : other.shared_) {
    append({other.data_ + first, shared.position - first});
    append_shared(shared.blob.get(), shared.bytes);
    first = shared.position;
  }
  append({other.data_ + first, other.size_ - first});
}

std::string OutputBuffer::copy_since(size_t mark, size_t most) const {
  std::string copy;
  if (mark > size_) return copy;
  const auto add = [&](std::string_view bytes) {
    copy.append(bytes.substr(0, most - copy.size()));
  };
  for (const Shared& shared : shared_) {
    if (shared.position <= mark) continue;
    add({data_ + mark, shared.position - mark});
    add(shared.bytes);
    mark = shared.position;
  }
  add({data_ + mark, size_ - mark});
  return copy;
}

void OutputBuffer::truncate(size_t mark) {
  LK_ASSERT(mark <= size_ && mark >= taken_);
  while (!shared_.empty() && shared_.back().position > mark) {
    shared_size_ -= shared_.back().bytes.size();
    shared_.pop_back();
  }
  size_ = mark;
  if (empty()) clear();
}

void OutputBuffer::patch(size_t mark, size_t reserved, std::string_view bytes) {
  if (bytes.size() > reserved) reserve(bytes.size() - reserved);
  char* place = data_ + mark;
  std::memmove(place + bytes.size(), place + reserved, size_ - mark - reserved);
  std::copy(bytes.begin(), bytes.end(), place);
  for (auto it = shared_.rbegin(); it != shared_.rend() && it->position > mark; ++it) {
    it->position = it->position - reserved + bytes.size();
  }
  size_ = size_ - reserved + bytes.size();
}

void OutputBuffer::take(size_t count) {
  LK_ASSERT(count <= size());
  if (count == size()) {
    clear();
    return;
  }
  size_t whole_pieces = 0;
  while (count > 0) {
    const bool piece_ahead = whole_pieces < shared_.size();
    const size_t own = (piece_ahead ? shared_[whole_pieces].position : size_) - taken_;
    const size_t from_own = std::min(own, count);
    taken_ += from_own;
    count -= from_own;
    if (count == 0 || !piece_ahead) break;
    const size_t left = shared_[whole_pieces].bytes.size() - shared_taken_;
    const size_t from_shared = std::min(left, count);
    count -= from_shared;
    shared_size_ -= from_shared;
    shared_taken_ += from_shared;
    if (from_shared == left) {
      ++whole_pieces;
      shared_taken_ = 0;
    }
  }
  shared_.erase(shared_.begin(), shared_.begin() + static_cast<ptrdiff_t>(whole_pieces));
  if (taken_ >= base::BufferPool::kBufferSize / 2 && taken_ >= size_ - taken_) reuse_taken();
}

std::string OutputBuffer::take_all() {
  struct Piece {
    char* data;
    size_t size;
  };
  constexpr size_t kMaxPieces = 16;
  Piece pieces[kMaxPieces];
  std::string bytes;
  bytes.reserve(size());
  while (!empty()) {
    const size_t count = gather(pieces, kMaxPieces);
    size_t taken = 0;
    for (const Piece& piece : std::span(pieces, count)) {
      bytes.append(piece.data, piece.size);
      taken += piece.size;
    }
    take(taken);
  }
  return bytes;
}

// Needed because the buffer of a client that reads while it is written to may never be empty.
void OutputBuffer::reuse_taken() {
  std::memmove(data_, data_ + taken_, size_ - taken_);
  for (Shared& shared : shared_) shared.position -= taken_;
  size_ -= taken_;
  taken_ = 0;
}

void OutputBuffer::release() {
  if (capacity_ == base::BufferPool::kBufferSize) {
    pool_->give_back(data_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
  size_ = capacity_ = taken_ = shared_size_ = shared_taken_ = 0;
  if (shared_.capacity() != 0) std::vector<Shared>().swap(shared_);
}

void OutputBuffer::grow(size_t size) {
  const size_t needed = size_ + size;
  if (capacity_ == 0 && needed <= base::BufferPool::kBufferSize) {
    data_ = pool_->acquire();
    capacity_ = base::BufferPool::kBufferSize;
    return;
  }
  size_t capacity = std::max(needed, capacity_ * 2);
  // A buffer of kBufferSize bytes must come from the pool.
  if (capacity <= base::BufferPool::kBufferSize) capacity = base::BufferPool::kBufferSize * 2;
  auto* data = static_cast<char*>(std::realloc(data_, capacity));
  if (data == nullptr) throw std::bad_alloc();
  data_ = data;
  capacity_ = capacity;
}

}  // namespace latchkey::resp
