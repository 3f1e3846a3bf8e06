#include "resp/request_parser.h"

#include <string>
#include <vector>

#include "base/random.h"
#include "unit/catch.h"

namespace latchkey::resp {

namespace {

using Request = std::vector<std::string>;

// What a stream of bytes turned out to be.
struct Parsed {
  std::vector<Request> requests;
  std::string error;     // empty: none
  size_t left_over = 0;  // bytes of a request that is not complete
};

// Feeds `stream` in pieces whose lengths `next_length` chooses, from a new address each time, as a
// connection that moves its buffer does.
template <typename NextLength>
Parsed parse_in_pieces(const std::string& stream, const RequestParser::Limits& limits,
                       NextLength&& next_length) {
  RequestParser parser;
  Parsed parsed;
  std::string pending;
  size_t fed = 0;
  ArgumentVector arguments;
  while (fed < stream.size()) {
    const size_t length = std::min<size_t>(next_length(), stream.size() - fed);
    std::string moved = pending + stream.substr(fed, length);
    pending.swap(moved);
    fed += length;
    while (!pending.empty()) {
      arguments.clear();
      size_t consumed = 0;
      const auto status =
          parser.parse({pending.data(), pending.size()}, limits, arguments, &consumed);
      if (status == RequestParser::Status::kError) {
        REQUIRE(arguments.empty());
        parsed.error = parser.error();
        return parsed;
      }
      if (status == RequestParser::Status::kIncomplete) {
        REQUIRE(arguments.empty());
        if (parser.wanted_size() != 0) REQUIRE(parser.wanted_size() > pending.size());
        break;
      }
      REQUIRE(consumed > 0);
      REQUIRE(consumed <= pending.size());
      REQUIRE_FALSE(parser.in_request());
      if (!arguments.empty()) parsed.requests.emplace_back(arguments.begin(), arguments.end());
      pending.erase(0, consumed);
    }
  }
  parsed.left_over = pending.size();
  return parsed;
}

Parsed parse_all(const std::string& stream, const RequestParser::Limits& limits = {}) {
  return parse_in_pieces(stream, limits, [&] { return stream.size(); });
}

std::string error_of(const std::string& stream, const RequestParser::Limits& limits = {}) {
  const Parsed whole = parse_all(stream, limits);
  const Parsed bytewise = parse_in_pieces(stream, limits, [] { return 1; });
  CHECK(whole.error == bytewise.error);
  CHECK(whole.requests == bytewise.requests);
  return whole.error;
}

bool is_waiting(const std::string& stream) {
  const Parsed parsed = parse_all(stream);
  return parsed.error.empty() && parsed.left_over > 0;
}

Request words_of(const std::string& line) {
  const Parsed parsed = parse_all(line + "\r\n");
  REQUIRE(parsed.error.empty());
  REQUIRE(parsed.requests.size() == 1);
  return parsed.requests.front();
}

std::string as_array(const Request& request) {
  std::string bytes = "*" + std::to_string(request.size()) + "\r\n";
  for (const std::string& argument : request) {
    bytes += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return bytes;
}

Request any_request(base::Random& random) {
  Request request(1 + random.below(random.below(20) == 0 ? 300 : 6));
  for (std::string& argument : request) {
    const uint64_t longest = uint64_t{1} << random.below(12);
    argument.resize(random.below(longest));
    for (char& byte : argument)
      byte = static_cast<char>(random.below(3) == 0 ? random.next() : "\r\n$*\0 "[random.below(6)]);
  }
  return request;
}

std::string as_line(const Request& request) {
  std::string line;
  for (const std::string& argument : request) {
    line += line.empty() ? "\"" : " \"";
    for (const char byte : argument) {
      constexpr char kDigits[] = "0123456789abcdef";
      line += "\\x";
      line += kDigits[static_cast<unsigned char>(byte) >> 4];
      line += kDigits[static_cast<unsigned char>(byte) & 15];
    }
    line += '"';
  }
  return line + "\r\n";
}

constexpr RequestParser::Limits kStranger{.authenticated = false};

}  // namespace

TEST_CASE("An array of bulk strings is a request", "[request_parser]") {
  const Parsed parsed =
      parse_all("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n*1\r\n$4\r\nPING\r\n");
  CHECK(parsed.requests == std::vector<Request>{{"SET", "k", "0123456789"}, {"PING"}});
  CHECK(parsed.left_over == 0);
}

TEST_CASE("Arguments are views into the caller's buffer", "[request_parser]") {
  std::string stream = "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
  RequestParser parser;
  ArgumentVector arguments;
  size_t consumed = 0;
  REQUIRE(parser.parse({stream.data(), stream.size()}, {}, arguments, &consumed) ==
          RequestParser::Status::kRequest);
  CHECK(arguments[1].data() == stream.data() + 18);
  CHECK(consumed == stream.size());
}

TEST_CASE("Arguments are appended behind those the caller has already", "[request_parser]") {
  std::string first = "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
  std::string second = "GET k\n";
  RequestParser parser;
  ArgumentVector arguments;
  size_t consumed = 0;
  parser.parse({first.data(), first.size()}, {}, arguments, &consumed);
  parser.parse({second.data(), second.size()}, {}, arguments, &consumed);
  CHECK(arguments == ArgumentVector{"ECHO", "hi", "GET", "k"});
  std::string bad = "*2\r\n$1\r\na\r\n$x\r\n";
  CHECK(parser.parse({bad.data(), bad.size()}, {}, arguments, &consumed) ==
        RequestParser::Status::kError);
  CHECK(arguments.size() == 4);
}

TEST_CASE("Empty requests are passed over", "[request_parser]") {
  for (const char* empty :
       {"*0\r\n", "*-1\r\n", "*-9999999999\r\n", "\r\n", "\n", "  \t \r\n", "\r\r\n"}) {
    const Parsed parsed = parse_all(std::string(empty) + "PING\r\n");
    CHECK(parsed.error.empty());
    CHECK(parsed.requests == std::vector<Request>{{"PING"}});
  }
}

TEST_CASE("Requests that arrive in any pieces are those that arrive at once", "[request_parser]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Random random(seed);
    std::vector<Request> requests(1 + random.below(20));
    std::string stream;
    for (Request& request : requests) {
      request = any_request(random);
      const std::string line = as_line(request);
      const bool fits_a_line = line.size() < 64 * 1024;
      stream += fits_a_line && random.below(4) == 0 ? line : as_array(request);
    }
    const Parsed whole = parse_all(stream);
    REQUIRE(whole.error.empty());
    REQUIRE(whole.left_over == 0);
    REQUIRE((whole.requests == requests));
    if (stream.size() < 30'000)
      REQUIRE((parse_in_pieces(stream, {}, [] { return 1; }).requests == requests));
    for (int round = 0; round < 3; ++round) {
      const uint64_t longest = uint64_t{2} << random.below(14);
      REQUIRE((parse_in_pieces(stream, {}, [&] { return 1 + random.below(longest); }).requests ==
               requests));
    }
  }
}

TEST_CASE("An incomplete request tells what it has and how many bytes it needs",
          "[request_parser]") {
  std::string stream = "*3\r\n$3\r\nSET\r\n$5\r\nhello\r\n$100\r\nabc";
  RequestParser parser;
  ArgumentVector arguments;
  size_t consumed = 0;
  REQUIRE(parser.parse({stream.data(), stream.size()}, {}, arguments, &consumed) ==
          RequestParser::Status::kIncomplete);
  CHECK(parser.in_request());
  CHECK(parser.partial_arguments() == 2);
  CHECK(parser.partial_bytes() == 8);
  CHECK(parser.wanted_size() == stream.size() - 3 + 102);
  stream += std::string(97, 'c') + "\r\n";
  REQUIRE(parser.parse({stream.data(), stream.size()}, {}, arguments, &consumed) ==
          RequestParser::Status::kRequest);
  CHECK(arguments.size() == 3);
  CHECK_FALSE(parser.in_request());
  CHECK(parser.partial_arguments() == 0);
  CHECK(parser.partial_bytes() == 0);
  CHECK(parser.wanted_size() == 0);
}

TEST_CASE("Line breaks of two bytes are taken as they come", "[request_parser]") {
  CHECK(parse_all("*1\rX$4\rYPINGzz*1\r\n$4\r\nPONG\r\n").requests ==
        std::vector<Request>{{"PING"}, {"PONG"}});
}

TEST_CASE("A wrong number of arguments is refused", "[request_parser]") {
  for (const char* count :
       {"2147483648", "99999999999999999999", "+1", "-0", "00", "01", "", " 1", "1 ", "x"}) {
    CHECK(error_of("*" + std::string(count) + "\r\n") ==
          "Protocol error: invalid multibulk length");
  }
  CHECK(is_waiting("*2147483647\r\n"));
}

TEST_CASE("A wrong length of an argument is refused", "[request_parser]") {
  for (const char* size : {"-1", "+4", "04", "", "x", "4x", "536870913", "99999999999999999999"}) {
    CHECK(error_of("*1\r\n$" + std::string(size) + "\r\n") ==
          "Protocol error: invalid bulk length");
  }
  CHECK(error_of("*1\r\n$4\nPING\r\n") == "Protocol error: invalid bulk length");
  CHECK(is_waiting("*1\r\n$536870912\r\n"));
  const RequestParser::Limits small{.max_bulk_size = 1'000};
  CHECK(error_of("*1\r\n$1001\r\n", small) == "Protocol error: invalid bulk length");
  CHECK(parse_all("*1\r\n$1000\r\n", small).error.empty());
}

TEST_CASE("Something else where an argument should begin is refused, once its line is there",
          "[request_parser]") {
  CHECK(error_of("*1\r\nX\r\n") == "Protocol error: expected '$', got 'X'");
  CHECK(error_of("*2\r\n$1\r\na\r\nPING\r\n") == "Protocol error: expected '$', got 'P'");
  CHECK(error_of("*1\r\n\xff\r\n") == "Protocol error: expected '$', got '\xff'");
  CHECK(error_of("*1\r\n\n\r\n") == "Protocol error: expected '$', got '\n'");
  CHECK(error_of("*1\r\n\r\n") == "Protocol error: expected '$', got '\r'");
  CHECK(is_waiting("*1\r\nX"));
  CHECK(is_waiting("*1\r\nX\r"));
}

TEST_CASE("Lines without an end are given up after 64 KiB", "[request_parser]") {
  const std::string many(70'000, '1');
  CHECK(parse_all("*" + many).error == "Protocol error: too big mbulk count string");
  CHECK(parse_all("*1\r\n$" + many).error == "Protocol error: too big bulk count string");
  CHECK(parse_all("*1\r\n" + many).error == "Protocol error: too big bulk count string");
  CHECK(parse_all(many).error == "Protocol error: too big inline request");
  const auto in_kilobytes = [] { return size_t{1'024}; };
  CHECK(parse_in_pieces("*1\r\n$" + many, {}, in_kilobytes).error ==
        "Protocol error: too big bulk count string");
  CHECK(parse_in_pieces(many, {}, in_kilobytes).error == "Protocol error: too big inline request");
  CHECK(is_waiting(std::string(64 * 1024, '1')));
  CHECK(parse_all(many + "\r\n").requests == std::vector<Request>{{many}});
}

TEST_CASE("No line ends behind a NUL", "[request_parser]") {
  using namespace std::string_literals;
  const std::string rest = std::string(1'023, 'A') + "\n";
  std::string flood;
  for (int i = 0; i < 70; ++i) flood += rest;
  CHECK(is_waiting("\0\r\nPING\r\n"s));
  CHECK(is_waiting("PING\0\r\nPING\r\n"s));
  CHECK(is_waiting("*\0\r\n"s));
  CHECK(is_waiting("*1\r\n$4\0\r\nPING\r\n"s));
  CHECK(is_waiting("*1\r\n\0\r\n"s));
  CHECK(parse_all("\0"s + flood).error == "Protocol error: too big inline request");
  CHECK(parse_all("*\0"s + flood).error == "Protocol error: too big mbulk count string");
  CHECK(parse_all("*1\r\n$\0"s + flood).error == "Protocol error: too big bulk count string");
}

TEST_CASE("Strangers may send ten arguments of 16 KiB", "[request_parser]") {
  const Request ten(10, "a");
  CHECK(parse_all(as_array(ten), kStranger).requests == std::vector<Request>{ten});
  CHECK(error_of("*11\r\n", kStranger) == "Protocol error: unauthenticated multibulk length");
  const Request large{std::string(16'384, 'a')};
  CHECK(parse_all(as_array(large), kStranger).requests == std::vector<Request>{large});
  CHECK(error_of("*1\r\n$16385\r\n", kStranger) == "Protocol error: unauthenticated bulk length");
  CHECK(error_of("*1\r\n$536870913\r\n", kStranger) == "Protocol error: invalid bulk length");
  CHECK(error_of("*2147483648\r\n", kStranger) == "Protocol error: invalid multibulk length");
  CHECK(parse_all("PING" + std::string(20'000, ' ') + "a b c d e f g h i j k\r\n", kStranger)
            .requests.size() == 1);
}

TEST_CASE("Inline words are split at blanks", "[request_parser]") {
  CHECK(words_of("SET key value") == Request{"SET", "key", "value"});
  CHECK(words_of("  SET \t key  value \r") == Request{"SET", "key", "value"});
  CHECK(words_of("ECHO a\rb") == Request{"ECHO", "a", "b"});
  CHECK(words_of("ECHO \x80\xff") == Request{"ECHO", "\x80\xff"});
  CHECK(parse_all("PING\n").requests == std::vector<Request>{{"PING"}});
}

TEST_CASE("Form feeds and vertical tabs stand around words and inside them", "[request_parser]") {
  CHECK(words_of("\vECHO a\vb") == Request{"ECHO", "a\vb"});
  CHECK(words_of("ECHO \"a\"\f\"b\"") == Request{"ECHO", "a", "b"});
}

TEST_CASE("Double quotes keep blanks and know escapes", "[request_parser]") {
  CHECK(words_of(R"(ECHO "a b")") == Request{"ECHO", "a b"});
  CHECK(words_of(R"(ECHO "")") == Request{"ECHO", ""});
  CHECK(words_of(R"(ECHO "\x41\x0a\n\r\t\b\a\"\\\q")") == Request{"ECHO", "A\n\n\r\t\b\a\"\\q"});
  CHECK(words_of(R"(ECHO "\xZ1\x4")") == Request{"ECHO", "xZ1x4"});
  CHECK(words_of(R"(ECHO a"b c")") == Request{"ECHO", "ab c"});
  CHECK(words_of(R"(ECHO a\nb)") == Request{"ECHO", "a\\nb"});
  CHECK(words_of(R"(ECHO "it's")") == Request{"ECHO", "it's"});
}

TEST_CASE("Single quotes know only their own escape", "[request_parser]") {
  CHECK(words_of(R"(ECHO 'a\'b\n')") == Request{"ECHO", "a'b\\n"});
  CHECK(words_of(R"(ECHO 'say "hi"' '')") == Request{"ECHO", "say \"hi\"", ""});
}

TEST_CASE("Quotes that do not match are refused", "[request_parser]") {
  for (const char* line : {R"(PING "a)", R"(PING 'a)", R"(PING "a"b)", R"(PING 'a'b)", R"(PING "\)",
                           R"(PING "a\)", R"(")"}) {
    CHECK(error_of(std::string(line) + "\r\n") == "Protocol error: unbalanced quotes in request");
  }
}

TEST_CASE("Parsing leaves the bytes as they are, so that a request may be parsed again",
          "[request_parser]") {
  const std::string stream =
      "SET  key \t value\r\nECHO \"a \\x41\" 'it\\'s' x\"y z\"\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
  std::string bytes = stream;
  RequestParser parser;
  for (int round = 0; round < 2; ++round) {
    ArgumentVector arguments;
    size_t position = 0;
    while (position < bytes.size()) {
      size_t consumed = 0;
      const std::span<char> rest(bytes.data() + position, bytes.size() - position);
      REQUIRE(parser.parse(rest, {}, arguments, &consumed) == RequestParser::Status::kRequest);
      position += consumed;
    }
    CHECK(bytes == stream);
    CHECK(arguments ==
          ArgumentVector{"SET", "key", "value", "ECHO", "a A", "it's", "xy z", "ECHO", "hi"});
  }
}

TEST_CASE("split_words ends at a NUL", "[request_parser]") {
  using namespace std::string_literals;
  std::string line = "a b\0 c"s;
  ArgumentVector words;
  CHECK(split_words({line.data(), line.size()}, words));
  CHECK(words == ArgumentVector{"a", "b"});
  std::string only = "\0"s;
  words.clear();
  CHECK(split_words({only.data(), only.size()}, words));
  CHECK(words.empty());
  std::string quoted = "\"a\0\""s;
  CHECK_FALSE(split_words({quoted.data(), quoted.size()}, words));
}

TEST_CASE("What stands in the place of a line break may be an error", "[request_parser]") {
  const std::string request = "*2\r\n$3\r\nGET\r\n$12\r\n0123456789ab\r\n";
  constexpr RequestParser::Limits kStrict{.strict_breaks = true};
  CHECK(error_of(request, kStrict).empty());
  for (size_t at = 0; at < request.size(); ++at) {
    if (request[at] != '\n') continue;
    INFO(at);
    std::string damaged = request;
    damaged[at] = 'x';
    CHECK(error_of(damaged, kStrict) == "Protocol error: invalid CRLF in request");
    CHECK(error_of(damaged).empty());
  }
  CHECK(error_of("*1\r\n$4\r\nPINGx\n", kStrict) == "Protocol error: invalid CRLF in request");
}

TEST_CASE("Quoted parts of a word may be joined", "[request_parser]") {
  constexpr RequestParser::Limits kJoins{.joins_quotes = true};
  const std::string line = "set \"\"\"tes\"t-'k'e\"y\" \"test\"'-'value ''\r\n";
  CHECK(parse_all(line, kJoins).requests ==
        std::vector<Request>{{"set", "test-key", "test-value", ""}});
  CHECK(parse_all(line).error == "Protocol error: unbalanced quotes in request");
  CHECK(parse_all("get \"a'b\r\n", kJoins).error == "Protocol error: unbalanced quotes in request");
}

}  // namespace latchkey::resp
