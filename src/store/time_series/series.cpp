#include "store/time_series/series.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "store/time_series/label_index.h"

namespace latchkey::store {

namespace {

// A chunk is divided when it is larger than its size by this factor: 6 / 5.
constexpr size_t kDivideNumerator = 6;
constexpr size_t kDivideDenominator = 5;
// Or, when a sample is inserted into it, when it has more samples than this, which a large chunk of
// samples that hardly differ has: all of them are encoded anew. Chunks of 4 KiB, the default, never
// have more: a sample takes two bits, and they may grow by a fifth.
constexpr size_t kMostToInsertInto = 20'480;

std::string_view bytes_of(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

TimeSeries::TimeSeries(SeriesSettings settings) : settings_(std::move(settings)) {
  chunks_.push_back(std::make_unique<Chunk>(settings_.encoding, settings_.chunk_size));
}

TimeSeries::TimeSeries(const TimeSeries& other)
    : ModuleValue(other), settings_(other.settings_), count_(other.count_), last_(other.last_) {
  chunks_.reserve(other.chunks_.size());
  for (const auto& chunk : other.chunks_) chunks_.push_back(std::make_unique<Chunk>(*chunk));
}

TimeSeries* TimeSeries::clone_with_links() const {
  auto* const copy = new TimeSeries(*this);
  copy->rules_ = rules_;
  copy->source_ = source_;
  copy->number_ = number_;
  return copy;
}

void TimeSeries::forget_links() {
  rules_.clear();
  source_ = {};
  number_ = 0;
}

void TimeSeries::set_settings(const SeriesSettings& settings) {
  const SeriesEncoding encoding = settings_.encoding;
  std::vector<SeriesLabel> labels = std::move(settings_.labels);
  settings_ = settings;
  settings_.encoding = encoding;
  settings_.labels = std::move(labels);
}

void TimeSeries::set_labels(std::vector<SeriesLabel> labels) {
  if (index_ != nullptr) index_->remove_labels(*this);
  settings_.labels = std::move(labels);
  if (index_ != nullptr) index_->add_labels(*this);
}

const std::string* TimeSeries::label(std::string_view name) const {
  for (const auto& [known, value] : settings_.labels) {
    if (known == name) return &value;
  }
  return nullptr;
}

// --- Reading ------------------------------------------------------------------------------------

int64_t TimeSeries::oldest_visible() const {
  if (settings_.retention_ms == 0 || last_.timestamp < settings_.retention_ms) return 0;
  return last_.timestamp - settings_.retention_ms;
}

size_t TimeSeries::chunk_of(int64_t timestamp) const {
  const auto behind = std::upper_bound(chunks_.begin(), chunks_.end(), timestamp,
                                       [](int64_t time, const std::unique_ptr<Chunk>& chunk) {
                                         return !chunk->empty() && time < chunk->first_timestamp();
                                       });
  return behind == chunks_.begin() ? 0 : static_cast<size_t>(behind - chunks_.begin()) - 1;
}

std::optional<Sample> TimeSeries::first_visible() const {
  SampleReader reader(*this, oldest_visible(), INT64_MAX);
  Sample sample;
  return reader.next(&sample) ? std::optional(sample) : std::nullopt;
}

size_t TimeSeries::count_from(int64_t timestamp) const {
  if (timestamp == 0) return count_;
  if (empty() || timestamp > last_.timestamp) return 0;
  const size_t first = chunk_of(timestamp);
  size_t count = 0;
  Chunk::Decoder decoder(*chunks_[first]);
  for (Sample sample; decoder.next(&sample);) count += sample.timestamp >= timestamp ? 1 : 0;
  for (size_t i = first + 1; i < chunks_.size(); ++i) count += chunks_[i]->count();
  return count;
}

std::optional<Sample> TimeSeries::nearest_before(int64_t timestamp) const {
  SampleReader reader(*this, 0, timestamp - 1, /*backwards=*/true);
  for (Sample sample; reader.next(&sample);) {
    if (!std::isnan(sample.value)) return sample;
  }
  return std::nullopt;
}

std::optional<Sample> TimeSeries::nearest_behind(int64_t timestamp) const {
  if (timestamp == INT64_MAX) return std::nullopt;
  SampleReader reader(*this, timestamp + 1, INT64_MAX);
  for (Sample sample; reader.next(&sample);) {
    if (!std::isnan(sample.value)) return sample;
  }
  return std::nullopt;
}

// --- Changing -----------------------------------------------------------------------------------

TimeSeries::Added TimeSeries::add(Sample sample, DuplicatePolicy policy) {
  if (empty()) {
    append(sample);
    return Added::kAppended;
  }
  if (settings_.retention_ms != 0 && sample.timestamp < oldest_visible()) return Added::kTooOld;
  if (policy == DuplicatePolicy::kLast && source_.is_none() &&
      sample.timestamp >= last_.timestamp &&
      sample.timestamp - last_.timestamp <= settings_.ignore_max_time_diff &&
      std::fabs(sample.value - last_.value) <= settings_.ignore_max_val_diff)
    return Added::kIgnored;
  if (sample.timestamp > last_.timestamp) {
    append(sample);
    return Added::kAppended;
  }
  return insert(sample, policy) ? Added::kInserted : Added::kRefused;
}

void TimeSeries::append(Sample sample) {
  if (!newest_chunk().append(sample)) {
    drop_old_chunks();
    chunks_.push_back(std::make_unique<Chunk>(settings_.encoding, settings_.chunk_size));
    // A chunk has room for a sample whatever it is.
    LK_ASSERT(newest_chunk().append(sample));
  }
  last_ = sample;
  ++count_;
}

void TimeSeries::drop_old_chunks() {
  const int64_t oldest = oldest_visible();
  size_t dropped = 0;
  while (dropped + 1 < chunks_.size() && chunks_[dropped]->last_timestamp() < oldest)
    count_ -= chunks_[dropped++]->count();
  chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<ptrdiff_t>(dropped));
}

void TimeSeries::divide(size_t chunk) {
  Chunk& left = *chunks_[chunk];
  const std::vector<Sample> samples = left.samples();
  const size_t kept = samples.size() - samples.size() / 2;
  const std::span<const Sample> all(samples);
  auto right = std::make_unique<Chunk>(settings_.encoding, settings_.chunk_size);
  right->assign(all.subspan(kept));
  right->trim();
  left.assign(all.first(kept));
  left.trim();
  chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(chunk) + 1, std::move(right));
}

bool TimeSeries::insert(Sample sample, DuplicatePolicy policy) {
  size_t place = chunk_of(sample.timestamp);
  const std::optional<double> present = chunks_[place]->value_at(sample.timestamp);
  if (present.has_value()) {
    const std::optional<double> merged = merged_value(policy, *present, sample.value);
    if (!merged.has_value()) return false;
    if (std::bit_cast<uint64_t>(*merged) == std::bit_cast<uint64_t>(*present)) return true;
    sample.value = *merged;
  }
  const Chunk& chunk = *chunks_[place];
  const bool has_grown =
      chunk.size_bytes() * kDivideDenominator > settings_.chunk_size * kDivideNumerator;
  // Samples may have been erased since it grew.
  if (chunk.count() > kMostToInsertInto || (chunk.count() > 1 && has_grown)) {
    divide(place);
    place = chunk_of(sample.timestamp);
  }
  const auto older = [](const Sample& left, int64_t time) { return left.timestamp < time; };
  std::vector<Sample> samples = chunks_[place]->samples();
  const auto at = std::lower_bound(samples.begin(), samples.end(), sample.timestamp, older);
  if (present.has_value()) {
    at->value = sample.value;
  } else {
    samples.insert(at, sample);
    ++count_;
  }
  chunks_[place]->assign(samples);
  if (sample.timestamp == last_.timestamp) last_ = sample;
  return true;
}

size_t TimeSeries::erase(int64_t from, int64_t to) {
  if (empty() || from > to) return 0;
  size_t erased = 0;
  size_t kept = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = *chunks_[i];
    const bool is_left_alone = chunk.last_timestamp() < from || chunk.first_timestamp() > to;
    if (!is_left_alone) {
      std::vector<Sample> samples = chunk.samples();
      std::erase_if(samples, [&](const Sample& sample) {
        return sample.timestamp >= from && sample.timestamp <= to;
      });
      erased += chunk.count() - samples.size();
      const bool is_last_chunk = kept == 0 && i + 1 == chunks_.size();
      if (samples.empty() && !is_last_chunk) continue;
      chunk.assign(samples);
    }
    if (kept != i) chunks_[kept] = std::move(chunks_[i]);
    ++kept;
  }
  chunks_.resize(kept);
  count_ -= erased;
  find_last();
  return erased;
}

