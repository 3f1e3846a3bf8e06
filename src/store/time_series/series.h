// A time series: samples in chunks, labels by which queries find it, and rules that compact it into
// other series.
//
// Chunks are in the order of time and do not overlap. A sample that is newer than all is appended
// in O(1); an older one is inserted into its chunk, which is divided in two when it has grown by a
// fifth beyond its size, or has more than 20,480 samples. There is always a chunk, be it empty.
// Samples that are older than the retention go with their chunk, when a new chunk begins; until
// then readers do not see them (oldest_visible()).
//
// A rule's destination and a destination's source are named by the number that a series gets when
// it comes into a database, so that a link follows its series to another name, and ends with it.
// The database's SeriesIndex finds series by number. What comes from a file has names instead,
// until the other end of the link is there as well.
//
// Costs, with n chunks of m samples: find O(log n), insert and erase O(n + m), where insert encodes
// a chunk anew unless the policy refuses the sample, or has it change nothing. Not thread-safe; a
// series that is in no index may be destroyed by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/time_series/aggregation.h"
#include "store/time_series/chunk.h"
#include "store/time_series/sample.h"
#include "store/value/module_value.h"

namespace latchkey::store {

class SeriesIndex;

// Another series of the same database. Neither a number nor a name: none.
struct SeriesLink {
  uint64_t number = 0;
  // Only without a number: from a file, and not found yet.
  std::string name = {};

  bool is_none() const { return number == 0 && name.empty(); }
};

struct CompactionRule {
  static constexpr int64_t kNoBucket = -1;

  SeriesLink destination;
  int64_t bucket_ms;
  int64_t align;
  // Of the samples of the newest bucket, which have not been written to the destination yet.
  Aggregator aggregator;
  int64_t open_bucket = kNoBucket;
};

class TimeSeries final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kTimeSeries;

  explicit TimeSeries(SeriesSettings settings);
  // The samples, settings and labels; without links.
  TimeSeries(const TimeSeries& other);
  TimeSeries& operator=(const TimeSeries&) = delete;
  ~TimeSeries() override = default;

  const SeriesSettings& settings() const { return settings_; }
  // Other than labels; the encoding stays, and chunks that there are keep their size.
  void set_settings(const SeriesSettings& settings);
  void set_labels(std::vector<SeriesLabel> labels);
  // Null when there is no such label; of several the first.
  const std::string* label(std::string_view name) const;

  // --- Samples ----------------------------------------------------------------------------------

  // Those in chunks, which readers may not see any more included.
  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // The newest; zeros when there is none.
  Sample last() const { return last_; }
  // Readers see samples from this time on.
  int64_t oldest_visible() const;
  // Of those that readers see, the first: O(m). Nothing when there is none.
  std::optional<Sample> first_visible() const;
  // Number of samples of that time and of later ones, whether readers see them or not. O(n + m).
  size_t count_from(int64_t timestamp) const;
  // Number of those that readers see. O(n + m).
  size_t visible_count() const { return count_from(oldest_visible()); }

  // kTooOld: beyond the retention. kRefused: the policy does not allow another sample of that time.
  // kIgnored: too near to the newest. kInserted: among older ones, or in place of one.
  enum class Added : uint8_t { kAppended, kInserted, kIgnored, kTooOld, kRefused };
  // `policy`: not kNone.
  Added add(Sample sample, DuplicatePolicy policy);
  // Removes the samples of from .. to, and returns how many.
  size_t erase(int64_t from, int64_t to);

  const std::vector<std::unique_ptr<Chunk>>& chunks() const { return chunks_; }
  // The number of the chunk that has the sample, or would have it. O(log n).
  size_t chunk_of(int64_t timestamp) const;

  // The nearest sample before or behind a time that is a number, whether it is visible or not.
  std::optional<Sample> nearest_before(int64_t timestamp) const;
  std::optional<Sample> nearest_behind(int64_t timestamp) const;

  // --- Links ------------------------------------------------------------------------------------

  // A rule without a destination that is still there may be among them: see SeriesIndex.
  std::vector<CompactionRule>& rules() { return rules_; }
  const std::vector<CompactionRule>& rules() const { return rules_; }
  SeriesLink& source() { return source_; }
  const SeriesLink& source() const { return source_; }
  // 0 until it is in an index for the first time.
  uint64_t number() const { return number_; }
  // The index of its database; null when it is in none.
  const SeriesIndex* index() const { return index_; }
  // REQUIRES of both: it is in an index.
  const Entry& entry() const { return *entry_; }
  std::string_view key() const { return entry_->key(); }

  // From a file, behind all others. False when the samples are not newer than those there.
  bool add_stored_chunk(Chunk chunk);

  size_t free_effort() const override { return chunks_.size(); }
  size_t memory_usage() const override;
  size_t element_count() const override { return 1; }
  TimeSeries* clone() const override { return new TimeSeries(*this); }
  TimeSeries* clone_with_links() const override;
  // It goes to another database, and links with none of those that it was linked with from there
  // on, not even back in the old one: what is saved meanwhile does not have them either. REQUIRES:
  // it is in no index.
  void forget_links();
  void for_each_digest_part(const DigestPart& part) const override;

 private:
  friend class SeriesIndex;

  Chunk& newest_chunk() { return *chunks_.back(); }
  void append(Sample sample);
  // False when the policy refuses it.
  bool insert(Sample sample, DuplicatePolicy policy);
  void divide(size_t chunk);
  void drop_old_chunks();
  // Sets last_ anew after the newest samples have gone.
  void find_last();

  SeriesSettings settings_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t count_ = 0;
  Sample last_;
  std::vector<CompactionRule> rules_;
  SeriesLink source_;
  uint64_t number_ = 0;
  SeriesIndex* index_ = nullptr;
  const Entry* entry_ = nullptr;  // while it is in an index
};

// Reads a series' samples from one time to another, both included, or backwards from the later one.
// The series must not change meanwhile. In memory are kBlockSize samples, or backwards those of a
// chunk.
class SampleReader {
 public:
  static constexpr size_t kBlockSize = 64;

  // `from` <= `to`, or there is nothing to read.
  SampleReader(const TimeSeries& series, int64_t from, int64_t to, bool backwards = false);
  SampleReader(const SampleReader&) = delete;
  SampleReader& operator=(const SampleReader&) = delete;

  // The next samples in the order of reading, kBlockSize at most; empty behind the last. They are
  // the caller's until the next call. Not to be mixed with next().
  std::span<Sample> next_block() { return backwards_ ? next_backwards() : next_forwards(); }
  // False behind the last.
  bool next(Sample* sample) {
    if (block_.empty()) block_ = next_block();
    if (block_.empty()) return false;
    *sample = block_.front();
    block_ = block_.subspan(1);
    return true;
  }

 private:
  std::span<Sample> next_forwards();
  std::span<Sample> next_backwards();
  // Whether there is a chunk to go on with, which is opened.
  bool open_chunk();
  // The next samples of the open chunk that are of the range, in the order of time; empty behind
  // the last.
  std::span<Sample> decode_block();

  const TimeSeries& series_;
  int64_t from_;
  int64_t to_;
  bool backwards_;
  size_t next_chunk_ = 0;                  // backwards: plus one
  std::optional<Chunk::Decoder> decoder_;  // of the open chunk
  std::vector<Sample> decoded_;
  // Backwards: the samples of a chunk, and those that are left of them.
  std::vector<Sample> chunk_samples_;
  std::span<Sample> chunk_left_;
  std::span<Sample> block_;  // what next() has left
};

}  // namespace latchkey::store
