#include "persist/rdb/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/digest/crc64.h"
#include "unit/catch.h"

namespace latchkey::persist {

namespace {

// A file without a name.
class ScratchFile {
 public:
  ScratchFile() {
    char path[] = "/tmp/latchkey-test-XXXXXX";
    descriptor_ = ::mkstemp(path);
    ::unlink(path);
  }
  ~ScratchFile() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }
  void rewind() const { ::lseek(descriptor_, 0, SEEK_SET); }

 private:
  int descriptor_;
};

std::string pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

}  // namespace

TEST_CASE("What is written to a descriptor is read from it, with one checksum", "[byte_stream]") {
  const ScratchFile file;
  // Shorter and longer than buffers, and of just their size.
  const std::vector<size_t> sizes = {0, 1, 100, 65'535, 65'536, 3, 200'000, 7};
  std::string all;
  DescriptorSink sink(base::disk(), file.descriptor(), 50'000);
  sink.enable_checksum();
  for (const size_t size : sizes) {
    CHECK(sink.write(pattern(size)));
    CHECK(sink.write_byte(42));
    all += pattern(size) + '*';
    CHECK(sink.bytes_written() == all.size());
    CHECK(sink.checksum() == base::crc64(0, all));
  }
  CHECK(sink.flush());

  file.rewind();
  DescriptorSource source(base::disk(), file.descriptor());
  source.enable_checksum();
  std::string room;
  std::string_view view;
  std::string read;
  for (const size_t size : sizes) {
    REQUIRE(source.read_view(size, room, &view));
    read += view;
    char star;
    REQUIRE(source.read(&star, 1));
    read += star;
    CHECK(source.offset() == read.size());
    CHECK(source.checksum() == base::crc64(0, read));
  }
  CHECK(read == all);
  CHECK(source.at_end());
  CHECK(source.ok());
  uint8_t byte;
  CHECK_FALSE(source.read_byte(&byte));
  CHECK(source.error() == ByteSource::Error::kShort);
}

TEST_CASE("A large value is read into a blob of its own, in one checksum with what is around it",
          "[byte_stream]") {
  const size_t size = GENERATE(1, 65'536, 1'000'000, 5'000'000);
  const ScratchFile file;
  DescriptorSink sink(base::disk(), file.descriptor());
  const std::string all = "front" + pattern(size) + "back";
  sink.write(all);
  sink.flush();
  file.rewind();
  // A pipe does not say how much will come.
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  std::thread writer([&] {
    DescriptorSink pipe_sink(base::disk(), pipe_ends[1]);
    pipe_sink.write(all);
    pipe_sink.flush();
    ::close(pipe_ends[1]);
  });
  for (const int from : {file.descriptor(), pipe_ends[0]}) {
    DescriptorSource source(base::disk(), from);
    source.enable_checksum();
    REQUIRE(source.skip(5));
    base::BlobRef blob;
    REQUIRE(source.read_blob(size, &blob));
    CHECK(blob.view() == pattern(size));
    CHECK(blob.get()->capacity() == size);
    CHECK(source.offset() == 5 + size);
    CHECK(source.checksum() == base::crc64(0, all.substr(0, 5 + size)));
    blob = {};
    REQUIRE(source.skip(4));
    CHECK(source.checksum() == base::crc64(0, all));
    CHECK(source.at_end());
  }
  writer.join();
  ::close(pipe_ends[0]);
}

TEST_CASE("A checksum begins where it is enabled", "[byte_stream]") {
  std::string text;
  StringSink sink(text);
  sink.write("before");
  sink.enable_checksum();
  sink.write("123456789");
  CHECK(sink.checksum() == 0xE9C6D914C4B8D9CA);
  CHECK(sink.flush());
  CHECK(text == "before123456789");

  MemorySource source(text);
  CHECK(source.skip(6));
  source.enable_checksum();
  CHECK(source.skip(9));
  CHECK(source.checksum() == 0xE9C6D914C4B8D9CA);
}

TEST_CASE("A sink of blobs holds the same bytes as a string, without moving them",
          "[byte_stream]") {
  const size_t pieces = GENERATE(0, 1, 300, 2000);
  std::string text;
  StringSink expected(text);
  BlobSink sink;
  const base::Blob* first = nullptr;
  for (size_t i = 0; i < pieces; ++i) {
    const std::string piece(i % 5000, static_cast<char>('a' + i % 26));
    for (ByteSink* each : {static_cast<ByteSink*>(&expected), static_cast<ByteSink*>(&sink)}) {
      each->write(piece);
      each->write_number(static_cast<uint64_t>(i) << 40);
      each->write_byte(static_cast<uint8_t>(i));
    }
    if (first == nullptr && !sink.blobs().empty()) first = sink.blobs().front().get();
  }
  expected.flush();
  sink.flush();
  std::string joined;
  for (const base::BlobRef& blob : sink.blobs()) joined += blob.view();
  CHECK(joined == text);
  if (first != nullptr) CHECK(sink.blobs().front().get() == first);
}

TEST_CASE("A sink that has failed stays failed", "[byte_stream]") {
  const int full = ::open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  DescriptorSink sink(base::disk(), full);
  CHECK(sink.write("this stays in the buffer"));
  CHECK_FALSE(sink.flush());
  CHECK(sink.error() == ENOSPC);
  CHECK_FALSE(sink.write("more"));
  sink.fail(EIO);
  CHECK(sink.error() == ENOSPC);
  ::close(full);
}

TEST_CASE("A source that is too short stays failed, and takes no memory for lies",
          "[byte_stream]") {
  MemorySource source("abc");
  std::string room;
  std::string_view view;
  CHECK_FALSE(source.read_view(uint64_t{1} << 60, room, &view));
  CHECK(room.capacity() < 4u << 20);
  CHECK(source.error() == ByteSource::Error::kShort);
  CHECK(source.offset() == 0);
  CHECK_FALSE(source.read_view(1, room, &view));
  CHECK_FALSE(source.skip(1));

  MemorySource another("abc");
  base::BlobRef blob;
  CHECK_FALSE(another.read_blob(uint64_t{1} << 60, &blob));
  CHECK_FALSE(blob);
  CHECK(another.error() == ByteSource::Error::kShort);
  CHECK(another.offset() == 0);
}

TEST_CASE("Progress is told while a large value is read, and can stop it", "[byte_stream]") {
  const ScratchFile file;
  DescriptorSink sink(base::disk(), file.descriptor());
  sink.write(pattern(1'000'000));
  sink.flush();
  file.rewind();
  DescriptorSource source(base::disk(), file.descriptor());
  std::vector<uint64_t> offsets;
  const auto watch = source.on_progress(200'000, [&](uint64_t offset) {
    offsets.push_back(offset);
    return offsets.size() < 3;
  });
  std::string room;
  std::string_view view;
  base::BlobRef blob;
  if (GENERATE(false, true)) {
    CHECK_FALSE(source.read_blob(1'000'000, &blob));
  } else {
    CHECK_FALSE(source.read_view(1'000'000, room, &view));
  }
  CHECK(source.error() == ByteSource::Error::kStopped);
  REQUIRE(offsets.size() == 3);
  for (size_t i = 0; i < offsets.size(); ++i) CHECK(offsets[i] >= 200'000 * (i + 1));
}

TEST_CASE("Progress is told no more when its watch has gone", "[byte_stream]") {
  const ScratchFile file;
  DescriptorSink sink(base::disk(), file.descriptor());
  sink.write(pattern(1'000'000));
  sink.flush();
  file.rewind();
  DescriptorSource source(base::disk(), file.descriptor());
  size_t told = 0;
  {
    const auto watch = source.on_progress(1000, [&](uint64_t) {
      ++told;
      return true;
    });
    CHECK(source.skip(500'000));
    CHECK(told > 0);
  }
  const size_t before = told;
  CHECK(source.skip(500'000));
  CHECK(told == before);
}

}  // namespace latchkey::persist
