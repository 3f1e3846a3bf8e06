// A large string value: bytes with room to grow, shared by reference.
//
// A value that is being sent to a client is not copied: the reply holds a reference. A shared blob
// must be copied before it is changed. Reference counts are atomic, since a value may be freed on a
// background thread while a reply still holds it; everything else belongs to the server's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace latchkey::base {

class Blob {
 public:
  // A blob of `size` uninitialised bytes with room for `capacity` >= size (by less than 4 GiB), and
  // one reference.
  static Blob* create(size_t size, size_t capacity);
  static Blob* create(std::string_view bytes);

  // A blob of `size` bytes that begins with `bytes`, the rest zero. Its spare room is as large as
  // `size`, but at most a megabyte.
  static Blob* create_extended(std::string_view bytes, size_t size);

  // A blob of `size` zeros, without spare room.
  static Blob* create_zeroed(size_t size);

  // A blob made of memory that std::malloc() gave, whose bytes are already there: `size` of them
  // behind sizeof(Blob) bytes for the blob itself and `front` < kMaxFront others, which stay. The
  // blob owns all of it.
  static constexpr size_t kMaxFront = size_t{1} << 20;
  static Blob* adopt(void* memory, size_t front, size_t size);

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  bool shared() const { return references_.load(std::memory_order_acquire) > 1; }

  char* data() { return reinterpret_cast<char*>(this + 1) + front_; }
  const char* data() const { return reinterpret_cast<const char*>(this + 1) + front_; }
  size_t size() const { return size_; }
  size_t capacity() const { return size_ + spare_; }
  std::string_view view() const { return {data(), size_}; }
  size_t memory_usage() const { return sizeof(Blob) + front_ + capacity(); }

  // Appends to an unshared blob. REQUIRES: as much spare room.
  void append(std::string_view bytes);
  // Makes an unshared blob longer, moving it when there is no room; new bytes are zero. A moved
  // blob gets spare room as by create_extended(), so that repeated appends cost O(1) a byte.
  // Consumes the old pointer.
  static Blob* extend(Blob* blob, size_t size);

 private:
  static constexpr uint64_t kSizeMask = (uint64_t{1} << 44) - 1;
  Blob(size_t front, size_t size, size_t capacity)
      : size_(size & kSizeMask),
        front_(front & (kMaxFront - 1)),
        spare_(static_cast<uint32_t>(capacity - size)) {}
  void destroy();

  uint64_t size_ : 44;
  uint64_t front_ : 20;  // bytes between the blob and its own bytes
  uint32_t spare_;       // room beyond size_
  std::atomic<uint32_t> references_{1};
};
static_assert(sizeof(Blob) == 16);

// Owns one reference.
class BlobRef {
 public:
  BlobRef() = default;
  // Adds a reference.
  explicit BlobRef(Blob* blob) : blob_(blob) { blob_->retain(); }
  // Adopts a reference of the caller's, such as the first one of a new blob.
  static BlobRef adopt(Blob* blob) {
    BlobRef made;
    made.blob_ = blob;
    return made;
  }
  // Of a new blob of `size` uninitialised bytes, without spare room.
  static BlobRef create(size_t size) { return adopt(Blob::create(size, size)); }
  BlobRef(BlobRef&& other) noexcept : blob_(std::exchange(other.blob_, nullptr)) {}
  BlobRef& operator=(BlobRef&& other) noexcept {
    std::swap(blob_, other.blob_);
    return *this;
  }
  BlobRef(const BlobRef&) = delete;
  BlobRef& operator=(const BlobRef&) = delete;
  ~BlobRef() {
    if (blob_ != nullptr) blob_->release();
  }
  Blob* get() const { return blob_; }
  // Gives the reference to the caller.
  Blob* release() { return std::exchange(blob_, nullptr); }
  std::string_view view() const { return blob_->view(); }
  explicit operator bool() const { return blob_ != nullptr; }

 private:
  Blob* blob_ = nullptr;
};

}  // namespace latchkey::base
