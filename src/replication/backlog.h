// The last bytes of the stream, kept so that a replica whose connection broke can go on where it
// was.
//
// The bytes of the stream are numbered from 1. The ring grows up to its capacity and then forgets
// the oldest bytes. O(bytes) to append and to copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "resp/output_buffer.h"

namespace latchkey::replication {

class Backlog {
 public:
  // Holds nothing; the first byte it will hold comes behind byte `last`.
  // REQUIRES: capacity > 0.
  Backlog(size_t capacity, uint64_t last) : capacity_(capacity), last_(last) {}

  void append(std::string_view bytes);
  // Keeps the last bytes, as many as fit.
  void resize(size_t capacity);

  // Numbers of the oldest byte that is held and of the newest; first() is behind last() when there
  // are none.
  uint64_t first() const { return last_ - ring_.size() + 1; }
  uint64_t last() const { return last_; }
  size_t size() const { return ring_.size(); }
  size_t capacity() const { return capacity_; }
  size_t memory_usage() const { return sizeof(*this) + ring_.capacity(); }

  // Whether all bytes from `number` on are held; there may be none yet.
  bool reaches(uint64_t number) const { return number >= first() && number <= last_ + 1; }
  // Appends the bytes from `number` on. REQUIRES: reaches(number).
  void copy_from(uint64_t number, resp::OutputBuffer& out) const;
  // The last bytes, at most that many.
  std::string latest(size_t most) const;

 private:
  // The bytes from the one `skipped` behind the oldest on, in two pieces at most.
  template <typename Fn>
  void for_each_piece(size_t skipped, Fn&& fn) const;

  size_t capacity_;
  uint64_t last_;
  // Below its capacity in order, from the front; then round, the oldest byte at next_.
  std::vector<char> ring_;
  size_t next_ = 0;
};

}  // namespace latchkey::replication