void TimeSeries::find_last() {
  last_ = empty() ? Sample() : chunks_.back()->last();
}

bool TimeSeries::add_stored_chunk(Chunk chunk) {
  if (chunk.empty()) {
    if (empty()) *chunks_.back() = std::move(chunk);
    return true;
  }
  if (!empty() && chunk.first_timestamp() <= last_.timestamp) return false;
  count_ += chunk.count();
  last_ = chunk.last();
  if (newest_chunk().empty()) {
    newest_chunk() = std::move(chunk);
  } else {
    chunks_.push_back(std::make_unique<Chunk>(std::move(chunk)));
  }
  return true;
}

// --- Figures ------------------------------------------------------------------------------------

size_t TimeSeries::memory_usage() const {
  size_t bytes = sizeof *this + chunks_.capacity() * sizeof(chunks_[0]) +
                 rules_.capacity() * sizeof(CompactionRule);
  for (const auto& chunk : chunks_) bytes += chunk->memory_usage();
  for (const auto& [name, value] : settings_.labels)
    bytes += 2 * sizeof(std::string) + name.size() + value.size();
  return bytes;
}

void TimeSeries::for_each_digest_part(const DigestPart& part) const {
  part(bytes_of(settings_.retention_ms));
  part(bytes_of(settings_.chunk_size));
  part(bytes_of(settings_.encoding));
  part(bytes_of(settings_.duplicate_policy));
  part(bytes_of(settings_.ignore_max_time_diff));
  part(bytes_of(settings_.ignore_max_val_diff));
  for (const auto& [name, value] : settings_.labels) {
    part(name);
    part(value);
  }
  for (const CompactionRule& rule : rules_) {
    const TimeSeries* const to = index_ == nullptr ? nullptr : index_->destination(*this, rule);
    if (to == nullptr) continue;
    part(to->key());
    part(bytes_of(rule.bucket_ms));
    part(bytes_of(rule.align));
    const Aggregation kind = rule.aggregator.kind();
    part(bytes_of(kind));
  }
  SampleReader reader(*this, oldest_visible(), INT64_MAX);
  for (Sample sample; reader.next(&sample);) {
    part(bytes_of(sample.timestamp));
    part(bytes_of(sample.value));
  }
}

