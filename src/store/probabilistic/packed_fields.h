// Numbers one behind another without gaps, in the machine's order of bytes: headers of dumps.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/assert.h"

namespace latchkey::store {

class PackedWriter {
 public:
  // Appends to `out`, which must outlive this.
  explicit PackedWriter(std::string& out) : out_(out) {}

  template <typename Number>
  PackedWriter& put(Number number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }

 private:
  std::string& out_;
};

class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : bytes_(bytes) {}

  // REQUIRES: so many bytes are left.
  template <typename Number>
  Number get() {
    LK_ASSERT(bytes_.size() >= sizeof(Number));
    Number number;
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
    return number;
  }

 private:
  std::string_view bytes_;
};

}  // namespace latchkey::store
