// A few buffers of one size that stay in the cache, so that idle connections need not hold any. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/heap_account.h"

namespace latchkey::base {

class BufferPool {
 public:
  static constexpr size_t kBufferSize = 16 * 1024;

  // Whether those who use the pool copy what they could share (DEBUG REPLY-COPY-AVOIDANCE).
  bool copies_all = false;

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    for (char* buffer : free_) std::free(buffer);
  }

  // The buffer that was given back last, of kBufferSize bytes, or a new one; nullptr when kMost are
  // lent. Many clients with a few bytes each are better off with less than a buffer: its first page
  // would not be in the cache, and perhaps not in memory.
  char* acquire() {
    if (lent_ == kMost) return nullptr;
    char* buffer = nullptr;
    if (free_.empty()) {
      buffer = static_cast<char*>(std::malloc(kBufferSize));
      if (buffer == nullptr) throw std::bad_alloc();
      HeapAccount::transfer_out(kBufferSize);
    } else {
      buffer = free_.back();
      free_.pop_back();
    }
    ++lent_;
    return buffer;
  }
  void give_back(char* buffer) {
    free_.push_back(buffer);
    --lent_;
  }
  // The holder of a lent buffer owns it from now on, as any other memory from malloc.
  void forget() {
    --lent_;
    HeapAccount::transfer_in(kBufferSize);
  }

 private:
  static constexpr size_t kMost = 16;
  std::vector<char*> free_;
  size_t lent_ = 0;
};

}  // namespace latchkey::base
