// Where persistence writes to and reads from: memory or an open descriptor, through a buffer, with
// position, checksum and an error that stays.
//
// A sink or source that has failed stays so, and does nothing more: a writer may write on and ask
// once, at the end. None of them owns its descriptor. Not thread-safe; usable in a forked child,
// since nothing but the object itself and malloc is touched.
//
// Costs: a copy into the buffer for what is short; what is longer than the buffer goes straight
// through. The checksum (base/crc64.h) is taken over whole buffers.
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

namespace latchkey::persist {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  // False when writing has failed, now or before.
  bool write(std::string_view bytes) {
    if (bytes.size() > capacity_ - used_) return write_slowly(bytes);
    // An empty view may have no address.
    if (!bytes.empty()) std::memcpy(buffer_.get() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
    return error_ == 0;
  }
  bool write_byte(uint8_t byte) {
    if (used_ == capacity_ && !flush()) return false;
    buffer_[used_++] = static_cast<char>(byte);
    return error_ == 0;
  }
  // Hands the buffer on. False as for write().
  bool flush();

  // The errno of the failure; 0: none.
  int error() const { return error_; }
  bool ok() const { return error_ == 0; }
  // Makes the sink fail, for whoever stops the writing from outside.
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  uint64_t bytes_written() const { return handed_on_ + used_; }
  // Has all bytes from here on summed up.
  void enable_checksum() {
    summed_ = used_;
    summing_ = true;
  }
  // Of the bytes since enable_checksum(); 0 when it was not called.
  uint64_t checksum();

 protected:
  explicit ByteSink(size_t capacity)
      : capacity_(capacity), buffer_(std::make_unique_for_overwrite<char[]>(capacity)) {}
  // Takes the bytes; returns 0 or an errno.
  virtual int put(std::string_view bytes) = 0;

 private:
  bool write_slowly(std::string_view bytes);
  bool write_through(std::string_view bytes);
  void sum_buffer();

  size_t capacity_;
  size_t used_ = 0;
  size_t summed_ = 0;  // of the buffer's bytes
  std::unique_ptr<char[]> buffer_;
  uint64_t handed_on_ = 0;
  uint64_t checksum_ = 0;
  bool summing_ = false;
  int error_ = 0;
};

// Appends to a string; bytes are there after flush().
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

// Writes to a blocking descriptor (file, pipe or socket).
class DescriptorSink final : public ByteSink {
 public:
  // Of rdb-save-incremental-fsync: so that the last sync does not have all to do.
  static constexpr uint64_t kSyncEvery = uint64_t{4} << 20;

  // Has the file's data synced after each `sync_every` bytes; 0: never. REQUIRES: a file when not
  // 0.
  explicit DescriptorSink(int descriptor, uint64_t sync_every = 0)
      : ByteSink(kBuffer), descriptor_(descriptor), sync_every_(sync_every) {}

 private:
  static constexpr size_t kBuffer = 64 << 10;
  int put(std::string_view bytes) override;

  int descriptor_;
  uint64_t sync_every_;
  uint64_t not_synced_ = 0;
};

class ByteSource {
 public:
  enum class Error : uint8_t {
    kNone,
    kShort,    // it ends before what was asked for
    kFailed,   // reading failed; errno tells
    kStopped,  // the progress callback said so
  };

  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Exactly so many bytes. False when they cannot be had, now or before.
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
  // So many bytes as a view, which lasts until the next call, or the next change of `room`: that
  // takes them where they do not stand in the buffer. A size that cannot be true costs no memory.
  bool read_view(uint64_t size, std::string& room, std::string_view* view) {
    if (size > static_cast<uint64_t>(end_ - next_)) return read_view_slowly(size, room, view);
    *view = {next_, static_cast<size_t>(size)};
    next_ += size;
    return true;
  }
  bool skip(uint64_t size);
  // Whether there is nothing more. Reads ahead to know it.
  bool at_end();

  Error error() const { return error_; }
  bool ok() const { return error_ == Error::kNone; }
  // Bytes read so far, counted from where the source began; once it has failed, those before the
  // read that failed.
  uint64_t offset() const { return ok() ? position() : failed_at_; }
  // Has all bytes from here on summed up.
  void enable_checksum() {
    summed_ = next_;
    summing_ = true;
  }
  // Of the bytes read since enable_checksum(); 0 when it was not called.
  uint64_t checksum();

  // Has `fn(offset)` called whenever about `every` more bytes have been read, from within any of
  // the functions above. When it returns false reading fails. It must not read from this source.
  void on_progress(uint64_t every, std::function<bool(uint64_t offset)> fn) {
    progress_every_ = every;
    progress_at_ = offset() + every;
    progress_ = std::move(fn);
  }

 protected:
  ByteSource() = default;
  // The next bytes, which stand until the next call; empty at the end; nothing on failure.
  virtual std::optional<std::string_view> fetch() = 0;
  // How much to fetch at most, so that progress is told of as often as was asked for.
  size_t step(size_t most) const {
    constexpr uint64_t kLeast = 512;
    if (progress_every_ == 0 || progress_every_ >= most) return most;
    return static_cast<size_t>(progress_every_ < kLeast ? kLeast : progress_every_);
  }
  void set_buffer(std::string_view bytes) {
    begin_ = next_ = summed_ = bytes.data();
    end_ = begin_ + bytes.size();
  }

 private:
  uint64_t position() const { return passed_ + static_cast<uint64_t>(next_ - begin_); }
  // Fills the empty buffer anew.
  bool refill();
  bool read_on(char* to, size_t size);
  void sum_read();
  bool fail(Error error) {
    if (error_ == Error::kNone) error_ = error;
    // So that no later call finds bytes.
    end_ = next_;
    return failed_since(position());
  }
  // Notes where the read began that failed, if it was the first. Always false.
  bool failed_since(uint64_t position) {
    failed_at_ = std::min(failed_at_, position);
    return false;
  }
  bool read_slowly(char* to, size_t size);
  bool read_view_slowly(uint64_t size, std::string& room, std::string_view* view);

  const char* begin_ = nullptr;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  const char* summed_ = nullptr;  // as far as the checksum goes
  uint64_t passed_ = 0;           // bytes of earlier buffers
  uint64_t checksum_ = 0;
  bool summing_ = false;
  Error error_ = Error::kNone;
  uint64_t failed_at_ = std::numeric_limits<uint64_t>::max();
  uint64_t progress_every_ = 0;
  uint64_t progress_at_ = 0;
  std::function<bool(uint64_t)> progress_;
};

class MemorySource final : public ByteSource {
 public:
  // The bytes must outlive the source.
  explicit MemorySource(std::string_view bytes) { set_buffer(bytes); }

 private:
  std::optional<std::string_view> fetch() override { return std::string_view(); }
};

// Reads a blocking descriptor from where it stands. Reads ahead: what follows begins offset() bytes
// behind that place.
class DescriptorSource final : public ByteSource {
 public:
  explicit DescriptorSource(int descriptor)
      : descriptor_(descriptor), buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

 private:
  static constexpr size_t kBuffer = 64 << 10;
  std::optional<std::string_view> fetch() override;

  int descriptor_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace latchkey::persist
