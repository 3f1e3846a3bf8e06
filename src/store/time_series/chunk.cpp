#include "store/time_series/chunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/assert.h"

namespace latchkey::store {

namespace {

constexpr unsigned kWordBits = 64;
// Of a "11" field.
constexpr unsigned kLeadingBits = 5;
constexpr unsigned kLengthBits = 6;
constexpr unsigned kMostLeading = (1u << kLeadingBits) - 1;
// "10" wastes at most so many bits.
constexpr unsigned kMostWasted = 10;
// By which a chunk grows when samples are inserted that it has no room for.
constexpr size_t kGrowthBytes = 32;

// A class of differences of deltas: so many ones and a zero (but for the last) before it.
struct StepClass {
  unsigned ones;
  unsigned bits;
};
constexpr StepClass kStepClasses[] = {{1, 5}, {2, 8}, {3, 11}, {4, 15}, {5, 32}, {6, 64}};
constexpr unsigned kMostOnes = 6;

struct Field {
  uint64_t bits = 0;
  unsigned count = 0;
};

bool fits(int64_t step, unsigned bits) {
  if (bits == kWordBits) return true;
  const int64_t bound = int64_t{1} << (bits - 1);
  return step >= -bound && step < bound;
}

uint64_t low_bits(uint64_t value, unsigned count) {
  return count == kWordBits ? value : value & ((uint64_t{1} << count) - 1);
}

// What stands before the difference.
Field prefix_of(const StepClass& of) {
  return {(uint64_t{1} << of.ones) - 1, of.ones == kMostOnes ? of.ones : of.ones + 1};
}

const StepClass& class_of(int64_t step) {
  size_t i = 0;
  while (!fits(step, kStepClasses[i].bits)) ++i;
  return kStepClasses[i];
}

// Differences wrap around: files may have any.
int64_t difference(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) - static_cast<uint64_t>(right));
}
int64_t sum(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
}

}  // namespace

// --- Writing ------------------------------------------------------------------------------------

void Chunk::put(uint64_t field, unsigned count) {
  const unsigned offset = bit_count_ % kWordBits;
  if (offset == 0) words_.push_back(0);
  words_.back() |= field << offset;
  if (offset + count > kWordBits) words_.push_back(field >> (kWordBits - offset));
  bit_count_ += count;
}

bool Chunk::append(Sample sample) {
  LK_ASSERT(empty() || sample.timestamp > last_.timestamp);
  if (encoding_ == SeriesEncoding::kCompressed) return append_compressed(sample);
  if ((count_ + 1) * kPlainSampleSize > size_bytes_) return false;
  words_.push_back(static_cast<uint64_t>(sample.timestamp));
  words_.push_back(std::bit_cast<uint64_t>(sample.value));
  if (empty()) first_ = sample;
  last_ = sample;
  ++count_;
  return true;
}

bool Chunk::append_compressed(Sample sample) {
  if (empty()) {
    first_ = last_ = sample;
    count_ = 1;
    return true;
  }
  const int64_t delta = difference(sample.timestamp, last_.timestamp);
  const int64_t step = difference(delta, tail_.delta);
  const StepClass* const step_class = step == 0 ? nullptr : &class_of(step);
  const Field prefix = step == 0 ? Field{0, 1} : prefix_of(*step_class);
  unsigned needed = prefix.count + (step == 0 ? 0 : step_class->bits) + 1;

  const uint64_t changed =
      std::bit_cast<uint64_t>(sample.value) ^ std::bit_cast<uint64_t>(last_.value);
  unsigned leading = 0;
  unsigned trailing = 0;
  unsigned length = 0;
  bool is_new_block = false;
  if (changed != 0) {
    leading = std::min(static_cast<unsigned>(std::countl_zero(changed)), kMostLeading);
    trailing = static_cast<unsigned>(std::countr_zero(changed));
    length = kWordBits - leading - trailing;
    const unsigned last_length = kWordBits - tail_.leading - tail_.trailing;
    is_new_block =
        leading < tail_.leading || trailing < tail_.trailing || last_length > length + kMostWasted;
    needed += 1 + (is_new_block ? kLeadingBits + kLengthBits + length : last_length);
  }
  if (bit_count_ + needed > capacity_bits()) return false;

  put(prefix.bits, prefix.count);
  if (step != 0) put(low_bits(static_cast<uint64_t>(step), step_class->bits), step_class->bits);
  if (changed == 0) {
    put(0, 1);
  } else if (is_new_block) {
    put(3, 2);
    put(leading, kLeadingBits);
    put(length - 1, kLengthBits);
    put(changed >> trailing, length);
    tail_.leading = leading;
    tail_.trailing = trailing;
  } else {
    put(1, 2);
    put(changed >> tail_.trailing, kWordBits - tail_.leading - tail_.trailing);
  }
  tail_.delta = delta;
  last_ = sample;
  ++count_;
  return true;
}

