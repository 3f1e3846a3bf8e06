#include "base/blob.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/assert.h"

namespace latchkey::base {

Blob* Blob::create(size_t size, size_t capacity) {
  LK_ASSERT(size <= capacity && capacity - size <= UINT32_MAX);
  void* memory = std::malloc(sizeof(Blob) + capacity);
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Blob(0, size, capacity);
}

Blob* Blob::adopt(void* memory, size_t front, size_t size) {
  LK_ASSERT(front < kMaxFront);
  return new (memory) Blob(front, size, size);
}

Blob* Blob::create(std::string_view bytes) {
  Blob* blob = create(bytes.size(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), blob->data());
  return blob;
}

void Blob::destroy() {
  std::free(this);
}

Blob* Blob::create_extended(std::string_view bytes, size_t size) {
  constexpr size_t kMaxSpare = 1024 * 1024;
  LK_ASSERT(bytes.size() <= size);
  Blob* blob = create(size, size + std::min(size, kMaxSpare));
  char* rest = std::copy(bytes.begin(), bytes.end(), blob->data());
  std::memset(rest, 0, size - bytes.size());
  return blob;
}

Blob* Blob::create_zeroed(size_t size) {
  Blob* blob = create(size, size);
  std::memset(blob->data(), 0, size);
  return blob;
}

void Blob::append(std::string_view bytes) {
  LK_ASSERT(!shared() && bytes.size() <= spare_);
  std::copy(bytes.begin(), bytes.end(), data() + size_);
  size_ = (size_ + bytes.size()) & kSizeMask;
  spare_ -= static_cast<uint32_t>(bytes.size());
}

Blob* Blob::extend(Blob* blob, size_t size) {
  LK_ASSERT(!blob->shared() && size >= blob->size_);
  if (size > blob->capacity()) {
    Blob* larger = create_extended(blob->view(), size);
    blob->destroy();
    return larger;
  }
  const size_t added = size - blob->size_;
  std::memset(blob->data() + blob->size_, 0, added);
  blob->size_ = size & kSizeMask;
  blob->spare_ -= static_cast<uint32_t>(added);
  return blob;
}

}  // namespace latchkey::base
