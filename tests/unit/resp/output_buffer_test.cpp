#include "resp/output_buffer.h"

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::resp {

namespace {

struct Piece {
  char* data;
  size_t size;
};

std::string contents(const OutputBuffer& out, size_t pieces_at_once = 1'000) {
  std::vector<Piece> pieces(pieces_at_once);
  pieces.resize(out.gather(pieces.data(), pieces.size()));
  std::string all;
  for (const Piece& piece : pieces) all.append(piece.data, piece.size);
  return all;
}

// A blob that is released at the end of the test, while buffers may still hold it.
class SharedBytes {
 public:
  explicit SharedBytes(std::string_view bytes) : blob_(base::Blob::create(bytes)) {}
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  ~SharedBytes() { blob_->release(); }
  base::Blob* get() const { return blob_; }

 private:
  base::Blob* blob_;
};

std::string any_bytes(base::Random& random, uint64_t longest) {
  std::string bytes(random.below(longest), 'x');
  for (char& byte : bytes) byte = static_cast<char>('a' + random.below(26));
  return bytes;
}

}  // namespace

TEST_CASE("An empty buffer owns no memory", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  CHECK(out.empty());
  CHECK(out.memory_usage() == 0);
  CHECK(contents(out).empty());
  out.append("");
  out.append(std::string_view());
  out.append("hello");
  CHECK(out.memory_usage() >= 5);
  out.take(5);
  CHECK(out.empty());
  CHECK(out.memory_usage() == 0);
}

TEST_CASE("A copy of what was appended since a mark has the shared bytes too", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  const SharedBytes first("shared");
  const SharedBytes second("more");
  CHECK(out.copy_since(out.mark()).empty());
  out.append("before");
  out.append_shared(first.get());
  out.append("head");
  const size_t mark = out.mark();
  out.append("a");
  out.append_shared(second.get());
  out.append("b");
  CHECK(out.copy_since(0) == "beforesharedheadamoreb");
  CHECK(out.copy_since(mark) == "amoreb");
  CHECK(out.copy_since(mark, 3) == "amo");
  CHECK(out.copy_since(mark, 0).empty());
  CHECK(out.copy_since(out.mark()).empty());
  out.take(mark + 6);
  const size_t last = out.mark();
  out.append("x");
  out.take(6);
  out.truncate(last);
  CHECK(out.copy_since(last).empty());
}

TEST_CASE("Bytes come out in the order in which they were appended", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  const SharedBytes shared("shared");
  out.append("one ");
  out.append_shared(shared.get());
  out.append_shared(shared.get());
  out.append(" two");
  CHECK(out.size() == 20);
  CHECK(contents(out) == "one sharedshared two");
  CHECK(contents(out, 2) == "one shared");
  out.take(6);
  CHECK(contents(out) == "aredshared two");
  out.take(4);
  CHECK(contents(out) == "shared two");
  out.take(9);
  CHECK(contents(out) == "o");
  out.take(1);
  CHECK(out.empty());
}

TEST_CASE("Parts of a shared value that follow each other are one piece", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  const SharedBytes shared("abcdefgh");
  const std::string_view bytes = shared.get()->view();
  const auto pieces = [&out] {
    Piece found[8];
    return out.gather(found, 8);
  };
  out.append_shared(shared.get(), bytes.substr(0, 2));
  out.append_shared(shared.get(), bytes.substr(2, 3));
  CHECK(pieces() == 1);
  out.append_shared(shared.get(), bytes.substr(6, 1));
  CHECK(pieces() == 2);
  out.append("|");
  out.append_shared(shared.get(), bytes.substr(7));
  CHECK(pieces() == 4);
  CHECK(contents(out) == "abcdeg|h");
  out.take(3);
  OutputBuffer copy(pool);
  OutputBuffer source(pool);
  source.append_shared(shared.get(), bytes.substr(1, 3));
  copy.append(source);
  CHECK(contents(copy) == "bcd");
  CHECK(copy.size() == 3);
  CHECK(contents(out) == "deg|h");
}

TEST_CASE("A shared value lives as long as the buffer holds it", "[output_buffer]") {
  base::BufferPool pool;
  base::Blob* blob = base::Blob::create("value");
  {
    OutputBuffer out(pool);
    out.append_shared(blob);
    CHECK(blob->shared());
    out.take(4);
    CHECK(blob->shared());
    out.take(1);
    CHECK_FALSE(blob->shared());
    out.append_shared(blob);
    out.clear();
    CHECK_FALSE(blob->shared());
    out.append_shared(blob);
  }
  CHECK_FALSE(blob->shared());
  blob->release();
}

TEST_CASE("Everything since a mark can be dropped", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  const SharedBytes shared("shared");
  out.append("kept ");
  const size_t mark = out.mark();
  out.append("dropped ");
  CHECK(out.since(mark) == "dropped ");
  out.append_shared(shared.get());
  out.append("\r\n");
  out.truncate(mark);
  CHECK(contents(out) == "kept ");
  CHECK_FALSE(shared.get()->shared());
  out.truncate(0);
  CHECK(out.memory_usage() == 0);
}

TEST_CASE("A patch may be shorter or longer than the room left for it", "[output_buffer]") {
  base::BufferPool pool;
  for (const std::string header : {"", "*1", "*10000000000000000000000"}) {
    OutputBuffer out(pool);
    const SharedBytes shared("shared");
    out.append("before ");
    const size_t mark = out.mark();
    out.append("????");
    out.append(" between ");
    out.append_shared(shared.get());
    out.append(" after");
    out.patch(mark, 4, header);
    CHECK(contents(out) == "before " + header + " between shared after");
  }
}

TEST_CASE("Buffers come from the pool until they outgrow it", "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer first(pool);
  first.append("a");
  CHECK(first.memory_usage() == base::BufferPool::kBufferSize);
  first.append(std::string(base::BufferPool::kBufferSize, 'b'));
  CHECK(first.memory_usage() > base::BufferPool::kBufferSize);
  CHECK(contents(first) == "a" + std::string(base::BufferPool::kBufferSize, 'b'));
  first.clear();
  first.append(std::string(100'000, 'c'));
  CHECK(first.memory_usage() == 100'000);
  CHECK(contents(first) == std::string(100'000, 'c'));
}

TEST_CASE("Where many hold output, only some hold a buffer of the pool", "[output_buffer]") {
  base::BufferPool pool;
  std::vector<std::unique_ptr<OutputBuffer>> buffers;
  while (buffers.empty() || buffers.back()->memory_usage() == base::BufferPool::kBufferSize) {
    REQUIRE(buffers.size() < 1000);
    buffers.push_back(std::make_unique<OutputBuffer>(pool));
    buffers.back()->append("short");
  }
  OutputBuffer& small = *buffers.back();
  CHECK(small.memory_usage() <= 1024);
  std::string expected = "short";

  SECTION("the others grow by themselves") {
    const SharedBytes shared("shared");
    for (int i = 0; i < 6000; ++i) {
      small.append("number " + std::to_string(i));
      expected += "number " + std::to_string(i);
      if (i % 1000 == 0) {
        small.append_shared(shared.get());
        expected += "shared";
      }
      // It would be taken for one of the pool.
      REQUIRE(small.own_memory() != base::BufferPool::kBufferSize);
    }
    CHECK(contents(small) == expected);
  }
  SECTION("or move to one that is free") {
    buffers.front()->clear();
    small.append(std::string(2000, 'x'));
    CHECK(small.memory_usage() == base::BufferPool::kBufferSize);
    CHECK(contents(small) == expected + std::string(2000, 'x'));
  }
  SECTION("whoever leaves the pool keeps what it holds, and makes room for another") {
    for (const size_t extra : {size_t{0}, base::BufferPool::kBufferSize - 5}) {
      OutputBuffer& leaving = *buffers[extra == 0 ? 0 : 1];
      leaving.append(std::string(extra, 'x'));
      leaving.leave_pool();
      CHECK(leaving.memory_usage() != base::BufferPool::kBufferSize);
      CHECK(leaving.memory_usage() >= 5 + extra);
      CHECK(contents(leaving) == "short" + std::string(extra, 'x'));
      OutputBuffer next(pool);
      next.append("next");
      CHECK(next.memory_usage() == base::BufferPool::kBufferSize);
      leaving.append("more");
      CHECK(contents(leaving) == "short" + std::string(extra, 'x') + "more");
    }
  }
}

TEST_CASE("A reader that never quite catches up does not make the buffer grow without end",
          "[output_buffer]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  const SharedBytes shared("shared");
  out.append("backlog of a few bytes");
  std::string expected = "backlog of a few bytes";
  for (int i = 0; i < 20'000; ++i) {
    const std::string message = "message " + std::to_string(i) + "\r\n";
    out.append(message);
    out.append_shared(shared.get());
    expected += message + "shared";
    REQUIRE(contents(out) == expected);
    out.take(message.size() + 6);
    expected.erase(0, message.size() + 6);
  }
  CHECK(out.memory_usage() <= 2 * base::BufferPool::kBufferSize + 12);
}

TEST_CASE("A moved buffer takes everything along", "[output_buffer]") {
  base::BufferPool pool;
  const SharedBytes shared("shared");
  OutputBuffer out(pool);
  out.append("own ");
  out.append_shared(shared.get());
  OutputBuffer moved(std::move(out));
  CHECK(contents(moved) == "own shared");
  CHECK(out.empty());
  out.append("new");
  out.swap(moved);
  CHECK(contents(out) == "own shared");
  CHECK(contents(moved) == "new");
}

TEST_CASE("The buffer is a string, whatever is done to it", "[output_buffer]") {
  base::BufferPool pool;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Random random(seed);
    OutputBuffer out(pool);
    std::string model;
    const SharedBytes small(any_bytes(random, 50));
    const SharedBytes large(any_bytes(random, 40'000));
    for (int step = 0; step < 1'500; ++step) {
      switch (random.below(7)) {
        case 0:
        case 1: {
          const std::string bytes = any_bytes(random, uint64_t{1} << random.below(14));
          out.append(bytes);
          model += bytes;
          break;
        }
        case 2: {
          const SharedBytes& shared = random.below(2) == 0 ? small : large;
          out.append("<");
          out.append_shared(shared.get());
          out.append(">");
          model += "<" + std::string(shared.get()->view()) + ">";
          break;
        }
        case 3: {
          const size_t mark = out.mark();
          const size_t reserved = random.below(20);
          out.append(std::string(reserved, '?'));
          const std::string tail = any_bytes(random, 100);
          out.append(tail);
          out.append_shared(small.get());
          out.append("!");
          if (random.below(2) == 0) {
            out.truncate(mark);
            break;
          }
          const std::string header = any_bytes(random, 40);
          out.patch(mark, reserved, header);
          model += header + tail + std::string(small.get()->view()) + "!";
          break;
        }
        default: {
          const size_t count = random.below(4) == 0 ? model.size() : random.below(model.size() + 1);
          out.take(count);
          model.erase(0, count);
        }
      }
      REQUIRE(out.size() == model.size());
      REQUIRE(contents(out) == model);
      REQUIRE(model.substr(0, contents(out, 3).size()) == contents(out, 3));
    }
  }
}

}  // namespace latchkey::resp
