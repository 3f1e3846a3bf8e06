// The streams that persistence writes to and reads from: memory or an open descriptor, with a
// buffer, a position, a checksum and a sticky error.
//
// A sink or source that has failed stays failed and does nothing more, so a writer may check for
// errors once, at the end. They do not own their descriptors. Not thread-safe; usable in a forked
// child, since they touch nothing but the object itself and malloc.
//
// Costs: a copy into the buffer for short data; data longer than the buffer bypasses it, where the
// source can put it in place. The checksum (base/digest/crc64.h) is computed over whole buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "base/file_system.h"

namespace latchkey::persist {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  // False when writing has failed, in this call or before.
  bool write(std::string_view bytes) {
    if (bytes.size() > capacity_ - used_) return write_slowly(bytes);
    // An empty view may have no address.
    if (!bytes.empty()) std::memcpy(buffer_.get() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
    return error_ == 0;
  }
  // The bytes of a number as it stands.
  template <typename Number>
  bool write_number(Number number) {
    if (sizeof number > capacity_ - used_)
      return write_slowly({reinterpret_cast<const char*>(&number), sizeof number});
    std::memcpy(buffer_.get() + used_, &number, sizeof number);
    used_ += sizeof number;
    return error_ == 0;
  }
  bool write_byte(uint8_t byte) {
    if (used_ == capacity_ && !flush()) return false;
    buffer_[used_++] = static_cast<char>(byte);
    return error_ == 0;
  }
  // Passes the buffer to put(). Returns false as write() does.
  bool flush();

  // The errno of the failure; 0: none.
  int error() const { return error_; }
  bool ok() const { return error_ == 0; }
  // Makes the sink fail, to stop the writer from outside.
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  uint64_t bytes_written() const { return put_bytes_ + used_; }
  // Computes the checksum of all bytes from this call on.
  void enable_checksum() {
    summed_ = used_;
    summing_ = true;
  }
  // The checksum of the bytes since enable_checksum(); 0 when it was not called.
  uint64_t checksum();

 protected:
  explicit ByteSink(size_t capacity)
      : capacity_(capacity), buffer_(std::make_unique_for_overwrite<char[]>(capacity)) {}
  // Writes the bytes; returns 0 or an errno.
  virtual int put(std::string_view bytes) = 0;

 private:
  bool write_slowly(std::string_view bytes);
  bool write_through(std::string_view bytes);
  void sum_buffer();

  size_t capacity_;
  size_t used_ = 0;
  size_t summed_ = 0;  // bytes of the buffer that the checksum covers
  std::unique_ptr<char[]> buffer_;
  uint64_t put_bytes_ = 0;
  uint64_t checksum_ = 0;
  bool summing_ = false;
  int error_ = 0;
};

// Appends to a string, which is complete after flush().
class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string& text) : ByteSink(kBuffer), text_(text) {}

 private:
  static constexpr size_t kBuffer = 512;
  int put(std::string_view bytes) override {
    text_.append(bytes);
    return 0;
  }
  std::string& text_;
};

// Collects the bytes in blobs, so that many are neither moved when they become more nor copied into
// a reply.
class BlobSink final : public ByteSink {
 public:
  BlobSink() : ByteSink(kBuffer) {}

  // The bytes in order; complete after flush().
  std::span<const base::BlobRef> blobs() const { return blobs_; }

 private:
  static constexpr size_t kBuffer = 2048;
  // Each blob is twice as large as the one before, up to a size whose memory the allocator keeps
  // for the next of that size.
  static constexpr size_t kFirstBlob = 4 << 10;
  static constexpr size_t kLargestBlob = 256 << 10;
  int put(std::string_view bytes) override;

  std::vector<base::BlobRef> blobs_;
};

// Writes to a blocking descriptor (file, pipe or socket).
class DescriptorSink final : public ByteSink {
 public:
  // For rdb-save-incremental-fsync: so that the last sync has less to write.
  static constexpr uint64_t kSyncEvery = uint64_t{4} << 20;

  // Syncs the file's data after each `sync_every` bytes; 0: never. REQUIRES: a file when not 0.
  explicit DescriptorSink(base::FileSystem& files, int descriptor, uint64_t sync_every = 0)
      : ByteSink(kBuffer), files_(files), descriptor_(descriptor), sync_every_(sync_every) {}

 private:
  static constexpr size_t kBuffer = 64 << 10;
  int put(std::string_view bytes) override;

  base::FileSystem& files_;
  int descriptor_;
  uint64_t sync_every_;
  uint64_t not_synced_ = 0;
};

class ByteSource;

// Ends what ByteSource::on_progress() began. It must not outlive the source.
class ProgressWatch {
 public:
  explicit ProgressWatch(ByteSource& source) : source_(source) {}
  ~ProgressWatch();
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;

 private:
  ByteSource& source_;
};