void Chunk::assign(std::span<const Sample> samples) {
  words_.clear();
  count_ = 0;
  bit_count_ = 0;
  first_ = last_ = {};
  tail_ = {};
  for (const Sample& sample : samples) force(sample);
}

void Chunk::force(Sample sample) {
  while (!append(sample)) {
    size_bytes_ = encoding_ == SeriesEncoding::kCompressed ? size_bytes_ + kGrowthBytes
                                                           : (count_ + 1) * kPlainSampleSize;
  }
}

void Chunk::trim() {
  if (encoding_ == SeriesEncoding::kCompressed) {
    // With a byte to spare, as in the reference.
    const size_t bytes = (bit_count_ + 7) / 8 + 1;
    size_bytes_ = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
  } else {
    size_bytes_ = count_ * kPlainSampleSize;
  }
  words_.shrink_to_fit();
}

// --- Reading ------------------------------------------------------------------------------------

namespace {

// Reads the fields of compressed samples.
class FieldReader {
 public:
  FieldReader(std::span<const uint64_t> words, size_t position)
      : bytes_(reinterpret_cast<const char*>(words.data())),
        size_(words.size_bytes()),
        position_(position) {}

  size_t position() const { return position_; }
  // The next bits, at least 57; zeros behind the last.
  uint64_t ahead() const {
    const size_t at = position_ / kByteBits;
    uint64_t field = 0;
    if (at + sizeof field <= size_) [[likely]] {
      std::memcpy(&field, bytes_ + at, sizeof field);
    } else if (at < size_) {
      std::memcpy(&field, bytes_ + at, size_ - at);
    }
    return field >> (position_ % kByteBits);
  }
  void skip(unsigned count) { position_ += count; }
  // REQUIRES: there are so many.
  uint64_t take(unsigned count) {
    uint64_t field = ahead();
    const unsigned known = kWordBits - position_ % kByteBits;
    if (count > known) [[unlikely]] {
      const auto last = static_cast<unsigned char>(bytes_[position_ / kByteBits + sizeof field]);
      field |= uint64_t{last} << known;
    }
    position_ += count;
    return low_bits(field, count);
  }

 private:
  static constexpr unsigned kByteBits = 8;

  const char* bytes_;
  size_t size_;
  size_t position_;  // in bits
};

// A difference of deltas other than zero.
int64_t take_step(FieldReader& fields) {
  const unsigned ones = std::min(static_cast<unsigned>(std::countr_one(fields.ahead())), kMostOnes);
  fields.skip(ones == kMostOnes ? ones : ones + 1);
  const unsigned width = kStepClasses[ones - 1].bits;
  const unsigned unused = kWordBits - width;
  return static_cast<int64_t>(fields.take(width) << unused) >> unused;
}

}  // namespace

size_t Chunk::Decoder::next(std::span<Sample> samples) {
  samples = samples.first(std::min(samples.size(), chunk_->count_ - read_));
  if (samples.empty()) return 0;
  chunk_->encoding_ == SeriesEncoding::kCompressed ? next_compressed(samples) : next_plain(samples);
  read_ += samples.size();
  return samples.size();
}

void Chunk::Decoder::next_plain(std::span<Sample> samples) {
  const uint64_t* at = chunk_->words_.data() + read_ * 2;
  for (Sample& sample : samples) {
    sample = {static_cast<int64_t>(at[0]), std::bit_cast<double>(at[1])};
    at += 2;
  }
}

