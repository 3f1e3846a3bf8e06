#include "persist/rdb/byte_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/digest/crc64.h"

namespace latchkey::persist {

// --- Writing ------------------------------------------------------------------------------------

void ByteSink::sum_buffer() {
  if (summing_) checksum_ = base::crc64(checksum_, {buffer_.get() + summed_, used_ - summed_});
  summed_ = used_;
}

uint64_t ByteSink::checksum() {
  sum_buffer();
  return checksum_;
}

bool ByteSink::write_through(std::string_view bytes) {
  if (error_ != 0) return false;
  if (bytes.empty()) return true;
  error_ = put(bytes);
  put_bytes_ += bytes.size();
  return error_ == 0;
}

bool ByteSink::flush() {
  sum_buffer();
  const size_t size = std::exchange(used_, 0);
  summed_ = 0;
  return write_through({buffer_.get(), size});
}

bool ByteSink::write_slowly(std::string_view bytes) {
  if (!flush()) return false;
  if (bytes.size() <= capacity_) return write(bytes);
  if (summing_) checksum_ = base::crc64(checksum_, bytes);
  return write_through(bytes);
}

int BlobSink::put(std::string_view bytes) {
  while (!bytes.empty()) {
    base::Blob* blob = blobs_.empty() ? nullptr : blobs_.back().get();
    if (blob == nullptr || blob->size() == blob->capacity()) {
      const size_t doubled = blob == nullptr ? kFirstBlob : 2 * blob->size();
      blob = base::Blob::create(0, std::min(doubled, kLargestBlob));
      blobs_.push_back(base::BlobRef::adopt(blob));
    }
    const std::string_view part = bytes.substr(0, blob->capacity() - blob->size());
    blob->append(part);
    bytes.remove_prefix(part.size());
  }
  return 0;
}

int DescriptorSink::put(std::string_view bytes) {
  while (!bytes.empty()) {
    // Writes at most as many bytes as are synced at once.
    const size_t most = sync_every_ == 0 ? bytes.size() : static_cast<size_t>(sync_every_);
    const ssize_t written = files_.write(descriptor_, bytes.substr(0, most));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    not_synced_ += static_cast<uint64_t>(written);
    if (sync_every_ == 0 || not_synced_ < sync_every_) continue;
    if (!files_.sync_data(descriptor_)) return errno;
    not_synced_ = 0;
  }
  return 0;
}

// --- Reading ------------------------------------------------------------------------------------

void ByteSource::sum_read() {
  if (summing_) checksum_ = base::crc64(checksum_, {summed_, static_cast<size_t>(next_ - summed_)});
  summed_ = next_;
}

uint64_t ByteSource::checksum() {
  sum_read();
  return checksum_;
}

bool ByteSource::refill(std::span<char> place) {
  if (!ok()) return false;
  sum_read();
  passed_ += static_cast<uint64_t>(next_ - begin_);
  set_buffer({});
  if (progress_ && passed_ >= progress_at_) {
    progress_at_ = passed_ + progress_every_;
    if (!progress_(passed_)) return fail(Error::kStopped);
  }
  const std::optional<std::string_view> bytes = fetch(place);
  if (!bytes) return fail(Error::kFailed);
  set_buffer(*bytes);
  return true;
}

bool ByteSource::read_slowly(char* to, size_t size) {
  const uint64_t start = position();
  return read_on(to, size) || failed_since(start);
}

bool ByteSource::read_on(char* to, size_t size) {
  while (size > 0) {
    if (next_ == end_) {
      if (!refill({to, size})) return false;
      if (next_ == end_) return fail(Error::kShort);
    }
    const size_t part = std::min(size, static_cast<size_t>(end_ - next_));
    const bool is_in_place = next_ == to;
    if (!is_in_place) std::memcpy(to, next_, part);
    next_ += part;
    // The reader may move it.
    if (is_in_place) sum_read();
    to += part;
    size -= part;
  }
  return true;
}

size_t ByteSource::trusted(uint64_t size, uint64_t known) const {
  constexpr uint64_t kAlways = 1 << 20;
  const auto fetched = static_cast<uint64_t>(end_ - next_);
  if (size <= kAlways || size <= fetched || size - fetched <= left())
    return static_cast<size_t>(size);
  return static_cast<size_t>(std::min(size, std::max(kAlways, known)));
}

bool ByteSource::read_view_slowly(uint64_t size, std::string& room, std::string_view* view) {
  const uint64_t start = position();
  room.clear();
  while (room.size() < size) {
    const size_t before = room.size();
    const size_t part = trusted(size - before, before);
    room.resize(before + part);
    if (!read_on(room.data() + before, part)) return failed_since(start);
  }
  *view = room;
  return true;
}

bool ByteSource::read_blob(uint64_t size, base::BlobRef* blob) {
  const uint64_t start = position();
  size_t filled = 0;
  base::BlobRef made;
  while (filled < size) {
    const size_t part = trusted(size - filled, filled);
    base::BlobRef larger = base::BlobRef::create(filled + part);
    if (filled > 0) std::memcpy(larger.get()->data(), made.get()->data(), filled);
    made = std::move(larger);
    if (!read_on(made.get()->data() + filled, part)) return failed_since(start);
    filled += part;
  }
  *blob = std::move(made);
  return true;
}

bool ByteSource::skip(uint64_t size) {
  const uint64_t start = position();
  while (size > 0) {
    if (next_ == end_) {
      if (!refill()) return failed_since(start);
      if (next_ == end_) return fail(Error::kShort) || failed_since(start);
    }
    const uint64_t part = std::min(size, static_cast<uint64_t>(end_ - next_));
    next_ += part;
    size -= part;
  }
  return true;
}

bool ByteSource::at_end() {
  return next_ == end_ && (!refill() || next_ == end_);
}

std::optional<std::string_view> DescriptorSource::fetch(std::span<char> place) {
  const bool in_place = place.size() >= kBuffer;
  char* const to = in_place ? place.data() : buffer_.get();
  const size_t most = step(in_place ? std::min(place.size(), kInPlace) : kBuffer);
  for (;;) {
    const ssize_t got = files_.read(descriptor_, to, most);
    if (got >= 0) return std::string_view(to, static_cast<size_t>(got));
    if (errno != EINTR) return std::nullopt;
  }
}

uint64_t DescriptorSource::left() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const off_t at = lseek(descriptor_, 0, SEEK_CUR);
  return at < 0 || at > status.st_size ? 0 : static_cast<uint64_t>(status.st_size - at);
}

}  // namespace latchkey::persist
