#include "replication/backlog.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/random.h"

namespace latchkey::tests {

using replication::Backlog;

namespace {

std::string bytes_from(const Backlog& backlog, uint64_t number) {
  base::BufferPool pool;
  resp::OutputBuffer out(pool);
  backlog.copy_from(number, out);
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
  Backlog backlog(5, 0);
  backlog.append("abc");
  CHECK(bytes_from(backlog, 1) == "abc");
  CHECK(bytes_from(backlog, 3) == "c");
  CHECK(bytes_from(backlog, 4).empty());
  backlog.append("defg");
  CHECK(backlog.first() == 3);
  CHECK(backlog.last() == 7);
  CHECK_FALSE(backlog.reaches(2));
  CHECK(bytes_from(backlog, 3) == "cdefg");
  CHECK(bytes_from(backlog, 6) == "fg");
}

TEST_CASE("more bytes at once than a backlog holds leave their end") {
  Backlog backlog(4, 0);
  backlog.append("x");
  backlog.append("0123456789");
  CHECK(backlog.last() == 11);
  CHECK(bytes_from(backlog, backlog.first()) == "6789");
}

TEST_CASE("a resized backlog keeps the last bytes that fit, and grows again") {
  Backlog backlog(6, 0);
  backlog.append("abcdefgh");
  backlog.resize(3);
  CHECK(bytes_from(backlog, backlog.first()) == "fgh");
  backlog.append("i");
  CHECK(bytes_from(backlog, backlog.first()) == "ghi");
  backlog.resize(5);
  backlog.append("jkl");
  CHECK(bytes_from(backlog, backlog.first()) == "hijkl");
}

TEST_CASE("a backlog takes no more memory than it was given") {
  Backlog backlog(1000, 0);
  const std::string piece(300, 'x');
  for (int i = 0; i < 10; ++i) backlog.append(piece);
  CHECK(backlog.memory_usage() <= sizeof(Backlog) + 1000);
}

TEST_CASE("a backlog agrees with the whole stream, whatever it is fed") {
  base::Random random(42);
  std::string stream;
  Backlog backlog(97, 0);
  for (int i = 0; i < 2000; ++i) {
    std::string piece;
    for (uint64_t size = random.below(40); size > 0; --size)
      piece.push_back(static_cast<char>('a' + random.below(26)));
    backlog.append(piece);
    stream += piece;
    if (i % 100 == 99) backlog.resize(50 + random.below(100));
    REQUIRE(backlog.last() == stream.size());
    REQUIRE(backlog.size() <= backlog.capacity());
    const uint64_t from = backlog.first() + random.below(backlog.size() + 1);
    REQUIRE(bytes_from(backlog, from) == stream.substr(from - 1));
  }
}

}  // namespace latchkey::tests