class ByteSource {
 public:
  enum class Error : uint8_t {
    kNone,
    kShort,    // the source ends before the requested bytes
    kFailed,   // reading failed; errno tells
    kStopped,  // the progress callback returned false
  };

  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Reads exactly `size` bytes. False when that fails, or an earlier call failed.
  bool read(void* to, size_t size) {
    if (size > static_cast<size_t>(end_ - next_)) return read_slowly(static_cast<char*>(to), size);
    if (size != 0) std::memcpy(to, next_, size);
    next_ += size;
    return true;
  }
  bool read_byte(uint8_t* byte) {
    if (next_ == end_) return read_slowly(reinterpret_cast<char*>(byte), 1);
    *byte = static_cast<uint8_t>(*next_++);
    return true;
  }
  // Returns `size` bytes as a view, valid until the next call or the next change of `room`, where
  // the bytes are stored if they do not lie in the buffer. Memory grows only as bytes arrive, so a
  // wrong size costs none.
  bool read_view(uint64_t size, std::string& room, std::string_view* view) {
    if (size > static_cast<uint64_t>(end_ - next_)) return read_view_slowly(size, room, view);
    *view = {next_, static_cast<size_t>(size)};
    next_ += size;
    return true;
  }
  // Reads `size` > 0 bytes into a blob of their own. Memory grows as for read_view().
  bool read_blob(uint64_t size, base::BlobRef* blob);
  bool skip(uint64_t size);
  // Whether there are no more bytes. Reads ahead to find out.
  bool at_end();

  Error error() const { return error_; }
  bool ok() const { return error_ == Error::kNone; }
  // Bytes read so far, from the start of the source; after a failure, those before the failed read.
  uint64_t offset() const { return ok() ? position() : failed_at_; }
  // Computes the checksum of all bytes from this call on.
  void enable_checksum() {
    summed_ = next_;
    summing_ = true;
  }
  // The checksum of the bytes read since enable_checksum(); 0 when it was not called.
  uint64_t checksum();

  // While the result lives, calls `fn(offset)` whenever about `every` more bytes have been read,
  // from within any of the functions above. When it returns false, reading fails. It must not read
  // from this source. Without a function nothing is called.
  [[nodiscard]] ProgressWatch on_progress(uint64_t every, std::function<bool(uint64_t offset)> fn);

 protected:
  ByteSource() = default;
  // The next bytes, valid until the next call; empty at the end; nothing on failure. The source may
  // put them at `place`, where the reader wants as many as it has room for.
  virtual std::optional<std::string_view> fetch(std::span<char> place) = 0;
  // Bytes that are certain to be there behind those that were fetched; 0: not known.
  virtual uint64_t left() const { return 0; }
  // The maximum size of a fetch, so that the progress callback is called often enough.
  size_t step(size_t most) const {
    constexpr uint64_t kMin = 512;
    if (progress_every_ == 0 || progress_every_ >= most) return most;
    return static_cast<size_t>(progress_every_ < kMin ? kMin : progress_every_);
  }
  void set_buffer(std::string_view bytes) {
    begin_ = next_ = summed_ = bytes.data();
    end_ = begin_ + bytes.size();
  }

 private:
  friend class ProgressWatch;
  void end_progress() {
    progress_ = nullptr;
    progress_every_ = 0;
  }
  uint64_t position() const { return passed_ + static_cast<uint64_t>(next_ - begin_); }
  // Refills the empty buffer, or makes what was read to the beginning of `place` the buffer.
  bool refill(std::span<char> place = {});
  // Bytes for which to allocate memory at once, of `size` that are said to follow behind `known`
  // that have arrived: all where they are there, because growing takes more for a moment.
  size_t trusted(uint64_t size, uint64_t known) const;
  bool read_on(char* to, size_t size);
  void sum_read();
  bool fail(Error error) {
    if (error_ == Error::kNone) error_ = error;
    // Empties the buffer, so that later calls fail too.
    end_ = next_;
    return failed_since(position());
  }
  // Notes the position at which the first failed read began. Always false.
  bool failed_since(uint64_t position) {
    failed_at_ = std::min(failed_at_, position);
    return false;
  }
  bool read_slowly(char* to, size_t size);
  bool read_view_slowly(uint64_t size, std::string& room, std::string_view* view);

  const char* begin_ = nullptr;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  const char* summed_ = nullptr;  // end of the bytes that the checksum covers
  uint64_t passed_ = 0;           // bytes of earlier buffers
  uint64_t checksum_ = 0;
  bool summing_ = false;
  Error error_ = Error::kNone;
  uint64_t failed_at_ = std::numeric_limits<uint64_t>::max();
  uint64_t progress_every_ = 0;
  uint64_t progress_at_ = 0;
  std::function<bool(uint64_t)> progress_;
};

inline ProgressWatch::~ProgressWatch() {
  source_.end_progress();
}

inline ProgressWatch ByteSource::on_progress(uint64_t every,
                                             std::function<bool(uint64_t offset)> fn) {
  progress_every_ = every;
  progress_at_ = offset() + every;
  progress_ = std::move(fn);
  return ProgressWatch(*this);
}

class MemorySource final : public ByteSource {
 public:
  // The bytes must outlive the source.
  explicit MemorySource(std::string_view bytes) { set_buffer(bytes); }

 private:
  std::optional<std::string_view> fetch(std::span<char>) override { return std::string_view(); }
};

// Reads a blocking descriptor from its current position. Reads ahead: the data not yet consumed
// begin offset() bytes behind that position.
class DescriptorSource final : public ByteSource {
 public:
  DescriptorSource(base::FileSystem& files, int descriptor)
      : files_(files),
        descriptor_(descriptor),
        buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

 private:
  static constexpr size_t kBuffer = 64 << 10;
  // Bytes read in place at once: they stay in the processor's cache until their checksum is taken.
  static constexpr size_t kInPlace = 512 << 10;
  std::optional<std::string_view> fetch(std::span<char> place) override;
  uint64_t left() const override;

  base::FileSystem& files_;
  int descriptor_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace latchkey::persist
