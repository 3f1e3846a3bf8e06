// A run of a series' samples, in the order of their timestamps, which are all different.
//
// Compressed chunks have the encoding of T. Pelkonen et al., "Gorilla: A Fast, Scalable, In-Memory
// Time Series Database" (VLDB 2015), with the field widths of Redis's files. The first sample
// stands apart. Of each further one, bits from the lowest of each 64-bit word on:
//
//     timestamp: D, the difference of its delta to the one before
//       0                  D is zero
//       10     D,  5 bits  two's complement, as all that follow
//       110    D,  8 bits
//       1110   D, 11 bits
//       11110  D, 15 bits
//       111110 D, 32 bits
//       111111 D, 64 bits
//     value: X, the exclusive or with the value before
//       0                  X is zero
//       10     X           those bits that were not zero at the last "11"
//       11     leading zeros (5 bits), length - 1 (6 bits), X without the zeros at both ends
//
// "10" is chosen when X fits and at most ten bits are wasted. Written fields have their lowest bit
// first. Uncompressed chunks are pairs of a timestamp and a value, 16 bytes a sample.
//
// size_bytes() is the room that a chunk has for its data; memory is taken as it fills. Costs:
// append and the ends O(1); everything else O(samples). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/time_series/sample.h"

namespace latchkey::store {

class Chunk {
 public:
  static constexpr size_t kPlainSampleSize = 16;

  Chunk(SeriesEncoding encoding, size_t size_bytes)
      : size_bytes_(size_bytes), encoding_(encoding) {}

  SeriesEncoding encoding() const { return encoding_; }
  size_t size_bytes() const { return size_bytes_; }
  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  size_t memory_usage() const { return sizeof *this + words_.capacity() * sizeof(uint64_t); }

  // REQUIRES of all three: not empty.
  int64_t first_timestamp() const { return first_.timestamp; }
  int64_t last_timestamp() const { return last_.timestamp; }
  Sample last() const { return last_; }

  // False when there is no room. REQUIRES: its timestamp is above the last.
  bool append(Sample sample);
  // All samples.
  std::vector<Sample> samples() const;
  // The value of that time; nothing when there is none. Reads no further than it must.
  std::optional<double> value_at(int64_t timestamp) const;
  // Holds these samples from now on, with more room if they need it. REQUIRES: in order.
  void assign(std::span<const Sample> samples);
  // Gives up the room that the samples do not need.
  void trim();

  // Reads from the first sample on. The chunk must not change meanwhile.
  class Decoder {
   public:
    explicit Decoder(const Chunk& chunk) : chunk_(&chunk), last_(chunk.first_) {}
    // Reads as many samples as there is room for, and returns how many there were: 0 behind the
    // last one.
    size_t next(std::span<Sample> samples);
    // False behind the last one.
    bool next(Sample* sample) { return next({sample, 1}) == 1; }

   private:
    friend class Chunk;
    void next_plain(std::span<Sample> samples);
    void next_compressed(std::span<Sample> samples);

    const Chunk* chunk_;
    size_t read_ = 0;
    // Compressed: the sample read last, where it ends in bits, its delta, and the length of the
    // last "11" (0: there was none) with the zeros behind it.
    Sample last_;
    size_t position_ = 0;
    int64_t delta_ = 0;
    unsigned length_ = 0;
    unsigned trailing_ = 0;
    bool is_valid_ = true;
  };

  // --- As files have it -------------------------------------------------------------------------

  // The state behind the last sample, from which compression goes on.
  struct Tail {
    int64_t delta = 0;
    unsigned leading = kNoZeros;
    unsigned trailing = kNoZeros;
  };
  size_t bit_count() const { return bit_count_; }
  Sample first() const { return first_; }
  Tail tail() const { return tail_; }
  // size_bytes() of them; those that no sample needs are zero.
  std::string bytes() const;

  // A chunk of what a file tells of one. Nothing unless the data are exactly that many samples in
  // order, none with a negative timestamp. `bytes` of a compressed chunk: without the first sample,
  // `bit_count` bits at least; of another one: `count` samples at least.
  static std::optional<Chunk> from_compressed(size_t size_bytes, Sample first, uint64_t count,
                                              std::string_view bytes, uint64_t bit_count);
  static std::optional<Chunk> from_plain(size_t size_bytes, uint64_t count, std::string_view bytes);

 private:
  // No value has so many zeros at either end that is written: the first needs a length.
  static constexpr unsigned kNoZeros = 32;

  size_t capacity_bits() const { return size_bytes_ * 8; }
  void put(uint64_t field, unsigned count);
  bool append_compressed(Sample sample);
  // append(), with more room if it is needed.
  void force(Sample sample);

  std::vector<uint64_t> words_;
  size_t size_bytes_;
  size_t count_ = 0;
  size_t bit_count_ = 0;
  Sample first_;
  Sample last_;
  Tail tail_;
  SeriesEncoding encoding_;
};

}  // namespace latchkey::store