// --- SampleReader -------------------------------------------------------------------------------

SampleReader::SampleReader(const TimeSeries& series, int64_t from, int64_t to, bool backwards)
    : series_(series), from_(from), to_(to), backwards_(backwards) {
  if (from > to || series.empty()) {
    next_chunk_ = backwards ? 0 : series.chunks().size();
  } else {
    next_chunk_ = backwards ? series.chunk_of(to) + 1 : series.chunk_of(from);
  }
}

bool SampleReader::open_chunk() {
  if (next_chunk_ == (backwards_ ? 0 : series_.chunks().size())) return false;
  const Chunk& chunk = *series_.chunks()[backwards_ ? --next_chunk_ : next_chunk_++];
  const bool is_beyond =
      backwards_ ? chunk.last_timestamp() < from_ : chunk.first_timestamp() > to_;
  if (is_beyond) return false;
  decoder_.emplace(chunk);
  decoded_.resize(std::min(chunk.count(), kBlockSize));
  return true;
}

std::span<Sample> SampleReader::decode_block() {
  while (decoder_.has_value()) {
    std::span<Sample> block = std::span(decoded_).first(decoder_->next(decoded_));
    if (block.empty() || block.back().timestamp >= to_) decoder_.reset();
    while (!block.empty() && block.front().timestamp < from_) block = block.subspan(1);
    while (!block.empty() && block.back().timestamp > to_) block = block.first(block.size() - 1);
    if (!block.empty()) return block;
  }
  return {};
}

std::span<Sample> SampleReader::next_forwards() {
  std::span<Sample> block = decode_block();
  while (block.empty() && open_chunk()) block = decode_block();
  return block;
}

std::span<Sample> SampleReader::next_backwards() {
  while (chunk_left_.empty()) {
    if (!open_chunk()) return {};
    chunk_samples_.clear();
    for (auto block = decode_block(); !block.empty(); block = decode_block())
      chunk_samples_.insert(chunk_samples_.end(), block.begin(), block.end());
    chunk_left_ = chunk_samples_;
  }
  const std::span<Sample> block = chunk_left_.last(std::min(chunk_left_.size(), kBlockSize));
  chunk_left_ = chunk_left_.first(chunk_left_.size() - block.size());
  std::reverse(block.begin(), block.end());
  return block;
}

}  // namespace latchkey::store
