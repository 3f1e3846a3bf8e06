#include "replication/backlog.h"

#include <string>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::tests {

using replication::Backlog;

namespace {

constexpr size_t kBlock = Backlog::kBlockSize;

std::string bytes_from(const Backlog& backlog, uint64_t number) {
  base::BufferPool pool;
  resp::OutputBuffer out(pool);
  backlog.share_from(number, out);
  struct Piece {
    char* data;
    size_t size;
  };
  std::string text;
  while (!out.empty()) {
    Piece piece{};
    out.gather(&piece, 1);
    text.append(piece.data, piece.size);
    out.take(piece.size);
  }
  return text;
}

}  // namespace

TEST_CASE("a backlog without bytes reaches only what comes next") {
  const Backlog backlog(10, 7);
  CHECK(backlog.size() == 0);
  CHECK_FALSE(backlog.reaches(7));
  CHECK(backlog.reaches(8));
  CHECK_FALSE(backlog.reaches(9));
  CHECK(bytes_from(backlog, 8).empty());
}

TEST_CASE("a backlog gives back the bytes from any number on that it still holds") {
  Backlog backlog(100, 10);
  backlog.append("abc");
  CHECK(bytes_from(backlog, 11) == "abc");
  CHECK(bytes_from(backlog, 13) == "c");
  CHECK(bytes_from(backlog, 14).empty());
  backlog.append("defg");
  CHECK(backlog.first() == 11);
  CHECK(backlog.last() == 17);
  CHECK_FALSE(backlog.reaches(10));
  CHECK(bytes_from(backlog, 12) == "bcdefg");
  CHECK(bytes_from(backlog, 16) == "fg");
  CHECK(backlog.latest(3) == "efg");
  CHECK(backlog.latest(30) == "abcdefg");
}

TEST_CASE("a backlog keeps what it has room for, and not a block more") {
  Backlog backlog(3 * kBlock, 0);
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    backlog.append(std::string(kBlock / 2, letter));
    backlog.trim();
  }
  CHECK(backlog.size() >= 3 * kBlock);
  CHECK(backlog.size() < 4 * kBlock);
  CHECK_FALSE(backlog.reaches(1));
  CHECK(backlog.excess_memory() < 3 * kBlock);
  CHECK(bytes_from(backlog, backlog.last()) == "z");
  CHECK(bytes_from(backlog, backlog.first()).size() == backlog.size());
}

TEST_CASE("a backlog made smaller forgets what is too much, and made larger keeps more again") {
  Backlog backlog(10 * kBlock, 0);
  backlog.append(std::string(10 * kBlock, 'a'));
  backlog.set_capacity(kBlock);
  backlog.trim();
  CHECK(backlog.size() == kBlock);
  backlog.set_capacity(5 * kBlock);
  backlog.append(std::string(10 * kBlock, 'b'));
  backlog.trim();
  CHECK(backlog.size() == 5 * kBlock);
  CHECK(bytes_from(backlog, backlog.first()) == std::string(5 * kBlock, 'b'));
}

TEST_CASE("what outputs share of a backlog is there once, and for as long as they need it") {
  base::BufferPool pool;
  resp::OutputBuffer slow(pool);
  resp::OutputBuffer as_slow(pool);
  Backlog backlog(kBlock, 0);
  backlog.append("first");
  backlog.share_from(1, slow);
  for (int i = 0; i < 100; ++i) {
    backlog.append(std::string(kBlock / 10, 'x'));
    backlog.share_from(backlog.last() + 1 - kBlock / 10, slow);
    backlog.trim();
  }
  backlog.share_from(1, as_slow);
  CHECK(slow.size() == backlog.size());
  CHECK(as_slow.size() == backlog.size());
  CHECK(slow.own_memory() + as_slow.own_memory() < 4096);
  CHECK(backlog.first() == 1);
  CHECK(backlog.excess_memory() >= 8 * kBlock);

  slow.clear();
  backlog.trim();
  CHECK(backlog.first() == 1);
  as_slow.take(5 * kBlock);
  backlog.trim();
  CHECK(backlog.first() == 5 * kBlock + 1);
  as_slow.clear();
  backlog.trim();
  CHECK(backlog.size() < 2 * kBlock);
  CHECK(backlog.excess_memory() < 3 * kBlock);
}

TEST_CASE("a backlog agrees with the whole stream, whatever it is fed") {
  base::Random random(42);
  std::string stream;
  Backlog backlog(3 * kBlock, 0);
  for (int i = 0; i < 500; ++i) {
    const std::string piece(random.below(kBlock / 2), static_cast<char>('a' + random.below(26)));
    backlog.append(piece);
    stream += piece;
    if (i % 100 == 99) backlog.set_capacity((1 + random.below(5)) * kBlock);
    backlog.trim();
    REQUIRE(backlog.last() == stream.size());
    const uint64_t from = backlog.first() + random.below(backlog.size() + 1);
    REQUIRE(bytes_from(backlog, from) == stream.substr(from - 1));
  }
}

}  // namespace latchkey::tests
