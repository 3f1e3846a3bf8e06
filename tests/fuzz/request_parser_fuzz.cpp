// A stream of requests must be the same requests in whatever pieces it arrives, and parsing must
// leave it unchanged. Input: flags, a number of pieces, two bytes of length for each, and the
// stream.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/request_parser.h"

namespace {

using latchkey::resp::ArgumentVector;
using latchkey::resp::RequestParser;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Parsed {
  std::vector<std::vector<std::string>> requests;
  std::string error;
  size_t consumed = 0;
  bool operator==(const Parsed&) const = default;
};

// Parses what has arrived so far in a buffer of exactly that size, so that no byte behind it can be
// read unnoticed. False after an error.
bool parse_arrived(RequestParser& parser, const RequestParser::Limits& limits,
                   std::string_view arrived, Parsed& parsed) {
  const size_t size = arrived.size() - parsed.consumed;
  const auto buffer = std::make_unique<char[]>(size);
  std::copy_n(arrived.data() + parsed.consumed, size, buffer.get());
  size_t position = 0;
  ArgumentVector arguments;
  auto status = RequestParser::Status::kRequest;
  while (position < size && status == RequestParser::Status::kRequest) {
    arguments.clear();
    size_t consumed = 0;
    status = parser.parse({buffer.get() + position, size - position}, limits, arguments, &consumed);
    if (status != RequestParser::Status::kRequest) {
      require(arguments.empty());
      break;
    }
    require(consumed > 0 && consumed <= size - position);
    if (!arguments.empty()) parsed.requests.emplace_back(arguments.begin(), arguments.end());
    position += consumed;
  }
  require(std::equal(buffer.get(), buffer.get() + size, arrived.data() + parsed.consumed));
  parsed.consumed += position;
  if (status == RequestParser::Status::kError) parsed.error = parser.error();
  if (status == RequestParser::Status::kIncomplete) {
    require(parser.wanted_size() == 0 || parser.wanted_size() > size - position);
    require(parser.partial_arguments() == 0 || parser.in_request());
  }
  return status != RequestParser::Status::kError;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Lines without an end are refused by what has arrived of them, so their pieces matter: stay
  // below that limit.
  constexpr size_t kLongestInput = 60'000;
  if (size < 2 || size > kLongestInput) return 0;
  const RequestParser::Limits limits{
      .max_bulk_size = (data[0] & 2) != 0 ? size_t{100} : size_t{512} << 20,
      .authenticated = (data[0] & 1) == 0,
  };
  const size_t pieces = std::min<size_t>(data[1], (size - 2) / 2);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2 + pieces * 2,
                                size - 2 - pieces * 2);

  Parsed whole;
  RequestParser at_once;
  parse_arrived(at_once, limits, stream, whole);

  Parsed piecewise;
  RequestParser parser;
  size_t arrived = 0;
  bool going_on = true;
  for (size_t i = 0; i < pieces && going_on; ++i) {
    const size_t length = data[2 + i * 2] + size_t{256} * data[3 + i * 2];
    arrived = std::min(arrived + length, stream.size());
    going_on = parse_arrived(parser, limits, stream.substr(0, arrived), piecewise);
  }
  if (going_on) parse_arrived(parser, limits, stream, piecewise);
  require(whole == piecewise);
  return 0;
}