void Chunk::Decoder::next_compressed(std::span<Sample> samples) {
  if (read_ == 0) {
    samples[0] = last_;
    samples = samples.subspan(1);
  }
  FieldReader fields(chunk_->words_, position_);
  // Not in the members: writing a sample might change those, for all that a compiler knows.
  int64_t timestamp = last_.timestamp;
  auto value = std::bit_cast<uint64_t>(last_.value);
  int64_t delta = delta_;
  unsigned length = length_;
  unsigned trailing = trailing_;
  for (Sample& sample : samples) {
    uint64_t field = fields.ahead();
    if ((field & 1) != 0) {
      delta = sum(delta, take_step(fields));
      field = fields.ahead();
    } else {
      fields.skip(1);
      field >>= 1;
    }
    timestamp = sum(timestamp, delta);
    if ((field & 1) == 0) {
      fields.skip(1);
    } else {
      constexpr unsigned kPrefixBits = 2;
      fields.skip(kPrefixBits);
      if ((field & 2) != 0) {
        const auto leading = static_cast<unsigned>(low_bits(field >> kPrefixBits, kLeadingBits));
        field >>= kPrefixBits + kLeadingBits;
        length = static_cast<unsigned>(low_bits(field, kLengthBits)) + 1;
        trailing = kWordBits - leading - length;
        fields.skip(kLeadingBits + kLengthBits);
      }
      // Bytes of a file may tell of more bits than there are, or use a length before there is one.
      if (length == 0 || trailing >= kWordBits) {
        is_valid_ = false;
        break;
      }
      value ^= fields.take(length) << trailing;
    }
    sample = {timestamp, std::bit_cast<double>(value)};
  }
  position_ = fields.position();
  last_ = {timestamp, std::bit_cast<double>(value)};
  delta_ = delta;
  length_ = length;
  trailing_ = trailing;
}

std::vector<Sample> Chunk::samples() const {
  std::vector<Sample> all(count_);
  Decoder(*this).next(all);
  return all;
}

std::optional<double> Chunk::value_at(int64_t timestamp) const {
  if (empty() || timestamp < first_.timestamp || timestamp > last_.timestamp) return std::nullopt;
  if (timestamp == last_.timestamp) return last_.value;
  constexpr size_t kBlockSize = 64;
  std::array<Sample, kBlockSize> samples;
  Decoder decoder(*this);
  while (const size_t count = decoder.next(samples)) {
    if (samples[count - 1].timestamp < timestamp) continue;
    const auto at = std::ranges::lower_bound(std::span(samples).first(count), timestamp, {},
                                             &Sample::timestamp);
    return at->timestamp == timestamp ? std::optional(at->value) : std::nullopt;
  }
  return std::nullopt;
}

// --- Files --------------------------------------------------------------------------------------

std::string Chunk::bytes() const {
  std::string bytes(size_bytes_, '\0');
  if (!words_.empty())
    std::memcpy(bytes.data(), words_.data(),
                std::min(bytes.size(), words_.size() * sizeof(uint64_t)));
  return bytes;
}

std::optional<Chunk> Chunk::from_compressed(size_t size_bytes, Sample first, uint64_t count,
                                            std::string_view bytes, uint64_t bit_count) {
  // A sample has fewer bits than so many words, so that a decoder never reads behind that padding.
  constexpr size_t kPaddingWords = 4;
  constexpr size_t kFewestBits = 2;
  Chunk chunk(SeriesEncoding::kCompressed, size_bytes);
  if (count == 0) return chunk;
  if (bit_count > bytes.size() * 8 || first.timestamp < 0 || count - 1 > bit_count / kFewestBits)
    return std::nullopt;
  Chunk stored(SeriesEncoding::kCompressed, size_bytes);
  stored.words_.resize(bytes.size() / sizeof(uint64_t) + kPaddingWords);
  std::memcpy(stored.words_.data(), bytes.data(), bytes.size());
  stored.first_ = first;
  stored.count_ = count;
  Decoder decoder(stored);
  for (Sample sample; decoder.next(&sample);) {
    const bool is_valid = decoder.is_valid_ && decoder.position_ <= bit_count &&
                          (chunk.empty() || sample.timestamp > chunk.last_.timestamp);
    if (!is_valid) return std::nullopt;
    chunk.force(sample);
  }
  return chunk;
}

std::optional<Chunk> Chunk::from_plain(size_t size_bytes, uint64_t count, std::string_view bytes) {
  if (count > bytes.size() / kPlainSampleSize) return std::nullopt;
  Chunk chunk(SeriesEncoding::kUncompressed, size_bytes);
  for (size_t i = 0; i < count; ++i) {
    Sample sample;
    const char* const at = bytes.data() + i * kPlainSampleSize;
    std::memcpy(&sample.timestamp, at, sizeof sample.timestamp);
    std::memcpy(&sample.value, at + sizeof sample.timestamp, sizeof sample.value);
    const int64_t before = chunk.empty() ? -1 : chunk.last_.timestamp;
    if (sample.timestamp <= before) return std::nullopt;
    chunk.force(sample);
  }
  return chunk;
}

}  // namespace latchkey::store
