// What the fuzz targets share: the input as a source of choices, and how they fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace latchkey::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Gives the input out piece by piece; zeros when it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return position_ == size_; }
  uint8_t byte() { return position_ < size_ ? data_[position_++] : 0; }
  uint64_t word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  std::string_view rest() const {
    return {reinterpret_cast<const char*>(data_) + position_, size_ - position_};
  }

  // An integer of any width, or a string of up to some thousand bytes; few different short ones, so
  // that they come again.
  std::string text() {
    const uint8_t choice = byte();
    if (choice < 64) return std::to_string(static_cast<int64_t>(word()) >> choice);
    if (choice < 128) return std::to_string(static_cast<int8_t>(byte()));
    if (choice < 224) return std::string(1, static_cast<char>(choice));
    if (choice < 250) return std::string(choice - size_t{224}, static_cast<char>(byte()));
    return std::string((choice - size_t{249}) * 700, static_cast<char>(byte()));
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t position_ = 0;
};

}  // namespace latchkey::fuzz
