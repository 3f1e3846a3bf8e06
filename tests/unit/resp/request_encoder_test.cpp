#include "resp/request_encoder.h"

#include <string>
#include <vector>

#include "resp/request_parser.h"
#include "unit/catch.h"

namespace latchkey::resp {

namespace {

// Lengths around those at which a header has one more digit.
constexpr size_t kSizes[] = {0,   1,    9,    10,    11,    99,    100,   101,
                             999, 1000, 9999, 10000, 65535, 99999, 100000};

}  // namespace

TEST_CASE("A request is an array of bulk strings", "[request_encoder]") {
  CHECK(encode_request({"PING"}) == "*1\r\n$4\r\nPING\r\n");
  CHECK(encode_request({"SET", "key", ""}) == "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
  CHECK(encode_request({std::string_view()}) == "*1\r\n$0\r\n\r\n");
  CHECK(encode_request({std::string_view("\r\n\0", 3)}) ==
        std::string("*1\r\n$3\r\n\r\n\0\r\n", 13));
  CHECK(encode_request({}) == "*0\r\n");
}

TEST_CASE("A request is appended behind what is there", "[request_encoder]") {
  std::string out = "before";
  append_request(&out, {"PING"});
  append_request(&out, std::vector<std::string_view>{"GET", "a"});
  CHECK(out == "before*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
}

TEST_CASE("Sizes are those of what is written", "[request_encoder]") {
  for (const size_t size : kSizes) {
    const std::string text(size, 'x');
    std::string room(bulk_room(size), '?');
    const std::string wanted = "$" + std::to_string(size) + "\r\n" + text + "\r\n";
    const auto written = static_cast<size_t>(put_bulk(room.data(), text) - room.data());
    CHECK((room.substr(0, written) == wanted));
    CHECK(bulk_bytes(size) == written);
    CHECK(bulk_room(size) >= written);
    const auto header = static_cast<size_t>(put_header(room.data(), '*', size) - room.data());
    CHECK(room.substr(0, header) == "*" + std::to_string(size) + "\r\n");
    CHECK(header_bytes(size) == header);

    const std::vector<std::string_view> words(size / 100 + 1, text);
    if (size <= 10'000) CHECK(request_bytes(words) == encode_request(words).size());
  }
  CHECK(header_bytes(UINT64_MAX) == 23);
  CHECK(kMaxHeader == 23);
}

TEST_CASE("The parser reads what was encoded", "[request_encoder]") {
  std::vector<std::string> words;
  for (const size_t size : kSizes) words.emplace_back(size, static_cast<char>('a' + size % 26));
  const std::vector<std::string_view> views(words.begin(), words.end());
  std::string request = encode_request(views);
  RequestParser parser;
  ArgumentVector read;
  size_t consumed = 0;
  REQUIRE(parser.parse(request, {}, read, &consumed) == RequestParser::Status::kRequest);
  CHECK(consumed == request.size());
  CHECK((read == views));
}

}  // namespace latchkey::resp
