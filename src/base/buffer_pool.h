// Keeps a few fixed-size buffers in the cache, so that idle connections need not hold any. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

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

  // A buffer of kBufferSize bytes from malloc; reuses the buffer that was given back last.
  char* acquire() {
    if (free_.empty()) {
      auto* buffer = static_cast<char*>(std::malloc(kBufferSize));
      if (buffer == nullptr) throw std::bad_alloc();
      return buffer;
    }
    char* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(char* buffer) {
    if (free_.size() < kMaxKept) {
      free_.push_back(buffer);
    } else {
      std::free(buffer);
    }
  }

 private:
  static constexpr size_t kMaxKept = 16;
  std::vector<char*> free_;
};

}  // namespace latchkey::base
