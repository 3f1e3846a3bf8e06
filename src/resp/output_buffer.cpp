#include "resp/output_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include "base/assert.h"

namespace latchkey::resp {

namespace {

// Of a buffer that is not of the pool: room for a few short replies.
constexpr size_t kLeastCapacity = 1024;

}  // namespace

void OutputBuffer::append_shared(base::Blob* blob, std::string_view part) {
  if (sharing_ == nullptr) sharing_ = std::make_unique<Sharing>();
  sharing_->size += part.size();
  if (!sharing_->pieces.empty()) {
    Shared& last = sharing_->pieces.back();
    if (last.position == size_ && last.blob.get() == blob &&
        last.bytes.data() + last.bytes.size() == part.data()) {
      last.bytes = {last.bytes.data(), last.bytes.size() + part.size()};
      return;
    }
  }
  sharing_->pieces.push_back({size_, part, base::BlobRef(blob)});
}

void OutputBuffer::append(const OutputBuffer& other, size_t first) {
  LK_ASSERT(other.taken_ == 0 && (other.sharing_ == nullptr || other.sharing_->taken == 0));
  for (const Shared& shared : other.shared_pieces()) {
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
  for (const Shared& shared : shared_pieces()) {
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
  while (!shared_pieces().empty() && shared_pieces().back().position > mark) {
    sharing_->size -= sharing_->pieces.back().bytes.size();
    sharing_->pieces.pop_back();
  }
  size_ = mark;
  if (empty()) clear();
}

void OutputBuffer::patch(size_t mark, size_t reserved, std::string_view bytes) {
  if (bytes.size() > reserved) reserve(bytes.size() - reserved);
  char* place = data_ + mark;
  std::memmove(place + bytes.size(), place + reserved, size_ - mark - reserved);
  std::copy(bytes.begin(), bytes.end(), place);
  for (Shared& shared : shared_pieces()) {
    if (shared.position > mark) shared.position = shared.position - reserved + bytes.size();
  }
  size_ = size_ - reserved + bytes.size();
}

void OutputBuffer::take(size_t count) {
  LK_ASSERT(count <= size());
  if (count == size()) {
    clear();
    return;
  }
  if (sharing_ == nullptr) {
    taken_ += count;
  } else {
    take_of_pieces(count);
  }
  if (taken_ >= base::BufferPool::kBufferSize / 2 && taken_ >= size_ - taken_) reuse_taken();
}

void OutputBuffer::take_of_pieces(size_t count) {
  std::vector<Shared>& pieces = sharing_->pieces;
  size_t whole_pieces = 0;
  while (count > 0) {
    const bool piece_ahead = whole_pieces < pieces.size();
    const size_t own = (piece_ahead ? pieces[whole_pieces].position : size_) - taken_;
    const size_t from_own = std::min(own, count);
    taken_ += from_own;
    count -= from_own;
    if (count == 0 || !piece_ahead) break;
    const size_t left = pieces[whole_pieces].bytes.size() - sharing_->taken;
    const size_t from_shared = std::min(left, count);
    count -= from_shared;
    sharing_->size -= from_shared;
    sharing_->taken += from_shared;
    if (from_shared == left) {
      ++whole_pieces;
      sharing_->taken = 0;
    }
  }
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(whole_pieces));
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
  for (Shared& shared : shared_pieces()) shared.position -= taken_;
  size_ -= taken_;
  taken_ = 0;
}

void OutputBuffer::release() {
  move_to(nullptr, 0);
  size_ = taken_ = 0;
  sharing_.reset();
}

void OutputBuffer::leave_pool() {
  if (is_of_pool()) move_to_own(size_);
}

// Takes `data` instead of what there is, which is freed: a copy of that, or nothing.
void OutputBuffer::move_to(char* data, size_t capacity) {
  if (is_of_pool()) {
    pool_->give_back(data_);
  } else {
    std::free(data_);
  }
  data_ = data;
  capacity_ = capacity;
}

// To memory that is not the pool's, of that size or more.
void OutputBuffer::move_to_own(size_t capacity) {
  capacity = std::max(capacity, kLeastCapacity);
  if (capacity == base::BufferPool::kBufferSize) capacity += capacity / 4;
  auto* data = static_cast<char*>(std::realloc(data_, capacity));
  if (data == nullptr) throw std::bad_alloc();
  // Kept, it would count as memory in use, of which keys are evicted.
  if (is_of_pool()) pool_->forget();
  data_ = data;
  capacity_ = capacity;
}

void OutputBuffer::grow(size_t size) {
  const size_t needed = size_ + size;
  if (needed <= base::BufferPool::kBufferSize) {
    if (char* data = pool_->acquire(); data != nullptr) {
      if (size_ != 0) std::memcpy(data, data_, size_);
      return move_to(data, base::BufferPool::kBufferSize);
    }
  }
  move_to_own(std::max(needed, capacity_ * (capacity_ < base::BufferPool::kBufferSize ? 4 : 2)));
}

}  // namespace latchkey::resp
