// The stored bytes of the replication stream: the last ones, so that a replica whose connection
// broke can continue, and all bytes that slow replicas have not been sent yet.
//
// The bytes of the stream are numbered from 1. They are stored in blocks that the replicas' output
// buffers share, so that bytes beyond the backlog cost memory once, however many replicas are slow.
// A block is freed when the remaining ones are enough and no replica refers to it: the backlog may
// hold more than its capacity, and all of it serves partial resynchronizations.
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
  // Bytes of a block. With its Blob header it is one allocation of 16 KiB.
  static constexpr size_t kBlockSize = 16 * 1024 - sizeof(base::Blob);

  // Empty; the first byte it will hold is number `last` + 1.
  Backlog(size_t capacity, uint64_t last) : capacity_(capacity), last_(last) {}

  void append(std::string_view bytes);
  // Frees surplus blocks, from the oldest on; a bounded number of them, so that no call takes long.
  // To be called after bytes were appended and shared, and now and then.
  void trim();
  void set_capacity(size_t capacity) { capacity_ = capacity; }

  // Numbers of the oldest and the newest byte held; first() is last() + 1 when there are none.
  uint64_t first() const { return blocks_.empty() ? last_ + 1 : blocks_.front().first; }
  uint64_t last() const { return last_; }
  size_t size() const { return last_ - first() + 1; }
  // Memory of all blocks, including those that only slow replicas need, and the part of it beyond
  // the capacity: without slow replicas that is at most two blocks.
  size_t memory_usage() const;
  size_t excess_memory() const;

  // Whether all bytes from `number` on are held; there may be none yet.
  bool reaches(uint64_t number) const { return number >= first() && number <= last_ + 1; }
  // Appends the bytes from `number` on, by reference. REQUIRES: reaches(number).
  void share_from(uint64_t number, resp::OutputBuffer& out) const;
  // The last `most` bytes, or fewer.
  std::string latest(size_t most) const;

 private:
  struct Block {
    uint64_t first;  // number of its first byte
    size_t size;
    base::BlobRef blob;
  };
  void add_block();
  // Calls `fn(block, bytes)` for each block with bytes from `number` on; `bytes` are those bytes.
  template <typename Fn>
  void for_each_from(uint64_t number, Fn&& fn) const;

  size_t capacity_;
  uint64_t last_;
  std::deque<Block> blocks_;  // all but the last are full
};

}  // namespace latchkey::replication
