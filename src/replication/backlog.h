// The stream as bytes: its last ones, kept so that a replica whose connection broke can go on where
// it was, and whatever is still to be sent to replicas that are slow.
//
// The bytes of the stream are numbered from 1. They stand in blocks that replicas' outputs refer to
// instead of copying them, so that a slow replica costs what is behind the backlog once, however
// many are as slow. A block goes when the rest is enough and nobody else refers to it: the backlog
// may hold more than its capacity, and what it holds is of use to whoever comes back.
//
// O(bytes) to append, O(log blocks + blocks shared) to share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/blob.h"
#include "resp/output_buffer.h"

namespace latchkey::replication {

class Backlog {
 public:
  // A block and its bookkeeping are one allocation of this size.
  static constexpr size_t kBlockSize = 16 * 1024 - sizeof(base::Blob);

  // Holds nothing; the first byte it will hold comes behind byte `last`.
  Backlog(size_t capacity, uint64_t last) : capacity_(capacity), last_(last) {}

  void append(std::string_view bytes);
  // Forgets blocks that are not needed, from the oldest on; a bounded number of them, so that
  // nobody waits. To be called when bytes have been appended and shared, and now and then.
  void trim();
  void set_capacity(size_t capacity) { capacity_ = capacity; }

  // Numbers of the oldest byte that is held and of the newest; first() is behind last() when there
  // are none.
  uint64_t first() const { return blocks_.empty() ? last_ + 1 : blocks_.front().first; }
  uint64_t last() const { return last_; }
  size_t size() const { return last_ - first() + 1; }
  // What it holds, the bytes that only replicas need included, and what of it is beyond the
  // capacity: without replicas that are slow that is two blocks at most.
  size_t memory_usage() const;
  size_t excess_memory() const;

  // Whether all bytes from `number` on are held; there may be none yet.
  bool reaches(uint64_t number) const { return number >= first() && number <= last_ + 1; }
  // Appends the bytes from `number` on, by reference. REQUIRES: reaches(number).
  void share_from(uint64_t number, resp::OutputBuffer& out) const;
  // The last bytes, at most that many.
  std::string latest(size_t most) const;

 private:
  struct Block {
    uint64_t first;  // number of its first byte
    size_t size;
    base::BlobRef blob;
  };
  void add_block();
  // `fn(block, bytes)` for each block that holds bytes from `number` on, with these.
  template <typename Fn>
  void for_each_from(uint64_t number, Fn&& fn) const;

  size_t capacity_;
  uint64_t last_;
  std::deque<Block> blocks_;  // all full but the last
};

}  // namespace latchkey::replication
