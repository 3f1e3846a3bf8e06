// A fixed number of zeroes of a trivial type. The system gives large ones page by page, when they
// are first written: a large array costs nothing until it is used.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace latchkey::store {

template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedArray() = default;
  // Throws std::bad_alloc when the system refuses.
  explicit ZeroedArray(size_t size) : size_(size) {
    if (size == 0) return;
    data_ = static_cast<T*>(std::calloc(size, sizeof(T)));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  // Not made when the system refuses.
  ZeroedArray(size_t size, std::nothrow_t)
      : data_(static_cast<T*>(std::calloc(size, sizeof(T)))), size_(data_ == nullptr ? 0 : size) {}
  // A copy of these bytes. The same.
  ZeroedArray(std::string_view bytes, std::nothrow_t)
      : ZeroedArray(bytes.size() / sizeof(T), std::nothrow) {
    if (is_made()) std::memcpy(data_, bytes.data(), size_ * sizeof(T));
  }
  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) {
    if (size_ != 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
  }
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() { std::free(data_); }

  bool is_made() const { return data_ != nullptr; }
  size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(data_), size_ * sizeof(T)};
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace latchkey::store
