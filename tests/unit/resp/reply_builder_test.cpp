#include "resp/reply_builder.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "unit/catch.h"

namespace latchkey::resp {

namespace {

struct Piece {
  char* data;
  size_t size;
};

std::string written(int protocol, const std::function<void(ReplyBuilder&)>& write) {
  base::BufferPool pool;
  OutputBuffer out(pool);
  ReplyBuilder reply(out);
  reply.set_protocol(protocol);
  write(reply);
  Piece pieces[16];
  const size_t count = out.gather(pieces, 16);
  std::string all;
  for (size_t i = 0; i < count; ++i) all.append(pieces[i].data, pieces[i].size);
  return all;
}

// The same call in both protocols.
void check_both(const std::function<void(ReplyBuilder&)>& write, const std::string& resp2,
                const std::string& resp3) {
  CHECK(written(2, write) == resp2);
  CHECK(written(3, write) == resp3);
}

}  // namespace

TEST_CASE("Statuses, errors and integers read the same in both protocols", "[reply_builder]") {
  const auto both = [](const std::function<void(ReplyBuilder&)>& write, const std::string& bytes) {
    check_both(write, bytes, bytes);
  };
  both([](ReplyBuilder& r) { r.ok(); }, "+OK\r\n");
  both([](ReplyBuilder& r) { r.status("PONG"); }, "+PONG\r\n");
  both([](ReplyBuilder& r) { r.status(""); }, "+\r\n");
  both([](ReplyBuilder& r) { r.error("ERR no such key"); }, "-ERR no such key\r\n");
  both([](ReplyBuilder& r) { r.error("-ERR from a script"); }, "-ERR from a script\r\n");
  both([](ReplyBuilder& r) { r.error("ERR two\r\nlines"); }, "-ERR two  lines\r\n");
  both([](ReplyBuilder& r) { r.error(""); }, "-\r\n");
  both([](ReplyBuilder& r) { r.integer(0); }, ":0\r\n");
  both([](ReplyBuilder& r) { r.integer(-12); }, ":-12\r\n");
  both([](ReplyBuilder& r) { r.integer(std::numeric_limits<int64_t>::min()); },
       ":-9223372036854775808\r\n");
  both([](ReplyBuilder& r) { r.bulk("hello"); }, "$5\r\nhello\r\n");
  both([](ReplyBuilder& r) { r.bulk(std::string_view()); }, "$0\r\n\r\n");
  both([](ReplyBuilder& r) { r.bulk(int64_t{-12345}); }, "$6\r\n-12345\r\n");
  both([](ReplyBuilder& r) { r.bulk(std::string_view("\r\n\0", 3)); },
       std::string("$3\r\n\r\n\0\r\n", 9));
  both([](ReplyBuilder& r) { r.array(12); }, "*12\r\n");
  both([](ReplyBuilder& r) { r.empty_array(); }, "*0\r\n");
}

TEST_CASE("Types that RESP2 lacks are written as it would have them", "[reply_builder]") {
  check_both([](ReplyBuilder& r) { r.null(); }, "$-1\r\n", "_\r\n");
  check_both([](ReplyBuilder& r) { r.null_array(); }, "*-1\r\n", "_\r\n");
  check_both([](ReplyBuilder& r) { r.boolean(true); }, ":1\r\n", "#t\r\n");
  check_both([](ReplyBuilder& r) { r.boolean(false); }, ":0\r\n", "#f\r\n");
  check_both([](ReplyBuilder& r) { r.number(1.5); }, "$3\r\n1.5\r\n", ",1.5\r\n");
  check_both([](ReplyBuilder& r) { r.number(std::numeric_limits<double>::infinity()); },
             "$3\r\ninf\r\n", ",inf\r\n");
  check_both([](ReplyBuilder& r) { r.big_number("12345678901234567890123"); },
             "$23\r\n12345678901234567890123\r\n", "(12345678901234567890123\r\n");
  check_both([](ReplyBuilder& r) { r.verbatim("txt", "hi\n"); }, "$3\r\nhi\n\r\n",
             "=7\r\ntxt:hi\n\r\n");
  check_both([](ReplyBuilder& r) { r.map(3); }, "*6\r\n", "%3\r\n");
  check_both([](ReplyBuilder& r) { r.set(3); }, "*3\r\n", "~3\r\n");
  check_both([](ReplyBuilder& r) { r.push(3); }, "*3\r\n", ">3\r\n");
  CHECK(written(3, [](ReplyBuilder& r) { r.attribute(1); }) == "|1\r\n");
}

TEST_CASE("An aggregate's size may come after its elements", "[reply_builder]") {
  check_both(
      [](ReplyBuilder& r) {
        const auto outer = r.later();
        r.bulk("a");
        const auto inner = r.later();
        r.integer(1);
        r.integer(2);
        r.set_later(inner, 2);
        r.map_later(outer, 1);
        r.ok();
      },
      "*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n+OK\r\n", "%1\r\n$1\r\na\r\n~2\r\n:1\r\n:2\r\n+OK\r\n");
  check_both(
      [](ReplyBuilder& r) {
        const auto later = r.later();
        r.array_later(later, 0);
      },
      "*0\r\n", "*0\r\n");
}

TEST_CASE("A size of any length finds its place before the elements", "[reply_builder]") {
  for (const size_t size : {size_t{9}, size_t{10}, size_t{123'456'789'012'345'678}}) {
    const std::string expected = "*" + std::to_string(size) + "\r\n$1\r\na\r\n";
    check_both(
        [&](ReplyBuilder& r) {
          const auto later = r.later();
          r.bulk("a");
          r.array_later(later, size);
        },
        expected, expected);
  }
}

TEST_CASE("Strings and aggregates tell sizes of one to four digits", "[reply_builder]") {
  for (const size_t size : {0, 1, 9, 10, 11, 59, 99, 100, 101, 999, 1000}) {
    const std::string text(size, 'x');
    const std::string digits = std::to_string(size);
    CHECK(written(2, [&](ReplyBuilder& r) { r.bulk(text); }) ==
          "$" + digits + "\r\n" + text + "\r\n");
    CHECK(written(2, [&](ReplyBuilder& r) { r.array(size); }) == "*" + digits + "\r\n");
  }
}

TEST_CASE("Large values leave by reference, small ones as a copy", "[reply_builder]") {
  for (const size_t size : {size_t{100}, size_t{100'000}}) {
    base::BufferPool pool;
    base::Blob* blob = base::Blob::create(std::string(size, 'v'));
    {
      OutputBuffer out(pool);
      ReplyBuilder reply(out);
      const auto later = reply.later();
      reply.bulk(blob);
      reply.array_later(later, 1);
      CHECK(blob->shared() == (size > 16'384));
      const std::string header = "*1\r\n$" + std::to_string(size) + "\r\n";
      CHECK(out.size() == header.size() + size + 2);
      Piece pieces[8];
      const size_t count = out.gather(pieces, 8);
      std::string all;
      for (size_t i = 0; i < count; ++i) all.append(pieces[i].data, pieces[i].size);
      CHECK(all == header + std::string(size, 'v') + "\r\n");
    }
    CHECK_FALSE(blob->shared());
    blob->release();
  }
}

TEST_CASE("A string of several blobs is written as one", "[reply_builder]") {
  const auto written_of = [](const std::vector<base::BlobRef>& blobs) {
    return written(2, [&](ReplyBuilder& reply) { reply.bulk(blobs); });
  };
  std::vector<base::BlobRef> blobs;
  std::string all;
  CHECK(written_of(blobs) == "$0\r\n\r\n");
  for (const size_t size : {4096, 8192, 16'384, 32'768, 5, 20'000, 70'000, 100}) {
    const std::string part(size, static_cast<char>('a' + blobs.size()));
    base::Blob* blob = base::Blob::create(part);
    blobs.emplace_back(blob);
    blob->release();
    all += part;
    CHECK(written_of(blobs) == "$" + std::to_string(all.size()) + "\r\n" + all + "\r\n");
  }
}

TEST_CASE("Errors are counted, and the last one can be found again", "[reply_builder]") {
  base::BufferPool pool;
  OutputBuffer out(pool);
  ReplyBuilder reply(out);
  reply.ok();
  CHECK(reply.error_count() == 0);
  reply.error("ERR one");
  reply.error("ERR two");
  CHECK(reply.error_count() == 2);
  CHECK(out.since(reply.last_error_mark()) == "-ERR two\r\n");
}

}  // namespace latchkey::resp
